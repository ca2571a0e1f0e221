// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The structure of what the optimizer writes is that of its input, or cannot be
// compared. Nothing is run: kernels and models have tests of their own.
#include "tests/fuzz/claims.h"
#include "tool/fusion.h"
#include "tool/structure_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace addnorm::fuzz;
  namespace tool = addnorm::tool;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::optional<Opened> edited = Open(bytes);
  if (!edited) return 0;
  const std::optional<std::string> output = Optimise(*edited);
  if (!output) return 0;
  Opened a = Reopen(bytes);
  Opened b = Reopen(*output);
  const auto structure = Answered(tool::CheckStructure(
      tool::LoadedModel{std::move(a.file), std::move(a.model)},
      tool::LoadedModel{std::move(b.file), std::move(b.model)}));
  if (!structure) return 0;
  for (const auto& difference : structure->differences)
    Claim(false, difference.place_a + " / " + difference.place_b + ": " +
                     difference.text);
  return 0;
}
