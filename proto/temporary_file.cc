// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/temporary_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <utility>

#include "passes/ir/status_macros.h"
#include "proto/errors.h"

namespace addnorm::proto {

namespace {

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
    file.guard_ = RemovalGuard(file.name_);
    file.guard_.Make([&file] {
      file.fd_ = FileDescriptor(::open(
          file.name_.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
      return file.fd_.valid();
    });
  } while (!file.fd_.valid() && errno == EEXIST);
  if (!file.fd_.valid()) {
    return ErrnoError(errno,
                      fmt::format("cannot create a file in '{}'", directory));
  }
  if (::fchmod(file.fd(), DefaultMode()) != 0)
    return ErrnoError(errno, file.name_);
  return file;
}

// Gives an unnamed file a name that does not exist.
bool TemporaryFile::Link(const std::string& name) {
  const std::string unnamed = fmt::format("/proc/self/fd/{}", fd());
  guard_ = RemovalGuard(name);
  return guard_.Make([&] {
    return ::linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, name.c_str(),
                    AT_SYMLINK_FOLLOW) == 0;
  });
}

// A link never replaces anything, so an unnamed file gets its last name at
// once.
bool TemporaryFile::AppearNew(const std::string& target) {
  if (name_.empty()) return Link(target);
  RemovalGuard guard(target);
  const bool is_made = guard.Make([&] {
    if (::renameat2(AT_FDCWD, name_.c_str(), AT_FDCWD, target.c_str(),
                    RENAME_NOREPLACE) == 0)
      return true;
    // The file system does not know the flag, but a link does the same.
    return errno == EINVAL && ::link(name_.c_str(), target.c_str()) == 0;
  });
  if (is_made) guard_ = std::move(guard);  // and the dot-name is gone
  return is_made;
}

// A link cannot replace anything: an unnamed file gets a dot-name first.
bool TemporaryFile::Replace(const std::string& target,
                            const OnReplaced& on_replaced) {
  while (name_.empty()) {
    std::string name = DotName(directory_);
    if (Link(name)) {
      name_ = std::move(name);
    } else if (errno != EEXIST) {
      return false;
    }
  }
  const SignalsBlocked blocked;
  if (::rename(name_.c_str(), target.c_str()) != 0) return false;
  if (on_replaced) on_replaced();
  guard_.Release();
  return true;
}

absl::Status TemporaryFile::Appear(const std::string& target, bool replace,
                                   const OnReplaced& on_replaced) {
  if (::fsync(fd()) != 0) return ErrnoError(errno, target);
  const bool is_there =
      replace ? Replace(target, on_replaced) : AppearNew(target);
  if (!is_there)
    return errno == EEXIST ? Exists(target) : ErrnoError(errno, target);
  if (const int error = fd_.Close(); error != 0)
    return ErrnoError(error, target);
  return SyncDirectory(directory_);
}

absl::Status TemporaryFile::Publish(const std::string& target, bool replace,
                                    const OnReplaced& on_replaced) {
  absl::Status status = Appear(target, replace, on_replaced);
  if (status.ok())
    guard_.Release();
  else
    guard_.Remove();
  return status;
}

absl::StatusOr<RemovalGuard> TemporaryFile::PublishGuarded(
    const std::string& target) {
  RETURN_IF_ERROR(Appear(target, /*replace=*/false, {}));
  return std::move(guard_);
}

}  // namespace addnorm::proto
