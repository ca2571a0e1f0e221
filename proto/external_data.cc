// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/external_data.h"

#include <fcntl.h>
#include <limits.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "passes/ir/printable.h"
#include "passes/ir/status_macros.h"
#include "proto/beneath.h"
#include "proto/errors.h"

namespace addnorm::proto {
namespace {

struct Keys {
  std::string_view location;
  std::optional<uint64_t> offset;
  std::optional<uint64_t> length;
};

// Digits only: no sign, no base prefix, no space.
absl::StatusOr<uint64_t> ParseNumber(std::string_view key,
                                     std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    return InvalidModel(
        "external data {} '{}': expected a decimal number of 64 bits", key,
        ir::Printable(text));
  }
  return number;
}

// Other keys (checksum, and what the future brings) are nobody's business here.
absl::StatusOr<Keys> ParseKeys(const DataEntries& entries) {
  Keys keys;
  bool has_location = false;
  for (const auto& [key, value] : entries) {
    if (key == "location") {
      if (has_location)
        return InvalidModel("external data location is given twice");
      has_location = true;
      keys.location = value;
    } else if (key == "offset" || key == "length") {
      std::optional<uint64_t>& number =
          key == "offset" ? keys.offset : keys.length;
      if (number) return InvalidModel("external data {} is given twice", key);
      ASSIGN_OR_RETURN(number, ParseNumber(key, value));
    }
  }
  if (!has_location) return InvalidModel("is external but has no location");
  return keys;
}

// What can be said without the file system; `..` may lead back inside.
absl::Status CheckLocation(std::string_view location) {
  const auto refuse = [&](std::string_view why) {
    return InvalidModel(
        "external data location '{}' {}\n"
        "hint: data files must be named relative to the model's directory",
        ir::Printable(location), why);
  };
  if (location.empty()) return refuse("is empty");
  if (location.find('\0') != location.npos)
    return refuse("contains a NUL byte");
  if (location.find('\\') != location.npos)
    return refuse("contains a backslash");
  if (location.front() == '/') return refuse("is absolute");
  if (location.size() >= PATH_MAX)
    return refuse("is longer than a path can be");
  int depth = 0;
  for (const std::string_view part : PathComponents(location)) {
    depth += part == ".." ? -1 : 1;
    if (depth < 0) return refuse("leads outside the model's directory");
  }
  return absl::OkStatus();
}

std::string DirectoryOf(const std::string& path) {
  const std::string directory =
      std::filesystem::path(path).parent_path().string();
  return directory.empty() ? "." : directory;
}

std::string RealPath(const std::string& path) {
  std::error_code error;
  return std::filesystem::canonical(path, error).string();
}

// `path` relative to `directory`, if it is inside; both without links.
std::optional<std::string> RelativeTo(const std::string& path,
                                      const std::string& directory) {
  const std::string prefix =
      directory.ends_with('/') ? directory : directory + "/";
  if (!path.starts_with(prefix)) return std::nullopt;
  return path.substr(prefix.size());
}

bool SameContent(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino &&
         a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
         a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

absl::Status Changed(const DataFile& file) {
  return absl::UnavailableError(
      fmt::format("{}: was changed while it was in use\nhint: run again when "
                  "nothing writes to it",
                  file.path));
}

}  // namespace

ExternalData::ExternalData(std::string model_path, Lookup lookup)
    : model_path_(std::move(model_path)), lookup_(lookup) {}

// The directory of the path as given, then, for a link, that of its target.
absl::Status ExternalData::OpenRoots() {
  if (!roots_.empty()) return absl::OkStatus();
  if (model_path_.empty()) {
    return absl::FailedPreconditionError(
        "is external, but a model that is not a file has no directory to look "
        "in\n"
        "hint: give the model's path");
  }
  std::vector<std::string> directories = {DirectoryOf(model_path_)};
  if (const std::string real = RealPath(model_path_); !real.empty()) {
    directories.push_back(DirectoryOf(real));
  }
  for (const std::string& directory : directories) {
    Root root{.path = directory, .real = RealPath(directory), .fd = {}};
    if (!roots_.empty() && root.real == roots_.front().real) continue;
    root.fd = FileDescriptor(
        ::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!root.fd.valid()) return ErrnoError(errno, directory);
    roots_.push_back(std::move(root));
  }
  return absl::OkStatus();
}

absl::StatusOr<FileDescriptor> ExternalData::Open(const std::string& location,
                                                  std::string* found_at) const {
  int first_error = 0;
  for (const Root& root : roots_) {
    *found_at = root.path == "." ? location : root.path + "/" + location;
    FileDescriptor fd = OpenBeneath(root.fd.get(), location, lookup_);
    if (fd.valid()) return fd;
    if (first_error == 0) first_error = errno;
    if (errno != EXDEV) continue;
    // A link leads out of this directory: fine if it ends in one of them after
    // all.
    const std::string real = RealPath(*found_at);
    for (const Root& other : roots_) {
      const std::optional<std::string> inside = RelativeTo(real, other.real);
      if (!inside) continue;
      fd = OpenBeneath(other.fd.get(), *inside, lookup_);
      if (fd.valid()) return fd;
    }
    return InvalidModel(
        "external data location '{}' leads outside the model's directory",
        ir::Printable(location));
  }
  std::string places = fmt::format("'{}'", roots_.front().path);
  if (roots_.size() > 1) places += fmt::format(" and '{}'", roots_.back().path);
  const absl::Status status = ErrnoError(
      first_error, fmt::format("external data file '{}' (looked for in {})",
                               ir::Printable(location), places));
  if (!absl::IsNotFound(status)) return status;
  return WithHint(status, "it holds weights of the model: put it there");
}

absl::StatusOr<const DataFile*> ExternalData::Find(std::string_view location) {
  if (const auto known = files_.find(location); known != files_.end())
    return &known->second;
  RETURN_IF_ERROR(CheckLocation(location));
  RETURN_IF_ERROR(OpenRoots());
  DataFile file{.location = std::string(location), .path = {}, .info = {}};
  ASSIGN_OR_RETURN(FileDescriptor fd, Open(file.location, &file.path));
  if (::fstat(fd.get(), &file.info) != 0) return ErrnoError(errno, file.path);
  if (!S_ISREG(file.info.st_mode)) {
    return InvalidModel(
        "external data location '{}' is {}", ir::Printable(location),
        S_ISDIR(file.info.st_mode) ? "a directory" : "not a regular file");
  }
  return &files_.emplace(file.location, file).first->second;
}

absl::StatusOr<DataRegion> ExternalData::Resolve(
    const DataEntries& entries, std::optional<uint64_t> byte_size) {
  ASSIGN_OR_RETURN(const Keys keys, ParseKeys(entries));
  ASSIGN_OR_RETURN(const DataFile* file, Find(keys.location));
  const auto have = static_cast<uint64_t>(file->info.st_size);
  const uint64_t offset = keys.offset.value_or(0);
  uint64_t length =
      keys.length.value_or(0);  // 0 is what some writers put for "all of it"
  // Of a type whose size nobody knows: all that there is.
  if (length == 0) length = byte_size.value_or(have - std::min(offset, have));
  if (byte_size && length != *byte_size) {
    return InvalidModel(
        "external data length {}, expected {} for its type and dims", length,
        *byte_size);
  }
  if (offset > have || length > have - offset) {
    return InvalidModel(
        "needs bytes {} to {} of '{}', which has {}\n"
        "hint: '{}' is incomplete or another model's: copy or download it "
        "again",
        offset,
        offset > UINT64_MAX - length ? "beyond 2^64"
                                     : fmt::format("{}", offset + length),
        ir::Printable(file->location), have, ir::Printable(file->path));
  }
  return DataRegion{.file = file, .offset = offset, .length = length};
}

absl::StatusOr<FileDescriptor> ExternalData::OpenFile(
    const DataFile& file) const {
  std::string found_at;
  ASSIGN_OR_RETURN(FileDescriptor fd, Open(file.location, &found_at));
  struct stat now {};
  if (::fstat(fd.get(), &now) != 0) return ErrnoError(errno, file.path);
  if (!SameContent(now, file.info)) return Changed(file);
  return fd;
}

absl::Status ExternalData::CheckUnchanged() const {
  for (const auto& [unused, file] : files_) {
    RETURN_IF_ERROR(OpenFile(file).status());
  }
  return absl::OkStatus();
}

}  // namespace addnorm::proto
