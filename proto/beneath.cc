// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/beneath.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <optional>

namespace addnorm::proto {
namespace {

constexpr int kOpenFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
constexpr int kMaxLinks = 40;  // as in the kernel

FileDescriptor Fail(int error) {
  errno = error;
  return {};
}

FileDescriptor OpenByKernel(int directory, const std::string& path) {
  struct open_how how {};
  how.flags = kOpenFlags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  return FileDescriptor(static_cast<int>(
      ::syscall(SYS_openat2, directory, path.c_str(), &how, sizeof(how))));
}

// The text of the link that the descriptor (O_PATH | O_NOFOLLOW) is; nullopt if
// it is none.
std::optional<std::string> LinkText(int fd) {
  std::array<char, PATH_MAX> text;
  const ssize_t n = ::readlinkat(fd, "", text.data(), text.size());
  if (n < 0) return std::nullopt;
  return std::string(text.data(), static_cast<size_t>(n));
}

// Puts the path's components in front of the pending ones; the next one is
// last. A path that ends in a slash means a directory: it gets a "." there.
void Push(std::string_view path, std::vector<std::string>& pending) {
  const std::vector<std::string_view> parts = PathComponents(path);
  if (path.ends_with('/') || path.ends_with("/.")) pending.push_back(".");
  pending.insert(pending.end(), parts.rbegin(), parts.rend());
}

FileDescriptor OpenByComponents(int directory, const std::string& path) {
  if (path.starts_with('/')) return Fail(EXDEV);
  std::vector<std::string> pending;
  Push(path, pending);
  // From the directory down to where the walk is, so that `..` needs no
  // look-up.
  std::vector<FileDescriptor> trail;
  int links = 0;
  while (!pending.empty()) {
    const std::string name = std::move(pending.back());
    pending.pop_back();
    if (name == ".") continue;
    if (name == "..") {
      if (trail.empty()) return Fail(EXDEV);
      trail.pop_back();
      continue;
    }
    const int here = trail.empty() ? directory : trail.back().get();
    FileDescriptor next(
        ::openat(here, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!next.valid()) return {};
    if (const std::optional<std::string> link = LinkText(next.get())) {
      if (++links > kMaxLinks) return Fail(ELOOP);
      if (link->starts_with('/')) return Fail(EXDEV);
      Push(*link, pending);
      continue;
    }
    struct stat info {};
    if (::fstat(next.get(), &info) != 0) return {};
    const bool is_last = pending.empty();
    if (is_last)
      return FileDescriptor(
          ::openat(here, name.c_str(), kOpenFlags | O_NOFOLLOW));
    if (!S_ISDIR(info.st_mode)) return Fail(ENOTDIR);
    trail.push_back(std::move(next));
  }
  return FileDescriptor(::openat(trail.empty() ? directory : trail.back().get(),
                                 ".", kOpenFlags));
}

}  // namespace

std::vector<std::string_view> PathComponents(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const size_t slash = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, slash);
    if (!part.empty() && part != ".") parts.push_back(part);
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return parts;
}

FileDescriptor OpenBeneath(int directory, const std::string& path,
                           Lookup lookup) {
  if (lookup == Lookup::kKernel) {
    FileDescriptor fd = OpenByKernel(directory, path);
    // Old kernels do not have the call, some sandboxes forbid what they do not
    // know, and a directory renamed meanwhile gives EAGAIN.
    if (fd.valid() || (errno != ENOSYS && errno != EPERM && errno != EAGAIN)) {
      return fd;
    }
  }
  return OpenByComponents(directory, path);
}

}  // namespace addnorm::proto
