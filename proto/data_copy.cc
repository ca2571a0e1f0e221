// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/data_copy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "proto/beneath.h"
#include "proto/copy_range.h"
#include "proto/errors.h"
#include "proto/status_macros.h"

namespace addnorm::proto {
namespace {

bool SameFile(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

bool IsInput(const ModelFile& input, const struct stat& file) {
  if (input.IsSameFile(file)) return true;
  for (const auto& [unused, data] : input.external_data().files()) {
    if (SameFile(data.info, file)) return true;
  }
  return false;
}

std::vector<const DataFile*> FilesToCopy(const ModelFile& input,
                                         const std::string& directory) {
  std::vector<const DataFile*> missing;
  for (const auto& [location, file] : input.external_data().files()) {
    struct stat there {};
    const bool exists =
        ::stat((directory + "/" + location).c_str(), &there) == 0;
    if (!exists || !SameFile(there, file.info)) missing.push_back(&file);
  }
  return missing;
}

DataCopies::~DataCopies() {
  files_.clear();
  for (auto directory = directories_.rbegin(); directory != directories_.rend();
       ++directory) {
    ::rmdir(directory->c_str());
  }
}

void DataCopies::Keep() {
  for (RemovalGuard& file : files_) file.Release();
  directories_.clear();
}

absl::Status DataCopies::Make(const ModelFile& input,
                              const std::string& directory,
                              const std::vector<const DataFile*>& files,
                              bool force) {
  for (const DataFile* file : files) {
    RETURN_IF_ERROR(Copy(input, directory, *file, force));
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
    if (::mkdir(path.c_str(), 0777) == 0) {
      directories_.push_back(path);
    } else if (errno != EEXIST) {
      return ErrnoError(errno, path);
    }
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
                              const DataFile& file, bool force) {
  ASSIGN_OR_RETURN(const std::string place,
                   MakeDirectories(directory, file.location));
  const std::string target =
      fmt::format("{}/{}", place, PathComponents(file.location).back());
  // Locations may spell one file in several ways.
  if (!targets_.insert(target).second) return absl::OkStatus();
  struct stat there {};
  if (::lstat(target.c_str(), &there) == 0) {
    if (IsInput(input, there)) {
      return absl::FailedPreconditionError(
          fmt::format("{}: a copy of '{}' would replace another input file",
                      target, file.path));
    }
    if (!S_ISREG(there.st_mode)) {
      return absl::FailedPreconditionError(fmt::format(
          "{}: exists and is no regular file; data would go there", target));
    }
  }
  ASSIGN_OR_RETURN(const FileDescriptor from,
                   input.external_data().OpenFile(file));
  ASSIGN_OR_RETURN(TemporaryFile to, TemporaryFile::Create(place));
  const auto size = static_cast<uint64_t>(file.info.st_size);
  if (const int error = Allocate(to.fd(), size))
    return ErrnoError(error, target);
  if (const int error = RangeCopier(to.fd()).Copy(from.get(), 0, size, 0)) {
    return ErrnoError(error, target);
  }
  RETURN_IF_ERROR(to.Publish(target, force));
  files_.emplace_back(target);
  return absl::OkStatus();
}

}  // namespace addnorm::proto
