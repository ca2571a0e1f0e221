// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/file_output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <optional>
#include <vector>

#include "passes/ir/status_macros.h"
#include "proto/copy_range.h"
#include "proto/data_copy.h"
#include "proto/errors.h"
#include "proto/format_bytes.h"
#include "proto/temporary_file.h"
#include "proto/whole_file.h"

namespace addnorm::proto {
namespace {

// Where an output goes.
struct Target {
  std::string path;                 // or a name for messages
  std::string directory;            // of a file that is written and renamed
  std::optional<struct stat> info;  // of what is there
  bool is_direct = false;           // a device, a pipe, an open descriptor
  int descriptor = -1;              // the open one, if it is
};

// /dev/fd/3 and its likes may be regular files, but stand for an open
// descriptor.
int DescriptorOf(const std::string& path) {
  if (path == "-" || path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view prefix : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(prefix)) continue;
    int fd = -1;
    const auto [end, error] = std::from_chars(path.data() + prefix.size(),
                                              path.data() + path.size(), fd);
    if (error == std::errc() && end == path.data() + path.size()) return fd;
  }
  return -1;
}

// The file that a chain of links stands for; it need not exist.
absl::StatusOr<std::filesystem::path> ResolveLinks(std::filesystem::path path) {
  constexpr int kMaxLinks = 40;
  std::error_code error;
  for (int links = 0; std::filesystem::is_symlink(path, error); ++links) {
    if (links == kMaxLinks) return ErrnoError(ELOOP, path.string());
    const std::filesystem::path link =
        std::filesystem::read_symlink(path, error);
    if (error) return ErrnoError(error.value(), path.string());
    path = path.parent_path() / link;  // an absolute link replaces all
  }
  return path;
}

absl::StatusOr<Target> Locate(const std::string& given) {
  const std::string target = given == "-" ? "<stdout>" : given;
  Target located{.path = target, .directory = {}, .info = {}};
  located.descriptor = DescriptorOf(given);
  located.is_direct = located.descriptor >= 0;
  struct stat info {};
  const int failed = located.descriptor >= 0
                         ? ::fstat(located.descriptor, &info)
                         : ::stat(target.c_str(), &info);
  if (failed != 0 && errno != ENOENT) return ErrnoError(errno, target);
  if (failed == 0) located.info = info;
  if (failed == 0 && S_ISDIR(info.st_mode)) return ErrnoError(EISDIR, target);
  if (failed == 0 && !S_ISREG(info.st_mode)) located.is_direct = true;
  if (located.is_direct) return located;
  ASSIGN_OR_RETURN(const std::filesystem::path resolved, ResolveLinks(target));
  located.path = resolved.string();
  located.directory =
      resolved.has_parent_path() ? resolved.parent_path().string() : ".";
  if (!resolved.has_filename()) return ErrnoError(EISDIR, target);
  struct stat directory {};
  if (::stat(located.directory.c_str(), &directory) != 0) {
    return WithHint(ErrnoError(errno, fmt::format("{}: directory '{}'", target,
                                                  located.directory)),
                    "the output's folder must exist");
  }
  return located;
}

// True if the file at `path` is, or its link is, directly in the directory.
bool SameDirectory(const std::string& directory, const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  std::error_code error;
  return std::filesystem::equivalent(directory, parent.empty() ? "." : parent,
                                     error);
}

using Files = std::vector<const DataFile*>;

uint64_t TotalSize(const Files& files) {
  uint64_t size = 0;
  for (const DataFile* file : files)
    size += static_cast<uint64_t>(file->info.st_size);
  return size;
}

absl::Status RefuseCopies(const ModelFile& input, const Target& target,
                          const Files& files, uint64_t copy_up_to) {
  const DataFile& first = *files.front();
  if (SameDirectory(target.directory, input.path())) {
    return absl::NotFoundError(fmt::format(
        "{}: the model is a link and its data file '{}' lies beside the link's "
        "target ({}), not beside the output\n"
        "hint: give the target's path, or --data=copy",
        target.path, first.location, first.path));
  }
  const std::string size = FormatBytes(TotalSize(files));
  if (copy_up_to > 0) {
    return absl::FailedPreconditionError(fmt::format(
        "{}: needs copies of {} of external data ('{}'), more than the {} that "
        "are copied without being asked\n"
        "hint: --data=copy copies them, or write the output beside the model",
        target.path, size, first.location, FormatBytes(copy_up_to)));
  }
  return absl::FailedPreconditionError(fmt::format(
      "{}: the model's data file '{}' would not be found beside the output\n"
      "hint: --data=copy copies the data ({}), or write the output beside the "
      "model",
      target.path, first.location, size));
}

// A copy at the output's own place would be the first thing to be lost.
absl::Status CheckIsNoDataPlace(const Target& target, const Files& files) {
  const auto normal = [](const std::string& path) {
    return std::filesystem::path(path).lexically_normal();
  };
  for (const DataFile* file : files) {
    if (normal(PlaceOf(*file, target.directory)) != normal(target.path))
      continue;
    return absl::FailedPreconditionError(
        fmt::format("{}: is where the model's data file '{}' must go\n"
                    "hint: give the output another name",
                    target.path, file->location));
  }
  return absl::OkStatus();
}

// The data files to copy, if they may be copied.
absl::StatusOr<Files> CheckData(const ModelFile& input, const Target& target,
                                uint64_t copy_up_to) {
  ASSIGN_OR_RETURN(Files files, FilesToCopy(input, target.directory));
  if (files.empty()) return files;
  if (copy_up_to == 0 || TotalSize(files) > copy_up_to)
    return RefuseCopies(input, target, files, copy_up_to);
  RETURN_IF_ERROR(CheckIsNoDataPlace(target, files));
  return files;
}

absl::Status CheckReplaceable(const ModelFile* input, const Target& target,
                              bool force) {
  if (input != nullptr && target.info && IsInput(*input, *target.info)) {
    return absl::FailedPreconditionError(fmt::format(
        "{}: is {}, which is never overwritten\nhint: give the output another "
        "name",
        target.path,
        input->IsSameFile(*target.info) ? "the input model"
                                        : "a data file of the input model"));
  }
  if (!target.is_direct && target.info && !force) {
    return absl::FailedPreconditionError(fmt::format(
        "{}: exists already\nhint: --force replaces it", target.path));
  }
  return absl::OkStatus();
}

absl::StatusOr<Files> CheckLocated(const ModelFile& input, const Target& target,
                                   const WriteOptions& options) {
  RETURN_IF_ERROR(CheckReplaceable(&input, target, options.force));
  if (target.is_direct) return Files();
  return CheckData(input, target, options.copy_data_up_to);
}

// Adds up what is written and tells the caller.
class Meter {
 public:
  Meter(const WriteOptions& options, uint64_t total)
      : options_(options), total_(total) {}

