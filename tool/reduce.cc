// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/reduce.h"

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"
#include "passes/ir/node_order.h"
#include "passes/ir/printable.h"
#include "passes/ir/status_macros.h"
#include "proto/errors.h"
#include "proto/model_part.h"
#include "proto/tensor_file.h"
#include "proto/whole_file.h"
#include "runtime/executor.h"

namespace addnorm::tool {
namespace {

namespace fs = std::filesystem;
using Values = absl::flat_hash_set<const ir::Value*>;

// What makes a value, back to where it is given.
struct Cone {
  Values values;  // made by its nodes
  std::vector<const ir::Value*> given;
  std::vector<const ir::Value*> constants;
};

bool IsGiven(const ir::Value& value) {
  return value.producer() == nullptr && value.initializer() == nullptr;
}

// What a node reads: its operands, and values that graphs in it capture.
void AddReads(const ir::Node& node, const ir::Graph& from,
              std::vector<const ir::Value*>& reads) {
  const auto add = [&](const ir::Value* value) {
    if (value != nullptr && value->graph() == &from) reads.push_back(value);
  };
  for (const ir::Value* input : node.inputs()) add(input);
  for (const ir::Graph* graph : node.subgraphs()) {
    for (const ir::Node& inner : graph->nodes()) AddReads(inner, from, reads);
    for (const ir::Value* output : graph->outputs()) add(output);
  }
}

std::vector<const ir::Value*> ReadsOf(const ir::Node& node) {
  std::vector<const ir::Value*> reads;
  AddReads(node, *node.graph(), reads);
  return reads;
}

template <typename Stops>
Cone ConeOf(const ir::Value* root, const Stops& stops) {
  Cone cone;
  Values seen = {root};
  std::vector<const ir::Value*> pending = {root};
  while (!pending.empty()) {
    const ir::Value* value = pending.back();
    pending.pop_back();
    const ir::Node* node = value->producer();
    // An initializer that is an input too may have been given otherwise.
    if (value->is_input() || IsGiven(*value) ||
        (value != root && node != nullptr && !ReadsOf(*node).empty() &&
         stops(value))) {
      cone.given.push_back(value);
      continue;
    }
    if (node == nullptr) {
      cone.constants.push_back(value);
      continue;
    }
    cone.values.insert(value);
    for (const ir::Value* read : ReadsOf(*node)) {
      if (seen.insert(read).second) pending.push_back(read);
    }
  }
  return cone;
}

// Values of A, as they are in a run on these inputs.
absl::StatusOr<absl::flat_hash_map<const ir::Value*, runtime::Tensor>> Capture(
    const ir::Model& a, std::vector<runtime::Tensor> inputs,
    const Values& wanted) {
  ASSIGN_OR_RETURN(const auto executor,
                   runtime::Executor::Create(a, {.row_kernels = false}));
  ASSIGN_OR_RETURN(runtime::Executor::Frame frame,
                   executor->Begin(std::move(inputs)));
  absl::flat_hash_map<const ir::Value*, runtime::Tensor> found;
  for (const ir::Value* input : a.graph.inputs()) {
    if (!wanted.contains(input)) continue;
    ASSIGN_OR_RETURN(found[input],
                     executor->Read(frame, executor->plan().slot(input)));
  }
  for (const runtime::Step& step : executor->plan().steps) {
    if (found.size() == wanted.size()) break;
    RETURN_IF_ERROR(executor->RunStep(frame, step));
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      const ir::Value* value = step.node->output(i);
      if (wanted.contains(value))
        found[value] = frame.values[static_cast<size_t>(step.outputs[i])];
    }
  }
  return found;
}

absl::StatusOr<proto::ModelPart> PartOf(const ir::Model& model,
                                        const Cone& cone) {
  proto::ModelPart part;
  part.model = &model;
  for (const ir::Node* node : ir::NodesInOrder(model.graph)) {
    for (const ir::Value* output : node->outputs()) {
      if (!cone.values.contains(output)) continue;
      part.nodes.push_back(node);
      break;
    }
  }
  for (const ir::Value* value : cone.constants) {
    ir::Tensor tensor = *value->initializer();
    if (tensor.inline_bytes() == nullptr) {
      ASSIGN_OR_RETURN(std::string bytes, model.reader->Read(tensor));
      tensor.elements = ir::InlineElements{std::move(bytes)};
    }
    tensor.name = value->name();
    part.initializers.push_back(std::move(tensor));
  }
  return part;
}

// The same place in both models.
struct Site {
  Cone a, b;
  // What both are given: values of A.
  std::vector<const ir::Value*> given;
  absl::flat_hash_map<const ir::Value*, std::string> names_a = {}, names_b = {};
};

// Gives the same value of both models the same name, which nothing else has.
class SiteNames {
 public:
  SiteNames(const ir::Model& a, const ir::Model& b, Site& site) : site_(site) {
    Add(a.graph);
    Add(b.graph);
  }

  void Join(const ir::Value& a, const ir::Value& b) {
    const auto [it, added] = site_.names_a.try_emplace(&a, a.name());
    const bool is_taken = a.name() != b.name() && counts_[a.name()] > 1;
    while (added && is_taken && counts_.contains(it->second)) it->second += "_";
    ++counts_[it->second];
    site_.names_b[&b] = it->second;
  }

