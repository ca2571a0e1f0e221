// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// A temporary folder with everything that a hostile location could try: links
// to files inside and outside, also absolute ones, a loop, a FIFO, a hard link;
// and a watch over the files outside, which nobody has to open.
//
//   model/     m.onnx and the data files that it may use
//   snapshot/  linked.onnx and w.bin, links into model/ as caches have them
//   outside/   secret: whoever opens it has been led astray
//   output/    way, a link to outside/
//
//   const DataFolder folder;
//   ...
//   Claim(!folder.WasLeft(), "nothing outside is opened");
#ifndef ADDNORM_TESTS_FUZZ_DATA_FOLDER_H_
#define ADDNORM_TESTS_FUZZ_DATA_FOLDER_H_

#include <sys/stat.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "proto/file_descriptor.h"

namespace addnorm::fuzz {

class DataFolder {
 public:
  DataFolder();
  DataFolder(const DataFolder&) = delete;
  DataFolder& operator=(const DataFolder&) = delete;
  ~DataFolder();

  // As a file, and as a link to it.
  std::vector<std::string> models() const;
  std::string output() const { return root_ / "output"; }
  // A file in model/.
  bool IsInside(const struct stat& file) const;
  // Only the link is in it.
  bool IsOutputClean() const;
  // Since it was asked last: was something in outside/ opened, made or changed?
  bool WasLeft() const;

 private:
  std::filesystem::path root_;
  std::set<ino_t> inside_;
  proto::FileDescriptor watch_;
};

}  // namespace addnorm::fuzz

#endif  // ADDNORM_TESTS_FUZZ_DATA_FOLDER_H_
