// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/data_copy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "passes/ir/status_macros.h"
#include "proto/beneath.h"
#include "proto/copy_range.h"
#include "proto/errors.h"
#include "proto/temporary_file.h"

namespace addnorm::proto {
namespace {

using OnCopied = std::function<void(uint64_t bytes)>;

bool SameFile(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

absl::Status Occupied(const std::string& place, std::string_view why) {
  return absl::FailedPreconditionError(
      fmt::format("{}: {}; a file where data would go is never replaced\n"
                  "hint: write the output to another folder",
                  place, why));
}

absl::Status OtherContent(const std::string& place, const DataFile& file) {
  return Occupied(place, fmt::format("is not the same as '{}'", file.path));
}

absl::StatusOr<bool> SameBytes(int a, int b, uint64_t size,
                               const std::string& name) {
  constexpr size_t kChunk = 256 * 1024;
  std::vector<char> left(kChunk);
  std::vector<char> right(kChunk);
  for (uint64_t at = 0; at < size; at += kChunk) {
    const size_t chunk = std::min<uint64_t>(kChunk, size - at);
    const int64_t n = ReadFully(a, left.data(), chunk, at);
    const int64_t m = n < 0 ? n : ReadFully(b, right.data(), chunk, at);
    if (m < 0) return ErrnoError(errno, name);
    if (n != m || static_cast<size_t>(n) < chunk) return false;
    if (std::memcmp(left.data(), right.data(), chunk) != 0) return false;
  }
  return true;
}

// What is at the location for a reader of a model in the directory.
FileDescriptor OpenInPlace(const std::string& directory,
                           const std::string& location) {
  const FileDescriptor root(
      ::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return {};
  return OpenBeneath(root.get(), location, Lookup::kKernel);
}

// The place is free if it has no file, nor a link to nowhere.
absl::StatusOr<bool> IsFree(const std::string& place, int error) {
  struct stat link {};
  if (error == ENOENT) {
    if (::lstat(place.c_str(), &link) != 0) return true;
    return Occupied(place, "is a link to nowhere");
  }
  if (error == EXDEV) return Occupied(place, "a link leads outside its folder");
  return ErrnoError(error, place);
}

// True if the place has the file or its like, false if it is free.
absl::StatusOr<bool> IsThere(const ModelFile& input,
                             const std::string& directory,
                             const DataFile& file) {
  const std::string place = PlaceOf(file, directory);
  struct stat there {};
  if (::stat(place.c_str(), &there) == 0 && SameFile(there, file.info))
    return true;
  const FileDescriptor fd = OpenInPlace(directory, file.location);
  if (!fd.valid()) {
    ASSIGN_OR_RETURN(const bool is_free, IsFree(place, errno));
    return !is_free;
  }
  if (::fstat(fd.get(), &there) != 0) return ErrnoError(errno, place);
  if (!S_ISREG(there.st_mode)) return Occupied(place, "is no regular file");
  if (there.st_size != file.info.st_size) return OtherContent(place, file);
  ASSIGN_OR_RETURN(const FileDescriptor ours,
                   input.external_data().OpenFile(file));
  ASSIGN_OR_RETURN(const bool is_same,
                   SameBytes(ours.get(), fd.get(),
                             static_cast<uint64_t>(there.st_size), place));
  if (!is_same) return OtherContent(place, file);
  return true;
}

// 0, or the errno value.
int CopyContent(const DataFile& file, int from, int to,
                const OnCopied& on_copied) {
  const auto size = static_cast<uint64_t>(file.info.st_size);
  constexpr blkcnt_t kUnit = 512;  // of st_blocks, whatever the file system
  RangeCopier copier(to, on_copied);
  if (file.info.st_blocks < file.info.st_size / kUnit)
    return copier.CopyWithHoles(from, size);
  if (const int error = Allocate(to, size)) return error;
  return copier.Copy(from, 0, size, 0);
}

}  // namespace

bool IsInput(const ModelFile& input, const struct stat& file) {
  if (input.IsSameFile(file)) return true;
  for (const auto& [unused, data] : input.external_data().files()) {
    if (SameFile(data.info, file)) return true;
  }
  return false;
}

std::string PlaceOf(const DataFile& file, const std::string& directory) {
  return directory + "/" + file.location;
}

absl::StatusOr<std::vector<const DataFile*>> FilesToCopy(
    const ModelFile& input, const std::string& directory) {
  std::vector<const DataFile*> missing;
  for (const auto& [location, file] : input.external_data().files()) {
    ASSIGN_OR_RETURN(const bool is_there, IsThere(input, directory, file));
    if (!is_there) missing.push_back(&file);
  }
  return missing;
}

absl::Status DataCopies::Make(const ModelFile& input,
                              const std::string& directory,
                              const std::vector<const DataFile*>& files,
                              const OnCopied& on_copied) {
  for (const DataFile* file : files) {
    RETURN_IF_ERROR(Copy(input, directory, *file, on_copied));
  }
  return absl::OkStatus();
}

// The directory of the location, made where it is missing, part by part: a link
// on the way could lead anywhere.
absl::StatusOr<std::string> DataCopies::MakeDirectories(
    const std::string& directory, const std::string& location) {
  std::vector<std::string> trail = {directory};
  std::vector<std::string_view> parts = PathComponents(location);
  parts.pop_back();
  for (const std::string_view part : parts) {
    if (part == "..") {
      trail.pop_back();
      continue;
    }
    const std::string path = fmt::format("{}/{}", trail.back(), part);
    RETURN_IF_ERROR(made_.MakeFolder(path));
    struct stat info {};
    if (::lstat(path.c_str(), &info) != 0) return ErrnoError(errno, path);
    if (!S_ISDIR(info.st_mode)) {
      return absl::FailedPreconditionError(fmt::format(
          "{}: data would go through it, but it is no directory", path));
    }
    trail.push_back(path);
  }
  return trail.back();
}

absl::Status DataCopies::Copy(const ModelFile& input,
                              const std::string& directory,
                              const DataFile& file, const OnCopied& on_copied) {
  ASSIGN_OR_RETURN(const std::string place,
                   MakeDirectories(directory, file.location));
  const std::string target =
      fmt::format("{}/{}", place, PathComponents(file.location).back());
  // Locations may spell one file in several ways.
  if (!targets_.insert(target).second) return absl::OkStatus();
  ASSIGN_OR_RETURN(const FileDescriptor from,
                   input.external_data().OpenFile(file));
  ASSIGN_OR_RETURN(TemporaryFile to, TemporaryFile::Create(place));
  if (const int error = CopyContent(file, from.get(), to.fd(), on_copied))
    return ErrnoError(error, target);
  absl::StatusOr<RemovalGuard> published = to.PublishGuarded(target);
  // Somebody was faster.
  if (absl::IsFailedPrecondition(published.status()))
    return OtherContent(target, file);
  RETURN_IF_ERROR(published.status());
  made_.Add(*std::move(published));
  return absl::OkStatus();
}

}  // namespace addnorm::proto
