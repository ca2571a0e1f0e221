// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The data files of one model: which file a tensor's location means, and
// whether the tensor's bytes are in it.
//
// One resolver serves every tensor of a model, wherever it sits. A location is
// looked up in the directory of the model's path; it may lead, also through
// symbolic links, to a regular file inside that directory or, for a model that
// is itself a link (as in Hugging Face caches), inside its target's directory.
// It is not a reader: no data are read here, and no file is kept open.
//
//   ASSIGN_OR_RETURN(DataRegion region, data.Resolve({{"location", "w.bin"}},
//   32)); ASSIGN_OR_RETURN(FileDescriptor fd, data.OpenFile(*region.file));
#ifndef ADDNORM_PROTO_EXTERNAL_DATA_H_
#define ADDNORM_PROTO_EXTERNAL_DATA_H_

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/beneath.h"
#include "proto/file_descriptor.h"

namespace addnorm::proto {

// A file that tensors refer to.
struct DataFile {
  std::string location;  // as written in the model
  std::string path;      // where it was found, for messages
  struct stat info {};
};

// A tensor's bytes in it.
struct DataRegion {
  const DataFile* file = nullptr;
  uint64_t offset = 0;
  uint64_t length = 0;
};

// The external_data entries of a tensor, in their order.
using DataEntries = std::vector<std::pair<std::string_view, std::string_view>>;

class ExternalData {
 public:
  // An empty path: a model without a directory, which cannot have external
  // data.
  explicit ExternalData(std::string model_path,
                        Lookup lookup = Lookup::kKernel);

  // Checks the entries of a tensor that has `byte_size` bytes (nullopt: a type
  // of unknown width, whose length must be given). The file is looked up once.
  absl::StatusOr<DataRegion> Resolve(const DataEntries& entries,
                                     std::optional<uint64_t> byte_size);

  // Opens a file that Resolve found; Unavailable if it is not the same any
  // more.
  absl::StatusOr<FileDescriptor> OpenFile(const DataFile& file) const;

  // Every file that tensors refer to, by location.
  const std::map<std::string, DataFile, std::less<>>& files() const {
    return files_;
  }

  // Unavailable if a file was changed since it was looked up.
  absl::Status CheckUnchanged() const;

 private:
  struct Root {
    std::string path;  // as used, for messages
    std::string real;  // without links
    FileDescriptor fd;
  };

  absl::Status OpenRoots();
  absl::StatusOr<FileDescriptor> Open(const std::string& location,
                                      std::string* found_at) const;
  absl::StatusOr<const DataFile*> Find(std::string_view location);

  std::string model_path_;
  Lookup lookup_;
  std::vector<Root> roots_;
  std::map<std::string, DataFile, std::less<>> files_;
};

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_EXTERNAL_DATA_H_
