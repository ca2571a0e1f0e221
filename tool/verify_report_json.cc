// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The JSON half of verify_report.h.
#include <cmath>
#include <utility>

#include "fmt/format.h"
#include "tool/verify_report.h"

namespace addnorm::tool {
namespace {

using Json = nlohmann::ordered_json;
using runtime::Comparison;

// Of what is in a called function: the call that leads there.
void AddCall(const char* key, const passes::StructurePlace& place, Json& json) {
  if (place.call == nullptr) return;
  Json outputs = Json::array();
  for (const ir::Value* output : place.call->outputs()) {
    if (output != nullptr) outputs.push_back(output->name());
  }
  json[key] = {{"node", place.call->Describe()},
               {"outputs", std::move(outputs)}};
}

Json ToJson(const passes::StructureDifference& difference) {
  Json json = {{"place_a", difference.place_a},
               {"place_b", difference.place_b},
               {"what", difference.text}};
  AddCall("call_a", difference.a, json);
  AddCall("call_b", difference.b, json);
  return json;
}

Json ToJson(const std::vector<passes::StructureDifference>& list) {
  Json json = Json::array();
  for (const passes::StructureDifference& difference : list)
    json.push_back(ToJson(difference));
  return json;
}

// JSON has no infinity.
Json NumberJson(double value) {
  if (std::isfinite(value)) return value;
  return fmt::format("{}", value);
}

Json ToJson(const runtime::AbsoluteDifference& largest) {
  return {{"value", NumberJson(largest.value)},
          {"at", largest.at},
          {"expected", largest.expected},
          {"found", largest.found}};
}

Json ToJson(const Comparison& comparison) {
  Json json = {{"words", comparison.elements},
               {"different", comparison.different},
               {"nan_payloads", comparison.nan_payloads}};
  if (!comparison.mismatch.empty()) json["mismatch"] = comparison.mismatch;
  if (comparison.first < 0) return json;
  json["first_index"] = comparison.first;
  json["first_at"] = comparison.first_at;
  json["expected"] = comparison.expected;
  json["found"] = comparison.found;
  json["max_ulps"] = comparison.max_ulps;
  const runtime::UlpPlace& place = comparison.max_ulps_place;
  if (comparison.different > 0) {
    json["max_ulps_place"] = {
        {"at", place.at}, {"expected", place.expected}, {"found", place.found}};
  }
  Json ulps = Json::object();
  for (size_t i = 0; i < runtime::kUlpClasses; ++i) {
    if (comparison.ulps[i] > 0)
      ulps[runtime::UlpClassName(i)] = comparison.ulps[i];
  }
  json["ulps"] = std::move(ulps);
  if (comparison.different > 0) json["max_abs"] = ToJson(comparison.largest);
  return json;
}

Json StructureJson(const Verification& done) {
  if (!done.structure_reason.empty())
    return {{"compared", false}, {"reason", done.structure_reason}};
  return {{"compared", true},
          {"equal", done.structure.is_equal()},
          {"differences", ToJson(done.structure.differences)},
          {"more", done.structure.has_more},
          {"swapped_operands", ToJson(done.structure.swaps)}};
}

Json KernelsJson(const Verification& done) {
  if (!done.kernels_reason.empty())
    return {{"compared", false}, {"reason", done.kernels_reason}};
  Json results = Json::array();
  for (const KernelResult& result : done.kernels.results) {
    Json json = {{"op", result.op},
                 {"rows", result.type},
                 {"has_kernel", result.has_kernel},
                 {"comparison", ToJson(result.comparison)}};
    if (!result.where.empty()) json["where"] = result.where;
    results.push_back(std::move(json));
  }
  return {{"compared", true},
          {"words", done.kernels.words},
          {"calls_left_out", done.kernels.calls_left_out},
          {"targets", done.kernels.targets},
          {"results", std::move(results)}};
}

Json OutputsJson(const Verification& done, const Round& round) {
  Json outputs = Json::array();
  for (size_t i = 0; i < round.result.outputs.size(); ++i) {
    Json output = {{"name", done.output_names[i]}};
    output.update(ToJson(round.result.outputs[i]));
    outputs.push_back(std::move(output));
  }
  return outputs;
}

Json RoundJson(const Verification& done, const Round& round) {
  Json dims = Json::object();
  for (const ChosenDim& dim : round.dims) dims[dim.symbol] = dim.value;
  Json own = Json::array();
  for (const runtime::ValueComparison& value : round.result.own) {
    Json json = {{"value", value.value->name()},
                 {"expected_value", value.expected->name()},
                 {"are_twins", value.are_twins}};
    json.update(ToJson(value.comparison));
    own.push_back(std::move(json));
  }
  return {{"seed", round.seed},
          {"scale", round.scale},
          {"dims", std::move(dims)},
          {"nodes_a", round.result.a_nodes},
          {"nodes_b", round.result.b_nodes},
          {"outputs", OutputsJson(done, round)},
          {"own_values", std::move(own)}};
}

Json ApartJson(const ApartRound& apart) {
  if (!apart.reason.empty())
    return {{"compared", false}, {"reason", apart.reason}};
  return {{"compared", true},
          {"nodes_b", apart.b_nodes},
          {"words", apart.difference.elements},
          {"different", apart.difference.different}};
}

Json RunJson(const Verification& done) {
  Json rounds = Json::array();
  for (const Round& round : done.rounds)
    rounds.push_back(RoundJson(done, round));
  Json json = {{"compared", done.has_words()},
               {"words", done.difference.elements},
               {"different", done.difference.different},
               {"rounds", std::move(rounds)}};
  if (!done.rounds.empty()) json["only_weights_shared"] = ApartJson(done.apart);
  if (!done.run_reason.empty()) json["reason"] = done.run_reason;
  if (!done.run_hint.empty()) json["hint"] = done.run_hint;
  if (!done.first_place.empty()) {
    json["first_difference"] = {{"place", done.first_place}};
    json["first_difference"].update(ToJson(done.first));
  }
  return json;
}

}  // namespace

Json ToJson(const Verification& verification, const VerifyNames& names) {
  Json json = {{"verdict", Name(verification.verdict)}, {"a", names.a}};
  if (!names.b.empty()) json["b"] = names.b;
  json["structure"] = StructureJson(verification);
  json["kernels"] = KernelsJson(verification);
  json["run"] = RunJson(verification);
  json["command"] = names.command;
  return json;
}

}  // namespace addnorm::tool