 private:
  void Add(const ir::Graph& graph) {
    for (const ir::Value* value : graph.values()) ++counts_[value->name()];
    for (const ir::Node& node : graph.nodes()) {
      for (const ir::Graph* inner : node.subgraphs()) Add(*inner);
    }
  }

  Site& site_;
  absl::flat_hash_map<std::string, int> counts_;
};

ir::Tensor Named(const Site& site, const ir::Value& value,
                 const runtime::Tensor& tensor) {
  const auto renamed = site.names_a.find(&value);
  return {
      .name = renamed == site.names_a.end() ? value.name() : renamed->second,
      .type = tensor.type(),
      .dims = tensor.dims(),
      .elements = ir::InlineElements{tensor.ToBytes()}};
}

absl::StatusOr<Site> FindSite(const ir::Model& a, const ir::Model& b,
                              const Verification& done) {
  const auto& twins = done.structure.twins;
  Site site;
  site.b = ConeOf(done.first_value, [&](const ir::Value* value) {
    const auto twin = twins.find(value);
    // What A is to make cannot be given.
    return twin != twins.end() && twin->second != done.first_expected;
  });
  Values given;
  SiteNames names(a, b, site);
  for (const ir::Value* value : site.b.given) {
    const auto twin = twins.find(value);
    if (twin == twins.end()) {
      return absl::UnimplementedError(
          fmt::format("A has nothing like '{}'", ir::Printable(value->name())));
    }
    given.insert(twin->second);
    names.Join(*twin->second, *value);
  }
  names.Join(*done.first_expected, *done.first_value);
  site.a = ConeOf(done.first_expected, [&](const ir::Value* value) {
    return given.contains(value);
  });
  given.insert(site.a.given.begin(), site.a.given.end());
  for (const ir::Value* value : a.graph.values()) {
    if (given.contains(value)) site.given.push_back(value);
  }
  return site;
}

// The inputs of the round that showed the difference.
absl::StatusOr<std::vector<runtime::Tensor>> InputsOf(const ir::Model& a,
                                                      const Verification& done,
                                                      InputRequest request) {
  const Round& round = done.rounds[static_cast<size_t>(done.first_round)];
  request.seed = round.seed;
  request.scale = round.scale;
  for (const ChosenDim& dim : round.dims) request.dims[dim.symbol] = dim.value;
  ASSIGN_OR_RETURN(RunInputs gathered, GatherInputs(a, request));
  return std::move(gathered.tensors);
}

absl::Status WriteAll(const fs::path& folder, const std::string& a,
                      const std::string& b,
                      const std::vector<ir::Tensor>& inputs) {
  const fs::path data = folder / "test_data_set_0";
  proto::MadePaths made;
  RETURN_IF_ERROR(made.MakeFolders(data.string()));
  RETURN_IF_ERROR(proto::WriteNewFile((folder / "a.onnx").string(), a, made));
  RETURN_IF_ERROR(proto::WriteNewFile((folder / "b.onnx").string(), b, made));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string path = (data / fmt::format("input_{}.pb", i)).string();
    ASSIGN_OR_RETURN(const std::string bytes,
                     proto::SerializeTensor(inputs[i], path));
    RETURN_IF_ERROR(proto::WriteNewFile(path, bytes, made));
  }
  made.Keep();
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckReduceFolder(const std::string& folder) {
  std::error_code error;
  const fs::file_status status = fs::status(folder, error);
  if (status.type() == fs::file_type::not_found) return absl::OkStatus();
  const bool is_empty = !error && fs::is_empty(folder, error);
  if (error) {
    return proto::ErrnoError(error.value(),
                             "--reduce " + ir::Printable(folder));
  }
  if (is_empty) return absl::OkStatus();
  return absl::FailedPreconditionError(fmt::format(
      "--reduce {}: is there and not empty", ir::Printable(folder)));
}

absl::Status Reduce(const LoadedModel& a, const LoadedModel& b,
                    const Verification& done, const InputRequest& inputs,
                    const std::string& folder) {
  if (done.first_value == nullptr)
    return absl::FailedPreconditionError("no value differed on what was run");
  ASSIGN_OR_RETURN(Site site, FindSite(*a.model, *b.model, done));
  Values wanted(site.given.begin(), site.given.end());
  wanted.insert(done.first_expected);
  ASSIGN_OR_RETURN(std::vector<runtime::Tensor> tensors,
                   InputsOf(*a.model, done, inputs));
  ASSIGN_OR_RETURN(const auto data,
                   Capture(*a.model, std::move(tensors), wanted));
  ASSIGN_OR_RETURN(proto::ModelPart part_a, PartOf(*a.model, site.a));
  ASSIGN_OR_RETURN(proto::ModelPart part_b, PartOf(*b.model, site.b));
  for (const ir::Value* value : site.given)
    part_a.inputs.push_back(Named(site, *value, data.at(value)));
  part_a.outputs = {
      Named(site, *done.first_expected, data.at(done.first_expected))};
  part_b.inputs = part_a.inputs;
  part_b.outputs = part_a.outputs;
  part_a.names = std::move(site.names_a);
  part_b.names = std::move(site.names_b);
  ASSIGN_OR_RETURN(const std::string bytes_a,
                   proto::SerializePart(*a.file, part_a));
  ASSIGN_OR_RETURN(const std::string bytes_b,
                   proto::SerializePart(*b.file, part_b));
  return WriteAll(folder, bytes_a, bytes_b, part_a.inputs);
}

}  // namespace addnorm::tool
