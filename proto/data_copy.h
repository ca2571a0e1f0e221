// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Copies of a model's data files beside an output in another directory.
//
// Each file goes to the place that the output's references mean: the same
// relative location. Directories on the way are made; links on the way are not
// followed. All of it is removed again unless Keep is called. A file that is
// there already is never replaced: with the same content it serves, else it may
// be all that is left of another model's weights.
//
//   ASSIGN_OR_RETURN(auto files, FilesToCopy(input, "other/dir"));
//   DataCopies copies;
//   RETURN_IF_ERROR(copies.Make(input, "other/dir", files, on_copied));
//   ... publish the model ...
//   copies.Keep();
#ifndef ADDNORM_PROTO_DATA_COPY_H_
#define ADDNORM_PROTO_DATA_COPY_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/external_data.h"
#include "proto/made_paths.h"
#include "proto/model_file.h"

namespace addnorm::proto {

// True if the file is the input model or one of its data files.
bool IsInput(const ModelFile& input, const struct stat& file);

// The data files that an output in the directory would not find beside itself.
// FailedPrecondition if something else is in the place of one. Reads files that
// are there and have the right size.
absl::StatusOr<std::vector<const DataFile*>> FilesToCopy(
    const ModelFile& input, const std::string& directory);

// The place of the file for a model in the directory.
std::string PlaceOf(const DataFile& file, const std::string& directory);

class DataCopies {
 public:
  // `on_copied` may be empty; see RangeCopier.
  absl::Status Make(const ModelFile& input, const std::string& directory,
                    const std::vector<const DataFile*>& files,
                    const std::function<void(uint64_t bytes)>& on_copied);
  void Keep() noexcept { made_.Keep(); }

 private:
  absl::Status Copy(const ModelFile& input, const std::string& directory,
                    const DataFile& file,
                    const std::function<void(uint64_t bytes)>& on_copied);
  absl::StatusOr<std::string> MakeDirectories(const std::string& directory,
                                              const std::string& location);

  MadePaths made_;
  std::set<std::string> targets_;  // files that were made
};

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_DATA_COPY_H_
