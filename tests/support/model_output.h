// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// A small model, with external data on request, written through proto/.
//
//   const std::string model = scratch.Write("m.onnx", ModelBytes("w.bin"));
//   CHECK(Write(model, scratch / "out.onnx", {.force = true}).ok());
#ifndef ADDNORM_TESTS_SUPPORT_MODEL_OUTPUT_H_
#define ADDNORM_TESTS_SUPPORT_MODEL_OUTPUT_H_

#include <memory>
#include <string>

#include "onnx/onnx_pb.h"
#include "proto/file_output.h"
#include "proto/import.h"
#include "tests/support/catch.h"

namespace addnorm::tests {

inline std::string ModelBytes(const std::string& location = "") {
  onnx::ModelProto model;
  model.mutable_graph()->set_name("g");
  if (!location.empty()) {
    onnx::TensorProto& tensor = *model.mutable_graph()->add_initializer();
    tensor.set_name("w");
    tensor.set_data_type(onnx::TensorProto::UINT8);
    tensor.add_dims(4);
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    auto& entry = *tensor.add_external_data();
    entry.set_key("location");
    entry.set_value(location);
  }
  return model.SerializeAsString();
}

// Imports the model, which looks its data files up.
inline std::shared_ptr<proto::ModelFile> OpenAndImport(
    const std::string& path) {
  auto file = proto::ModelFile::Open(path);
  REQUIRE(file.ok());
  const auto imported = proto::Import(*file);
  INFO(imported.status());
  REQUIRE(imported.ok());
  return *file;
}

// The model and two bytes of an unknown field.
inline proto::Rope Output(const proto::ModelFile& file) {
  proto::Rope rope;
  rope.AppendRange(0, file.size());
  rope.AppendBytes("\x78\x01");
  return rope;
}

inline absl::Status Write(const std::string& model, const std::string& target,
                          const proto::WriteOptions& options = {}) {
  const auto file = OpenAndImport(model);
  if (absl::Status early = proto::CheckTarget(*file, target, options);
      !early.ok())
    return early;
  return proto::WriteModel(*file, Output(*file), target, options);
}

}  // namespace addnorm::tests

#endif  // ADDNORM_TESTS_SUPPORT_MODEL_OUTPUT_H_
