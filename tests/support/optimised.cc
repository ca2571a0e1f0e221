// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/optimised.h"

#include <stdexcept>
#include <utility>

#include "passes/ir/verifier.h"
#include "passes/pass_manager.h"
#include "proto/export.h"
#include "proto/import.h"
#include "proto/infer_types.h"

namespace addnorm::tests {
namespace {

void OrThrow(const absl::Status& status) {
  if (!status.ok()) throw std::runtime_error(std::string(status.message()));
}

template <typename T>
T OrThrow(absl::StatusOr<T> result) {
  OrThrow(result.status());
  return *std::move(result);
}

}  // namespace

std::string Optimised::Bytes() const {
  return OrThrow(OrThrow(proto::Export(*file, *model)).Flatten(*file));
}

Optimised Optimise(std::shared_ptr<proto::ModelFile> file,
                   std::string_view pass, passes::PassContext context) {
  Optimised result;
  result.model = OrThrow(proto::Import(file)).model;
  context.infer_types = [&file](ir::Model& model) {
    return proto::InferTypes(*file, model);
  };
  OrThrow(passes::RunPasses(*result.model, {pass}, context));
  OrThrow(ir::Verify(*result.model));
  result.report = std::move(context.report);
  result.file = std::move(file);
  return result;
}

}  // namespace addnorm::tests
