// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// From a model file to the IR.
//
// The skeleton of the file (the file without large payloads) is parsed by
// libprotobuf, checked, and turned into an ir::Model whose `source` numbers are
// record numbers of the file's Document. What makes a graph ambiguous is
// refused: a value made twice, an input that nothing makes, a cycle. What is
// merely odd is a warning. It is not a full checker: ops and their types are
// not looked at.
//
//   ASSIGN_OR_RETURN(Imported imported, Import(file));
//   for (const std::string& warning : imported.warnings) spdlog::warn("{}",
//   warning);
#ifndef ADDNORM_PROTO_IMPORT_H_
#define ADDNORM_PROTO_IMPORT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "passes/ir/model.h"
#include "proto/model_file.h"

namespace addnorm::proto {

struct Imported {
  std::unique_ptr<ir::Model> model;
  std::vector<std::string> warnings;
};

// The model's reader keeps the file open. Every external tensor is checked
// against its data file, but no data are read.
absl::StatusOr<Imported> Import(std::shared_ptr<const ModelFile> file);

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_IMPORT_H_