  void Add(uint64_t bytes) {
    done_ += bytes;
    if (options_.on_progress) options_.on_progress(done_, total_);
  }

  // For a RangeCopier; it must not outlive the meter.
  std::function<void(uint64_t bytes)> callback() {
    return [this](uint64_t bytes) { Add(bytes); };
  }

 private:
  const WriteOptions& options_;
  uint64_t total_;
  uint64_t done_ = 0;
};

// An `offset` of -1 writes at the descriptor's own place.
absl::Status WriteRope(const ModelFile& input, const Rope& rope, int fd,
                       int64_t offset, const std::string& name, Meter& meter) {
  RangeCopier copier(fd, meter.callback());
  for (const Rope::Segment& segment : rope.segments()) {
    const int error =
        segment.is_range()
            ? copier.Copy(input.fd(), segment.offset, segment.length, offset)
            : WriteFully(fd, segment.bytes.data(), segment.bytes.size(),
                         offset);
    if (error == ENODATA) {
      return absl::UnavailableError(
          fmt::format("{}: was truncated while it was read", input.name()));
    }
    // A reader that has seen enough is no failure of ours.
    if (error == EPIPE && offset < 0) return absl::OkStatus();
    if (error != 0) return ErrnoError(error, name);
    if (!segment.is_range()) meter.Add(segment.length);
    if (offset >= 0) offset += static_cast<int64_t>(segment.length);
  }
  return absl::OkStatus();
}

FileDescriptor OpenDirect(const Target& target) {
  return FileDescriptor(
      target.descriptor >= 0
          ? ::fcntl(target.descriptor, F_DUPFD_CLOEXEC, 0)
          : ::open(target.path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
}

absl::Status WriteDirectly(const ModelFile& input, const Rope& rope,
                           const Target& target, const WriteOptions& options) {
  FileDescriptor fd = OpenDirect(target);
  if (!fd.valid()) return ErrnoError(errno, target.path);
  Meter meter(options, rope.size());
  RETURN_IF_ERROR(WriteRope(input, rope, fd.get(), -1, target.path, meter));
  if (const int error = fd.Close()) return ErrnoError(error, target.path);
  return input.CheckUnchanged();
}

bool IsAt(const std::string& path, const struct stat& file) {
  struct stat there {};
  return ::stat(path.c_str(), &there) == 0 && there.st_dev == file.st_dev &&
         there.st_ino == file.st_ino;
}

// An output that has appeared keeps its data, whatever fails or comes then: the
// previous one is gone.
absl::Status PublishWith(DataCopies& copies, TemporaryFile& file,
                         const Target& target, bool replace) {
  struct stat info {};
  // What takes long can be interrupted.
  if (::fsync(file.fd()) != 0 || ::fstat(file.fd(), &info) != 0)
    return ErrnoError(errno, target.path);
  const SignalsBlocked blocked;
  const absl::Status published =
      file.Publish(target.path, replace, [&copies] { copies.Keep(); });
  if (published.ok() || IsAt(target.path, info)) copies.Keep();
  return published;
}

absl::Status WriteFile(const ModelFile& input, const Rope& rope,
                       const Target& target, const Files& data,
                       const WriteOptions& options) {
  ASSIGN_OR_RETURN(TemporaryFile file, TemporaryFile::Create(target.directory));
  if (const int error = Allocate(file.fd(), rope.size()))
    return ErrnoError(error, target.path);
  Meter meter(options, rope.size() + TotalSize(data));
  RETURN_IF_ERROR(WriteRope(input, rope, file.fd(), 0, target.path, meter));
  if (target.info && ::fchmod(file.fd(), target.info->st_mode & 0777) != 0) {
    return ErrnoError(errno, target.path);
  }
  DataCopies copies;
  RETURN_IF_ERROR(copies.Make(input, target.directory, data, meter.callback()));
  RETURN_IF_ERROR(input.CheckUnchanged());
  RETURN_IF_ERROR(input.external_data().CheckUnchanged());
  if (options.before_publish) {
    ASSIGN_OR_RETURN(
        std::shared_ptr<ModelFile> written,
        ModelFile::FromDescriptor(file.fd(), target.path, target.path));
    RETURN_IF_ERROR(options.before_publish(std::move(written)));
  }
  return PublishWith(copies, file, target, options.force);
}

}  // namespace

absl::StatusOr<std::optional<std::string>> FolderOf(const std::string& target) {
  ASSIGN_OR_RETURN(const Target located, Locate(target));
  if (located.is_direct) return std::nullopt;
  return located.directory;
}

bool IsStandardOutput(const std::string& target) {
  return DescriptorOf(target) == STDOUT_FILENO;
}

absl::Status CheckTarget(const ModelFile& input, const std::string& target,
                         const WriteOptions& options) {
  ASSIGN_OR_RETURN(const Target located, Locate(target));
  return CheckLocated(input, located, options).status();
}

absl::Status WriteModel(const ModelFile& input, const Rope& rope,
                        const std::string& target,
                        const WriteOptions& options) {
  ASSIGN_OR_RETURN(const Target located, Locate(target));
  ASSIGN_OR_RETURN(const Files data, CheckLocated(input, located, options));
  return located.is_direct ? WriteDirectly(input, rope, located, options)
                           : WriteFile(input, rope, located, data, options);
}

absl::Status CheckReportTarget(const std::string& target, bool force,
                               const ModelFile* input) {
  ASSIGN_OR_RETURN(const Target located, Locate(target));
  return CheckReplaceable(input, located, force);
}

absl::Status WriteReport(std::string_view bytes, const std::string& target,
                         bool force, const ModelFile* input) {
  ASSIGN_OR_RETURN(const Target located, Locate(target));
  RETURN_IF_ERROR(CheckReplaceable(input, located, force));
  if (!located.is_direct) return WriteWholeFile(located.path, bytes, force);
  FileDescriptor fd = OpenDirect(located);
  if (!fd.valid()) return ErrnoError(errno, located.path);
  const int error = WriteFully(fd.get(), bytes.data(), bytes.size(), -1);
  if (error == EPIPE) return absl::OkStatus();  // a reader has seen enough
  if (error != 0) return ErrnoError(error, located.path);
  const int closed = fd.Close();
  return closed == 0 ? absl::OkStatus() : ErrnoError(closed, located.path);
}

}  // namespace addnorm::proto
