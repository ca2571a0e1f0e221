// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/bench_ort.h"

#include <filesystem>
#include <utility>

#include "fmt/format.h"
#include "passes/ir/status_macros.h"
#include "proto/export.h"
#include "proto/text.h"

namespace addnorm::tool {
namespace {

using ir::DataType;
using runtime::PairBuffers;
using runtime::PairSetting;

absl::StatusOr<OrtModel> ModelOf(const proto::ModelFile& file,
                                 const ir::Model& model,
                                 const OrtRequest& request) {
  OrtModel made;
  ASSIGN_OR_RETURN(const proto::Rope rope, proto::Export(file, model));
  ASSIGN_OR_RETURN(made.bytes, rope.Flatten(file));
  if (!file.path().empty())
    made.folder = std::filesystem::absolute(file.path()).parent_path();
  const auto& inputs = model.graph.inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (request.is_given.empty() || request.is_given[i])
      made.inputs.push_back(inputs[i]->name());
  }
  for (const ir::Value* output : model.graph.outputs())
    made.outputs.push_back(output->name());
  return made;
}

absl::StatusOr<std::unique_ptr<OrtSession>> LoadSession(
    const OnnxRuntime& ort, const proto::ModelFile& file,
    const ir::Model& model, const OrtRequest& request) {
  ASSIGN_OR_RETURN(const OrtModel made, ModelOf(file, model, request));
  return ort.Load(made, request.threads, request.cores);
}

void AddSession(std::string name,
                absl::StatusOr<std::unique_ptr<OrtSession>> session,
                OrtSides& sides) {
  if (session.ok()) {
    sides.sides.push_back({std::move(name), *std::move(session)});
  } else {
    sides.not_run.push_back(
        fmt::format("{}: {}", name, std::string(session.status().message())));
  }
}

// What optimize makes for a target, and how many sites that changed.
struct TargetArm {
  const char* name;
  passes::Target target;
};
constexpr TargetArm kTargetArms[] = {
    {"ort fused", passes::Target::kPortable},
    {"ort own op", passes::Target::kOrt},
};

// ---- the pair as a model

struct PairText {
  std::string_view recipe;
  // Of x, the sum in the type of the arithmetic, and r, the root: {T} is the
  // tensors' type by number, {C} the arithmetic's.
  const char* nodes;
};
constexpr PairText kPairTexts[] = {
    {"reciprocal", R"(i = Reciprocal(r)
                      n = Mul(x, i)
                      h = Cast<to = {T}>(n)
                      y = Mul(h, w))"},
    {"divide", R"(n = Div(x, r)
                  h = Cast<to = {T}>(n)
                  y = Mul(h, w))"},
    {"late", R"(n = Div(x, r)
                v = Cast<to = {C}>(w)
                f = Mul(n, v)
                y = Cast<to = {T}>(f))"},
};

// A Cast to the type that a value has already is not what exporters write.
std::string WithoutCasts(std::string text) {
  for (size_t at; (at = text.find("Cast<to = ")) != std::string::npos;)
    text.replace(at, text.find('>', at) + 1 - at, "Identity");
  return text;
}

std::string Replaced(std::string text, std::string_view from,
                     const std::string& to) {
  for (size_t at; (at = text.find(from)) != std::string::npos;)
    text.replace(at, from.size(), to);
  return text;
}

std::string TextOfPair(const char* nodes, const PairSetting& setting,
                       double epsilon) {
  const DataType type = setting.recipe.type;
  const DataType computed = type == DataType::kDouble ? type : DataType::kFloat;
  std::string body = fmt::format(R"(
    sum = Add(a, b)
    x = Cast<to = {{C}}>(sum)
    q = Pow(x, two)
    m = ReduceMean<axes = [-1], keepdims = 1>(q)
    e = Add(m, eps)
    r = Sqrt(e)
    {})",
                                 nodes);
  body = Replaced(std::move(body), "{T}",
                  fmt::format("{}", static_cast<int>(type)));
  body = Replaced(std::move(body), "{C}",
                  fmt::format("{}", static_cast<int>(computed)));
  if (computed == type) body = WithoutCasts(std::move(body));
  return fmt::format(R"(<ir_version: 8, opset_import: ["" : 17]>
pair ({0}[{1},{2}] a, {0}[{1},{2}] b, {0}[{2}] w)
    => ({0}[{1},{2}] y, {0}[{1},{2}] sum)
<{3} eps = {{{4}}}, {3} two = {{2}}> {{ {5} }})",
                     ir::DataTypeName(type), setting.rows, setting.length,
                     ir::DataTypeName(computed), epsilon, body);
}

}  // namespace

