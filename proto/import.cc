// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/import.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "google/protobuf/arena.h"
#include "passes/ir/printable.h"
#include "passes/ir/status_macros.h"
#include "proto/errors.h"
#include "proto/import_checks.h"
#include "proto/import_graph.h"
#include "proto/skeleton.h"
#include "proto/tensor_reader.h"
#include "proto/unmodelled_tensors.h"

namespace addnorm::proto {
namespace {

// A domain that is listed twice has its last version, for every reader we know.
void ImportOpsets(const onnx::ModelProto& proto, Imported& imported) {
  std::vector<ir::OpsetImport>& imports = imported.model->opset_imports;
  for (const auto& import : proto.opset_import()) {
    const std::string domain =
        import.domain() == "ai.onnx" ? "" : import.domain();
    const auto known =
        std::find_if(imports.begin(), imports.end(),
                     [&](const auto& i) { return i.domain == domain; });
    if (known == imports.end()) {
      imports.push_back({.domain = domain, .version = import.version()});
      continue;
    }
    if (known->version != import.version()) {
      imported.warnings.push_back(
          fmt::format("opset_import lists domain '{}' as version {} and as {}; "
                      "the last counts",
                      ir::Printable(domain), known->version, import.version()));
    }
    known->version = import.version();
  }
}

// Names that a training graph reads or returns, in graphs inside it too.
void CollectNames(const onnx::GraphProto& graph,
                  absl::flat_hash_set<std::string>& names) {
  std::vector<const onnx::GraphProto*> stack = {&graph};
  while (!stack.empty()) {
    const onnx::GraphProto* top = stack.back();
    stack.pop_back();
    for (const auto& output : top->output()) names.insert(output.name());
    for (const auto& node : top->node()) {
      names.insert(node.input().begin(), node.input().end());
      for (const auto& attribute : node.attribute()) {
        if (attribute.has_g()) stack.push_back(&attribute.g());
        for (const auto& inner : attribute.graphs()) stack.push_back(&inner);
      }
    }
  }
}

// What training_info reads or binds must stay, though no node reads it.
void PinTrainingValues(const onnx::ModelProto& proto, ir::Model& model) {
  absl::flat_hash_set<std::string> names;
  for (const auto& training : proto.training_info()) {
    CollectNames(training.initialization(), names);
    CollectNames(training.algorithm(), names);
    for (const auto* bindings :
         {&training.initialization_binding(), &training.update_binding()}) {
      for (const auto& binding : *bindings) {
        names.insert(binding.key());
        names.insert(binding.value());
      }
    }
  }
  for (const std::string& name : names) {
    if (ir::Value* value = model.graph.FindValue(name))
      model.graph.MarkPinned(value);
  }
}

absl::Status ImportModel(const ModelFile& file, const onnx::ModelProto& proto,
                         Imported& imported) {
  const Document& document = file.document();
  const RecordId root = kRoot;
  const std::vector<RecordId> graphs =
      document.Children({&root, 1}, Kind::kGraph);
  if (graphs.empty())
    return InvalidModel(
        "has no graph\nhint: the file may be incomplete: copy or download it "
        "again");
  ir::Model& model = *imported.model;
  model.ir_version = proto.ir_version();
  model.producer_name = proto.producer_name();
  model.producer_version = proto.producer_version();
  ImportOpsets(proto, imported);
  GraphImporter importer(file, imported.warnings);
  RETURN_IF_ERROR(importer.ImportGraph(proto.graph(), graphs, model.graph));
  PinTrainingValues(proto, model);
  const std::vector<RecordId> functions =
      document.Children({&root, 1}, Kind::kFunction);
  for (int i = 0; i < proto.functions_size(); ++i) {
    ir::Function& function = model.functions.emplace_back();
    function.body.SetPlace(&model, &function, nullptr);
    const absl::Status status = importer.ImportFunction(
        proto.functions(i), functions[static_cast<size_t>(i)], function);
    if (!status.ok()) {
      return WithContext(
          status, fmt::format("function '{}'", ir::Printable(function.name)));
    }
  }
  RETURN_IF_ERROR(CheckFunctions(model));
  RETURN_IF_ERROR(CheckAcyclic(model));
  return CheckUnmodelledTensors(file, proto);
}

}  // namespace

absl::StatusOr<Imported> Import(std::shared_ptr<const ModelFile> file) {
  Imported imported{.model = std::make_unique<ir::Model>(), .warnings = {}};
  imported.model->path = file->name();
  {
    google::protobuf::Arena arena;
    auto* skeleton =
        google::protobuf::Arena::CreateMessage<onnx::ModelProto>(&arena);
    absl::Status status = ParseSkeleton(*file, *skeleton);
    if (status.ok()) status = ImportModel(*file, *skeleton, imported);
    if (!status.ok()) return WithContext(status, file->name());
  }
  imported.model->reader = MakeTensorReader(std::move(file));
  return imported;
}

}  // namespace addnorm::proto
