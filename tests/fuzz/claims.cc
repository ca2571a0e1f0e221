// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/claims.h"

#include <cstdio>
#include <cstdlib>

#include "passes/ir/verifier.h"
#include "passes/pass_manager.h"
#include "passes/target.h"
#include "proto/export.h"
#include "proto/import.h"
#include "proto/infer_types.h"
#include "proto/rope.h"

namespace addnorm::fuzz {
namespace {

std::string Flattened(const Opened& opened, const proto::Rope& rope) {
  return Expected(rope.Flatten(*opened.file), "a rope's ranges can be read");
}

}  // namespace

void Claim(bool holds, std::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "claim failed: %.*s\n", static_cast<int>(what.size()),
               what.data());
  std::abort();
}

void ClaimIsAnswer(const absl::Status& status) {
  Claim(!status.ok() && !absl::IsInternal(status) && !absl::IsUnknown(status),
        "an error is not ours: " + status.ToString());
  Claim(!status.message().empty(), "an error has words");
}

std::optional<Opened> Open(std::string_view bytes) {
  auto file = Answered(proto::ModelFile::FromBytes("model", bytes));
  if (!file) return std::nullopt;
  auto imported = Answered(proto::Import(*file));
  if (!imported) return std::nullopt;
  const absl::Status status = ir::Verify(*imported->model);
  Claim(status.ok(), "imported: " + status.ToString());
  return Opened{*std::move(file), std::move(imported->model)};
}

std::optional<Opened> Open(const uint8_t* data, size_t size) {
  return Open({reinterpret_cast<const char*>(data), size});
}

Opened Reopen(std::string_view bytes) {
  auto file = Expected(proto::ModelFile::FromBytes("output", bytes), "output");
  auto imported = Expected(proto::Import(file), "output");
  const absl::Status status = ir::Verify(*imported.model);
  Claim(status.ok(), "output: " + status.ToString());
  return {std::move(file), std::move(imported.model)};
}

std::optional<std::string> Optimise(Opened& opened, passes::Target target) {
  passes::PassContext context;
  context.target = target;
  context.mixed = true;
  context.infer_types = [&](ir::Model& model) {
    // What is not found stays unknown, as in the optimize command.
    proto::InferTypes(*opened.file, model).IgnoreError();
    return absl::OkStatus();
  };
  absl::Status status =
      passes::RunPasses(*opened.model, {"fuse-add-rms-norm"}, context);
  if (!status.ok()) {
    ClaimIsAnswer(status);
    return std::nullopt;
  }
  status = ir::Verify(*opened.model);
  Claim(status.ok(), "optimised: " + status.ToString());
  const auto rope = Answered(proto::Export(*opened.file, *opened.model));
  if (!rope) return std::nullopt;
  return Flattened(opened, *rope);
}

void ClaimOptimises(std::string_view bytes) {
  for (const passes::TargetRow& row : passes::AllTargets()) {
    std::optional<Opened> opened = Open(bytes);
    if (!opened) return;
    const std::optional<std::string> output = Optimise(*opened, row.target);
    // The first target fuses wherever another one does.
    if (!output || *output == bytes) return;
    Opened again = Reopen(*output);
    const std::optional<std::string> twice = Optimise(again, row.target);
    Claim(twice.has_value(), "an optimised model can be optimised");
    // ONNX's inference knows nothing of ONNX Runtime's operators: behind one,
    // what had been refused by its type is a site.
    if (row.target != passes::Target::kOrt)
      Claim(*twice == *output, "an optimised model stays as it is");
  }
}

}  // namespace addnorm::fuzz
