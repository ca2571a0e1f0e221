// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/verification.h"

#include <memory>
#include <string>
#include <utility>

#include "proto/import.h"
#include "proto/text.h"
#include "tests/support/catch.h"
#include "tool/structure_check.h"

namespace addnorm::tool {
namespace {

LoadedModel LoadText(const std::string& text) {
  auto file = proto::OpenText("m", text).value();
  return {file, proto::Import(file).value().model};
}

// A model with a weight that is too large to be in memory.
std::string WithWeight() {
  std::string elements = "0.5";
  for (int i = 1; i < 400; ++i) elements += ", 0.5";
  return "<ir_version: 10, opset_import: [\"\" : 18]> "
         "g (float[n,400] x) => (float[n,400] y) <float[400] w = {" +
         elements + "}> { y = Mul(x, w) }";
}

class FailingReader : public ir::TensorReader {
 public:
  explicit FailingReader(absl::Status status) : status_(std::move(status)) {}
  absl::StatusOr<std::string> Read(const ir::Tensor&) override {
    return status_;
  }

 private:
  absl::Status status_;
};

TEST_CASE("a file that cannot be read any more is an error, no verdict",
          "[verification]") {
  for (const absl::Status& status :
       {absl::UnavailableError("gone"), absl::PermissionDeniedError("no"),
        absl::ResourceExhaustedError("full"), absl::InternalError("bug")}) {
    const LoadedModel a = LoadText(WithWeight());
    const LoadedModel b = LoadText(WithWeight());
    REQUIRE(Verify(a, &b, {})->verdict == Verdict::kProven);
    a.model->reader = std::make_unique<FailingReader>(status);
    CHECK(Verify(a, &b, {}).status().code() == status.code());
  }
}

TEST_CASE("what a model has that cannot be run spoils no proof",
          "[verification]") {
  const LoadedModel a = LoadText(WithWeight());
  const LoadedModel b = LoadText(WithWeight());
  a.model->reader =
      std::make_unique<FailingReader>(absl::UnimplementedError("never seen"));
  const Verification done = Verify(a, &b, {}).value();
  CHECK(done.verdict == Verdict::kProven);
  CHECK_THAT(done.run_reason, ContainsSubstring("never seen"));
}

TEST_CASE("one round runs with only weights shared", "[verification]") {
  const LoadedModel a = LoadText(WithWeight());
  const LoadedModel b = LoadText(WithWeight());
  const Verification done = Verify(a, &b, {}).value();
  CHECK(done.rounds.size() == 3);
  CHECK(done.rounds[0].result.b_nodes == 0);
  CHECK(done.apart.reason.empty());
  CHECK(done.apart.b_nodes == 1);
  CHECK(done.apart.difference.elements > 0);
}

TEST_CASE("weights that a proof calls twins are compared for themselves",
          "[verification]") {
  constexpr const char* kModel =
      "<ir_version: 10, opset_import: [\"\" : 18]> "
      "g (float[2] x) => (float[2] y) <float[2] v = {1, 2}, float[2] w = {1, "
      "3}>"
      "{ s = Mul(x, v) y = Mul(s, w) }";
  const LoadedModel a = LoadText(kModel);
  const LoadedModel b = LoadText(kModel);
  const auto value = [](const LoadedModel& m, const char* name) {
    return m.model->graph.FindValue(name);
  };
  ValueMap twins = {{value(b, "v"), value(a, "v")},
                    {value(b, "w"), value(a, "v")},
                    {value(b, "y"), value(a, "y")}};
  REQUIRE(KeepEqualWeights(a, b, twins).ok());
  CHECK(twins.size() == 2);
  CHECK_FALSE(twins.contains(value(b, "w")));
}

TEST_CASE("an output that neither model makes is absent in both",
          "[verification]") {
  const std::string text =
      "<ir_version: 10, opset_import: [\"\" : 18]> "
      "g (float[2] x) => (float[2] y, float[2] z) { y = Neg(x) }";
  const LoadedModel a = LoadText(text);
  const LoadedModel b = LoadText(text);
  CHECK(Verify(a, &b, {})->verdict == Verdict::kProven);
  const LoadedModel made = LoadText(
      "<ir_version: 10, opset_import: [\"\" : 18]> "
      "g (float[2] x) => (float[2] y, float[2] z) { y = Neg(x) z = Abs(x) }");
  CHECK(Verify(a, &made, {})->verdict != Verdict::kProven);
}

}  // namespace
}  // namespace addnorm::tool
