// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// A model through one pass, as the optimize command does it, without files.
//
//   Optimised result = Optimise(OpenText("x", text).value(),
//   "fuse-add-rms-norm"); result.report.Count(passes::Verdict::kFused);
#ifndef ADDNORM_TESTS_SUPPORT_OPTIMISED_H_
#define ADDNORM_TESTS_SUPPORT_OPTIMISED_H_

#include <memory>
#include <string>
#include <string_view>

#include "passes/fusion_report.h"
#include "passes/ir/model.h"
#include "passes/pass.h"
#include "proto/model_file.h"

namespace addnorm::tests {

struct Optimised {
  std::shared_ptr<proto::ModelFile> file;  // the input
  std::unique_ptr<ir::Model> model;        // after the pass, and verified
  passes::FusionReport report;

  // The bytes that would be written.
  std::string Bytes() const;
};

// Throws std::runtime_error where a step returns an error.
// `context` may ask for a target.
Optimised Optimise(std::shared_ptr<proto::ModelFile> file,
                   std::string_view pass, passes::PassContext context = {});

}  // namespace addnorm::tests

#endif  // ADDNORM_TESTS_SUPPORT_OPTIMISED_H_
