// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/bench_against.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "fmt/format.h"
#include "passes/ir/printable.h"
#include "passes/ir/status_macros.h"
#include "proto/errors.h"
#include "runtime/executor.h"
#include "tool/bench_ort.h"

namespace addnorm::tool {
namespace {

using runtime::Executor;
using runtime::Tensor;
using Values = std::vector<ir::Value*>;

std::optional<size_t> PlaceOf(const std::string& name, const Values& values) {
  const auto it = std::find_if(
      values.begin(), values.end(),
      [&](const ir::Value* value) { return value->name() == name; });
  if (it == values.end()) return std::nullopt;
  return static_cast<size_t>(it - values.begin());
}

// Names, as messages list them.
std::string NamesOf(const Values& values) {
  std::string names;
  for (const ir::Value* value : values) {
    names += fmt::format("{}'{}'", names.empty() ? "" : ", ",
                         ir::Printable(value->name()));
  }
  return names.empty() ? "none" : names;
}

// Whether the input can be given what another model's input is given.
absl::Status CheckInput(const ir::Value& input, const Tensor& given) {
  const ir::TensorType& type = input.type;
  bool fits = !type.known() || type.element == given.type();
  if (fits && type.shape) {
    fits = type.shape->size() == given.dims().size();
    for (size_t i = 0; fits && i < given.dims().size(); ++i)
      fits =
          (*type.shape)[i].value.value_or(given.dims()[i]) == given.dims()[i];
  }
  if (fits) return absl::OkStatus();
  return proto::InvalidModel("input '{}' is {}, expected {} as in MODEL",
                             ir::Printable(input.name()), ir::ToString(type),
                             runtime::Describe(given));
}

// How a model's inputs and outputs are the other's.
struct Interface {
  std::vector<Tensor> inputs;   // in the model's order
  std::vector<size_t> outputs;  // of each of the other's, its place here
};

absl::StatusOr<Interface> Match(const ir::Graph& expected,
                                const ir::Graph& graph,
                                const std::vector<Tensor>& inputs) {
  Interface match;
  for (const ir::Value* input : expected.inputs()) {
    if (PlaceOf(input->name(), graph.inputs()) ||
        input->initializer() != nullptr)
      continue;
    return proto::InvalidModel("has no input '{}', which MODEL has; found {}",
                               ir::Printable(input->name()),
                               NamesOf(graph.inputs()));
  }
  for (const ir::Value* input : graph.inputs()) {
    const auto place = PlaceOf(input->name(), expected.inputs());
    match.inputs.push_back(place ? inputs[*place] : Tensor());
    if (!match.inputs.back().is_absent()) {
      RETURN_IF_ERROR(CheckInput(*input, match.inputs.back()));
    } else if (input->initializer() == nullptr) {
      return proto::InvalidModel("input '{}' is not one of MODEL's: {}",
                                 ir::Printable(input->name()),
                                 NamesOf(expected.inputs()));
    }
  }
  for (const ir::Value* output : expected.outputs()) {
    const auto place = PlaceOf(output->name(), graph.outputs());
    if (!place || graph.outputs().size() != expected.outputs().size()) {
      return proto::InvalidModel("has outputs {}, expected {} as in MODEL",
                                 NamesOf(graph.outputs()),
                                 NamesOf(expected.outputs()));
    }
    match.outputs.push_back(*place);
  }
  return match;
}

std::vector<Tensor> InOrder(const std::vector<size_t>& places,
                            const std::vector<Tensor>& tensors) {
  std::vector<Tensor> ordered;
  for (const size_t place : places) ordered.push_back(tensors[place]);
  return ordered;
}

// A model in this runtime, with its row kernels.
struct OwnSide {
  LoadedModel loaded;
  Interface interface;
  std::unique_ptr<Executor> executor;
};

absl::StatusOr<OtherModel> OwnModel(std::string name, LoadedModel loaded,
                                    Interface interface,
                                    const Surroundings& around) {
  auto side = std::make_shared<OwnSide>();
  side->loaded = std::move(loaded);
  side->interface = std::move(interface);
  ASSIGN_OR_RETURN(
      side->executor,
      Executor::Create(*side->loaded.model, {.threads = around.threads,
                                             .weight_pool = &around.weights}));
  OtherModel model;
  model.name = std::move(name);
  model.run = [side] {
    return side->executor->Run(side->interface.inputs).status();
  };
  model.results = [side]() -> absl::StatusOr<std::vector<Tensor>> {
    ASSIGN_OR_RETURN(const std::vector<Tensor> outputs,
                     side->executor->Run(side->interface.inputs));
    return InOrder(side->interface.outputs, outputs);
  };
  return model;
}

// A session and what it is given.
class SessionSide {
 public:
  absl::Status SetUp(const OnnxRuntime& ort, OrtSide side,
                     const Interface& interface) {
    ort_ = &ort;
    session_ = std::move(side.session);
    interface_ = interface;
    for (Tensor& input : interface_.inputs) {
      if (input.is_absent()) continue;
      ASSIGN_OR_RETURN(
          values_.emplace_back(),
          ort.Wrap(input.type(), input.dims(), input.mutable_data<std::byte>(),
                   input.byte_size()));
    }
    for (const OrtValue& value : values_) handles_.push_back(value.handle());
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<OrtValue>> Run() {
    std::vector<void*> outputs(interface_.outputs.size(), nullptr);
    const absl::Status status = session_->Run(handles_, outputs);
    std::vector<OrtValue> owners;
    for (void* output : outputs) owners.emplace_back(ort_, output);
    RETURN_IF_ERROR(status);
    return owners;
  }

  absl::StatusOr<std::vector<Tensor>> Results() {
    ASSIGN_OR_RETURN(const std::vector<OrtValue> outputs, Run());
    std::vector<Tensor> tensors;
    for (const OrtValue& output : outputs) {
      ASSIGN_OR_RETURN(tensors.emplace_back(), output.ToTensor());
    }
    return InOrder(interface_.outputs, tensors);
  }

 private:
  const OnnxRuntime* ort_ = nullptr;
  std::unique_ptr<OrtSession> session_;
  Interface interface_;
  std::vector<OrtValue> values_;
  std::vector<const void*> handles_;
};

absl::StatusOr<OtherModel> OrtModelArm(const OnnxRuntime& ort, OrtSide ort_side,
                                       const Interface& interface) {
  OtherModel model;
  model.name = ort_side.name;
  model.is_ort = true;
  auto side = std::make_shared<SessionSide>();
  RETURN_IF_ERROR(side->SetUp(ort, std::move(ort_side), interface));
  // A model that it can load can still be one that it cannot run.
  RETURN_IF_ERROR(side->Run().status());
  model.run = [side] { return side->Run().status(); };
  model.results = [side] { return side->Results(); };
  return model;
}

class Loader {
 public:
  Loader(const AgainstRequest& request, const Surroundings& around)
      : request_(request), around_(around) {}

