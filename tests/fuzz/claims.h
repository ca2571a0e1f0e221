// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What fuzz targets have in common: reading bytes as a model, and claims.
//
// A claim that does not hold ends the process, so that libFuzzer keeps the
// input and the replay in CTest fails. An error status is an answer, not a
// finding, as long as it blames the model. It is not a test library: there is
// one input a process at a time, and the first failure is the last.
//
//   std::optional<Opened> opened = Open(data, size);
//   if (!opened) return 0;  // refused, in words
//   Claim(ir::Verify(*opened->model).ok(), "the importer builds a sound IR");
#ifndef ADDNORM_TESTS_FUZZ_CLAIMS_H_
#define ADDNORM_TESTS_FUZZ_CLAIMS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "passes/ir/model.h"
#include "passes/pass.h"
#include "proto/model_file.h"

namespace addnorm::fuzz {

// Aborts, with the text on stderr, unless it holds.
void Claim(bool holds, std::string_view what);

// That an error says what is wrong and that it is not ours.
void ClaimIsAnswer(const absl::Status& status);

// The value where there is one; else the error must be an answer.
template <typename T>
std::optional<T> Answered(absl::StatusOr<T> result) {
  if (result.ok()) return *std::move(result);
  ClaimIsAnswer(result.status());
  return std::nullopt;
}

// The value of what must not fail.
template <typename T>
T Expected(absl::StatusOr<T> result, std::string_view what) {
  Claim(result.ok(),
        std::string(what) + ": " + std::string(result.status().message()));
  return *std::move(result);
}

// A model in memory, and its IR.
struct Opened {
  std::shared_ptr<proto::ModelFile> file;
  std::unique_ptr<ir::Model> model;
};

// Claims that the IR is sound. nullopt: refused.
std::optional<Opened> Open(std::string_view bytes);
std::optional<Opened> Open(const uint8_t* data, size_t size);
// What the optimizer wrote must be readable.
Opened Reopen(std::string_view bytes);

// The bytes that would be written, after the pass; the IR must be sound then.
// nullopt: refused.
std::optional<std::string> Optimise(
    Opened& opened, passes::Target target = passes::Target::kPortable);

// All that is claimed of optimising a model: for each target, the output can be
// read and optimised, and is a fixed point.
void ClaimOptimises(std::string_view bytes);

}  // namespace addnorm::fuzz

#endif  // ADDNORM_TESTS_FUZZ_CLAIMS_H_