absl::StatusOr<OrtSides> LoadOrtSides(
    const OnnxRuntime& ort, const std::shared_ptr<proto::ModelFile>& file,
    const OrtRequest& request) {
  OrtSides sides;
  ASSIGN_OR_RETURN(const LoadedModel unfused, Load(file));
  AddSession("ort unfused", LoadSession(ort, *file, *unfused.model, request),
             sides);
  // A session of its own, since where its memory lies is part of the noise.
  if (!sides.sides.empty()) {
    AddSession("ort unfused again",
               LoadSession(ort, *file, *unfused.model, request), sides);
  }
  for (const TargetArm& arm : kTargetArms) {
    ASSIGN_OR_RETURN(LoadedModel fused, Load(file));
    ASSIGN_OR_RETURN(const passes::FusionReport report,
                     Fuse(fused, arm.target, /*mixed=*/false));
    if (report.Count(passes::Verdict::kFused) == 0) {
      const bool came_fused = report.Count(passes::Verdict::kAlreadyFused) > 0;
      sides.not_run.push_back(fmt::format(
          "{}: {}", arm.name,
          came_fused ? "the model came fused; 'ort unfused' runs it as it came"
                     : "it fits no site"));
      continue;
    }
    AddSession(arm.name, LoadSession(ort, *file, *fused.model, request), sides);
  }
  return sides;
}

void AddOrtSide(const OnnxRuntime& ort, const LoadedModel& loaded,
                std::string name, const OrtRequest& request, OrtSides& sides) {
  AddSession(std::move(name),
             LoadSession(ort, *loaded.file, *loaded.model, request), sides);
}

absl::StatusOr<std::shared_ptr<proto::ModelFile>> PairModel(
    std::string_view recipe, const PairSetting& setting, double epsilon) {
  for (const PairText& text : kPairTexts) {
    if (text.recipe == recipe)
      return proto::OpenText("the pair",
                             TextOfPair(text.nodes, setting, epsilon));
  }
  return absl::InternalError(fmt::format("no model of recipe {}", recipe));
}

absl::StatusOr<std::unique_ptr<OrtPair>> OrtPair::Create(
    const OnnxRuntime& ort, std::string_view recipe, const PairSetting& setting,
    std::span<const int> cores, runtime::PairArms& arms) {
  auto pair = std::make_unique<OrtPair>();
  ASSIGN_OR_RETURN(const auto file, PairModel(recipe, setting, arms.epsilon()));
  ASSIGN_OR_RETURN(
      pair->sides_,
      LoadOrtSides(ort, file, {.threads = setting.threads, .cores = cores}));
  RETURN_IF_ERROR(pair->WrapSets(ort, setting, arms));
  for (const OrtSide& side : pair->sides_.sides) {
    arms.AddArm(side.name, [pair = pair.get(),
                            session = side.session.get()](size_t set) {
      Values& values = pair->sets_[set];
      pair->failure_.Update(session->Run(values.inputs, values.outputs));
    });
  }
  return pair;
}

absl::Status OrtPair::WrapSets(const OnnxRuntime& ort,
                               const PairSetting& setting,
                               runtime::PairArms& arms) {
  const DataType type = setting.recipe.type;
  const runtime::Dims dims = {setting.rows, setting.length};
  std::vector<std::byte>& scale = arms.scale();
  ASSIGN_OR_RETURN(scale_.emplace_back(), ort.Wrap(type, {setting.length},
                                                   scale.data(), scale.size()));
  for (const PairBuffers& set : arms.sets()) {
    Values& values = sets_.emplace_back();
    for (std::byte* buffer : {set.a, set.b, set.y, set.sum}) {
      ASSIGN_OR_RETURN(values.owners.emplace_back(),
                       ort.Wrap(type, dims, buffer, arms.tensor_bytes()));
    }
    const auto handle = [&](size_t i) { return values.owners[i].handle(); };
    values.inputs = {handle(0), handle(1), scale_[0].handle()};
    values.outputs = {handle(2), handle(3)};
  }
  return absl::OkStatus();
}

}  // namespace addnorm::tool
