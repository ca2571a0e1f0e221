// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/temporary_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <random>
#include <utility>

#include "passes/ir/status_macros.h"
#include "proto/errors.h"

namespace addnorm::proto {

// Entries are never freed while a handler could look at them: they are reused.
struct RemovalGuard::Entry {
  std::atomic<const char*> path{nullptr};  // nullptr: free
  std::string held;
  Entry* next = nullptr;
};

namespace {

using Entry = RemovalGuard::Entry;

constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};

std::mutex mutex;  // guards what follows, except in the handler
std::atomic<Entry*> entries{nullptr};
std::array<struct sigaction, kSignals.size()> previous;
int active = 0;

// A file, or a directory that is empty. Async-signal-safe.
void RemovePath(const char* path) {
  if (::unlink(path) != 0) ::rmdir(path);
}

// Only async-signal-safe calls.
extern "C" void RemoveAndRaise(int signal) {
  const int saved = errno;
  // A directory goes once what is in it did; such are nested a few levels deep.
  for (int level = 0; level < 8; ++level) {
    for (Entry* entry = entries.load(); entry != nullptr; entry = entry->next) {
      if (const char* path = entry->path.load()) RemovePath(path);
    }
  }
  for (size_t i = 0; i < kSignals.size(); ++i) {
    if (kSignals[i] == signal) ::sigaction(signal, &previous[i], nullptr);
  }
  errno = saved;
  ::raise(signal);  // delivered when this handler returns
}

void InstallHandlers() {
  struct sigaction ours {};
  ours.sa_handler = RemoveAndRaise;
  ::sigemptyset(&ours.sa_mask);
  for (size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], nullptr, &previous[i]);
    if (previous[i].sa_handler != SIG_IGN)
      ::sigaction(kSignals[i], &ours, nullptr);
  }
}

void RestoreHandlers() {
  for (size_t i = 0; i < kSignals.size(); ++i)
    ::sigaction(kSignals[i], &previous[i], nullptr);
}

std::string DotName(const std::string& directory) {
  static std::atomic<unsigned> counter{std::random_device{}()};
  return fmt::format("{}/.onnx-addnorm-{}-{:08x}", directory, ::getpid(),
                     counter++);
}

mode_t DefaultMode() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

absl::Status SyncDirectory(const std::string& directory) {
  FileDescriptor fd(
      ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid())
    return absl::OkStatus();  // it may be writable and not readable
  // Some file systems cannot synchronise a directory.
  if (::fsync(fd.get()) != 0 && errno != EINVAL)
    return ErrnoError(errno, directory);
  return absl::OkStatus();
}

absl::Status Exists(const std::string& target) {
  return absl::FailedPreconditionError(
      fmt::format("{}: exists already\nhint: --force replaces it", target));
}

}  // namespace

RemovalGuard::RemovalGuard(const std::string& path) {
  const std::lock_guard lock(mutex);
  for (entry_ = entries.load(); entry_ != nullptr; entry_ = entry_->next) {
    if (entry_->path.load() == nullptr) break;
  }
  if (entry_ == nullptr) {
    entry_ = new Entry;
    entry_->next = entries.load();
    entries.store(entry_);
  }
  if (active++ == 0) InstallHandlers();
  entry_->held = path;
  entry_->path.store(entry_->held.c_str());
}

RemovalGuard& RemovalGuard::operator=(RemovalGuard&& other) noexcept {
  if (this != &other) {
    Remove();
    entry_ = std::exchange(other.entry_, nullptr);
  }
  return *this;
}

void RemovalGuard::Release() {
  if (entry_ == nullptr) return;
  const std::lock_guard lock(mutex);
  entry_->path.store(nullptr);
  entry_ = nullptr;
  if (--active == 0) RestoreHandlers();
}

void RemovalGuard::Remove() {
  if (entry_ == nullptr) return;
  RemovePath(entry_->held.c_str());
  Release();
}

absl::StatusOr<TemporaryFile> TemporaryFile::Create(
    const std::string& directory, Naming naming) {
  TemporaryFile file;
  file.directory_ = directory;
  if (naming == Naming::kUnnamed) {
    file.fd_ = FileDescriptor(
        ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666));
    if (file.fd_.valid()) return file;
    // What file systems and kernels without O_TMPFILE say.
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) {
      return ErrnoError(errno,
                        fmt::format("cannot create a file in '{}'", directory));
    }
  }
  do {
    file.name_ = DotName(directory);
    file.fd_ = FileDescriptor(::open(
        file.name_.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
  } while (!file.fd_.valid() && errno == EEXIST);
  if (!file.fd_.valid()) {
    return ErrnoError(errno,
                      fmt::format("cannot create a file in '{}'", directory));
  }
  file.guard_ = RemovalGuard(file.name_);
  if (::fchmod(file.fd(), DefaultMode()) != 0)
    return ErrnoError(errno, file.name_);
  return file;
}

// Gives an unnamed file a name: its last one if nothing may be replaced, since
// a link never replaces; else a dot-name to be renamed.
absl::Status TemporaryFile::Link(const std::string& target, bool replace) {
  const std::string unnamed = fmt::format("/proc/self/fd/{}", fd());
  do {
    name_ = replace ? DotName(directory_) : target;
    guard_ = replace ? RemovalGuard(name_) : RemovalGuard();
    if (::linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, name_.c_str(),
                 AT_SYMLINK_FOLLOW) == 0) {
      return absl::OkStatus();
    }
    guard_.Release();
  } while (replace && errno == EEXIST);
  return errno == EEXIST ? Exists(target) : ErrnoError(errno, target);
}

absl::Status TemporaryFile::Publish(const std::string& target, bool replace) {
  if (::fsync(fd()) != 0) return ErrnoError(errno, target);
  if (name_.empty()) RETURN_IF_ERROR(Link(target, replace));
  if (name_ != target) {
    int failed = ::renameat2(AT_FDCWD, name_.c_str(), AT_FDCWD, target.c_str(),
                             replace ? 0 : RENAME_NOREPLACE);
    if (failed != 0 && errno == EINVAL && !replace) {
      // The file system does not know the flag, but a link never replaces.
      failed = ::link(name_.c_str(), target.c_str());
      if (failed == 0) ::unlink(name_.c_str());
    }
    if (failed != 0)
      return errno == EEXIST ? Exists(target) : ErrnoError(errno, target);
    guard_.Release();
  }
  if (const int error = fd_.Close(); error != 0)
    return ErrnoError(error, target);
  return SyncDirectory(directory_);
}

}  // namespace addnorm::proto
