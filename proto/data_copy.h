// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Copies of a model's data files beside an output in another directory.
//
// Each file goes to the place that the output's references mean: the same
// relative location. Directories on the way are made; links on the way are not
// followed. All of it is removed again unless Keep is called. It never touches
// a file of the input.
//
//   DataCopies copies;
//   RETURN_IF_ERROR(copies.Make(input, "other/dir", {file}, force));
//   ... publish the model ...
//   copies.Keep();
#ifndef ADDNORM_PROTO_DATA_COPY_H_
#define ADDNORM_PROTO_DATA_COPY_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/external_data.h"
#include "proto/model_file.h"
#include "proto/temporary_file.h"

namespace addnorm::proto {

// True if the file is the input model or one of its data files.
bool IsInput(const ModelFile& input, const struct stat& file);

// The data files that an output in the directory would not find beside itself.
std::vector<const DataFile*> FilesToCopy(const ModelFile& input,
                                         const std::string& directory);

class DataCopies {
 public:
  DataCopies() = default;
  DataCopies(const DataCopies&) = delete;
  DataCopies& operator=(const DataCopies&) = delete;
  ~DataCopies();

  absl::Status Make(const ModelFile& input, const std::string& directory,
                    const std::vector<const DataFile*>& files, bool force);
  void Keep();

 private:
  absl::Status Copy(const ModelFile& input, const std::string& directory,
                    const DataFile& file, bool force);
  absl::StatusOr<std::string> MakeDirectories(const std::string& directory,
                                              const std::string& location);

  std::vector<RemovalGuard> files_;
  std::set<std::string> targets_;         // of files_
  std::vector<std::string> directories_;  // that were made, outer first
};

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_DATA_COPY_H_
