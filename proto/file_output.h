// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Writing the output model, or a report: all of it or nothing.
//
// A regular target appears under its name only when complete: it is written to
// an unnamed file of the same directory, synchronised, and renamed into place,
// so a crash, a full disk or a signal leaves the old file and no rubbish.
// Inputs are never overwritten. Pipes, devices and "-" (standard output) are
// written directly.
//
//   const WriteOptions options{.force = true};
//   RETURN_IF_ERROR(CheckTarget(*file, "out.onnx", options));
//   ...
//   RETURN_IF_ERROR(WriteModel(*file, rope, "out.onnx", options));
#ifndef ADDNORM_PROTO_FILE_OUTPUT_H_
#define ADDNORM_PROTO_FILE_OUTPUT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "proto/model_file.h"
#include "proto/rope.h"

namespace addnorm::proto {

struct WriteOptions {
  // Replace the target if it exists. Data files are never replaced.
  bool force = false;

  // An output that would not find the model's external data beside itself gets
  // copies of them if they are not larger than this together; else it is
  // refused. 0: always refused. UINT64_MAX: always copied (--data=copy).
  uint64_t copy_data_up_to = 0;

  // Called when the output is complete and not yet visible under its name; an
  // error stops the publication. Not called for targets that are written
  // directly.
  std::function<absl::Status(std::shared_ptr<ModelFile> written)>
      before_publish = {};

  // Called for each part that was written: bytes of the output and of copied
  // data so far, and of all of them.
  std::function<void(uint64_t done, uint64_t total)> on_progress = {};
};

// Says early what WriteModel would refuse; touches nothing. The model's data
// files are known only when it has been imported.
absl::Status CheckTarget(const ModelFile& input, const std::string& target,
                         const WriteOptions& options);

// The folder that the output will be in, links followed. nullopt for pipes,
// devices and open descriptors: nothing can be put beside them.
absl::StatusOr<std::optional<std::string>> FolderOf(const std::string& target);

// True for "-", /dev/stdout and its other names: what is printed would end up
// in the model.
bool IsStandardOutput(const std::string& target);

// Writes the rope over `input`, and the data files where options ask for it.
absl::Status WriteModel(const ModelFile& input, const Rope& rope,
                        const std::string& target, const WriteOptions& options);

// The same for a file that is no model and refers to none, such as a report.
// `input` may be null; else it and its data files are not overwritten.
absl::Status CheckReportTarget(const std::string& target, bool force,
                               const ModelFile* input);
absl::Status WriteReport(std::string_view bytes, const std::string& target,
                         bool force, const ModelFile* input);

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_FILE_OUTPUT_H_