  absl::Status AddOrt(const LoadedModel& loaded, const Interface& interface) {
    if (request_.ort == nullptr) return absl::OkStatus();
    ASSIGN_OR_RETURN(OrtSides sides, LoadOrtSides(*request_.ort, loaded.file,
                                                  RequestOf(interface)));
    AddSides(std::move(sides), interface);
    return absl::OkStatus();
  }

  absl::Status AddFile(const LoadedModel& expected,
                       const std::shared_ptr<proto::ModelFile>& file,
                       const std::vector<Tensor>& inputs) {
    const std::string name =
        std::filesystem::path(file->name()).filename().string();
    ASSIGN_OR_RETURN(LoadedModel loaded, LoadToRun(file));
    auto matched = Match(expected.model->graph, loaded.model->graph, inputs);
    if (!matched.ok())
      return proto::WithContext(matched.status(), file->name());
    const Interface& interface = *matched;
    if (request_.ort != nullptr) {
      OrtSides sides;
      AddOrtSide(*request_.ort, loaded, "ort " + name, RequestOf(interface),
                 sides);
      AddSides(std::move(sides), interface);
    }
    ASSIGN_OR_RETURN(OtherModel model,
                     OwnModel(name, std::move(loaded), interface, around_));
    others_.models.push_back(std::move(model));
    return absl::OkStatus();
  }

  OtherModels Take() { return std::move(others_); }

 private:
  OrtRequest RequestOf(const Interface& interface) const {
    OrtRequest request{.threads = around_.threads, .cores = around_.cores};
    for (const Tensor& input : interface.inputs)
      request.is_given.push_back(!input.is_absent());
    return request;
  }

  void AddSides(OrtSides sides, const Interface& interface) {
    for (std::string& reason : sides.not_run)
      others_.not_run.push_back(std::move(reason));
    for (OrtSide& side : sides.sides) {
      const std::string name = side.name;
      auto model = OrtModelArm(*request_.ort, std::move(side), interface);
      if (model.ok()) {
        others_.models.push_back(*std::move(model));
      } else {
        others_.not_run.push_back(
            fmt::format("{}: {}", name, std::string(model.status().message())));
      }
    }
  }

  const AgainstRequest& request_;
  const Surroundings& around_;
  OtherModels others_;
};

}  // namespace

absl::StatusOr<OtherModels> LoadOthers(const LoadedModel& loaded,
                                       const std::vector<Tensor>& inputs,
                                       const AgainstRequest& request,
                                       const Surroundings& around) {
  Loader loader(request, around);
  ASSIGN_OR_RETURN(const Interface own,
                   Match(loaded.model->graph, loaded.model->graph, inputs));
  RETURN_IF_ERROR(loader.AddOrt(loaded, own));
  for (const auto& file : request.files)
    RETURN_IF_ERROR(loader.AddFile(loaded, file, inputs));
  return loader.Take();
}

}  // namespace addnorm::tool
