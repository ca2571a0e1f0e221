// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/run_inputs.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "passes/ir/printable.h"
#include "passes/ir/status_macros.h"
#include "proto/errors.h"
#include "proto/tensor_file.h"
#include "proto/whole_file.h"
#include "tool/input_values.h"
#include "tool/npy.h"
#include "tool/suggestion.h"

namespace addnorm::tool {
namespace {

namespace fs = std::filesystem;
using runtime::Tensor;

// A file system's limit of 255 bytes, without ".npy" and a number.
constexpr size_t kLongestStem = 240;

// Any byte but 0 and 1 in a bool is no value of C++'s type.
absl::Status CheckBools(const Tensor& tensor) {
  if (tensor.type() != ir::DataType::kBool) return absl::OkStatus();
  const auto bytes = std::span(tensor.data<uint8_t>(), tensor.byte_size());
  if (std::all_of(bytes.begin(), bytes.end(), [](uint8_t b) { return b < 2; }))
    return absl::OkStatus();
  return absl::InvalidArgumentError("has bools that are neither 0 nor 1");
}

absl::StatusOr<Tensor> ReadPb(const std::string& path) {
  ASSIGN_OR_RETURN(ir::Tensor tensor, proto::ReadTensorFile(path));
  auto& held = std::get<ir::InlineElements>(tensor.elements);
  absl::StatusOr<Tensor> read =
      Tensor::FromBytes(tensor.type, std::move(tensor.dims),
                        std::move(held.bytes), /*meter=*/nullptr);
  if (!read.ok()) return proto::WithContext(read.status(), path);
  return read;
}

absl::StatusOr<Tensor> ReadNpy(const std::string& path, ir::DataType declared) {
  ASSIGN_OR_RETURN(const std::string bytes, proto::ReadWholeFile(path));
  absl::StatusOr<Tensor> read = TensorFromNpy(bytes, declared);
  if (!read.ok()) return proto::WithContext(read.status(), path);
  return read;
}

bool Fits(const ir::TensorType& declared, const Tensor& tensor) {
  if (declared.known() && declared.element != tensor.type()) return false;
  if (!declared.shape) return true;
  ir::Shape shape(tensor.dims().begin(), tensor.dims().end());
  return !ir::ProvablyDiffer(*declared.shape, shape);
}

// "what --inputs DIR may hold", for a model whose inputs are these.
std::string FolderHint(const ir::Model& model) {
  constexpr size_t kShown = 4;
  std::string hint = "--inputs DIR can hold ";
  const auto& inputs = model.graph.inputs();
  const std::vector<std::string> stems = FileStems(inputs);
  for (size_t i = 0; i < std::min(inputs.size(), kShown); ++i) {
    hint += fmt::format("{}input_{}.pb or {}.npy for '{}' ({})",
                        i == 0 ? "" : "; ", i, ir::Printable(stems[i]),
                        ir::Printable(inputs[i]->name()),
                        ir::ToString(inputs[i]->type));
  }
  if (inputs.size() > kShown)
    hint += fmt::format("; and so on for {} more", inputs.size() - kShown);
  return hint;
}

// Reads the inputs that a folder has.
class FolderReader {
 public:
  FolderReader(const ir::Model& model, std::string folder, RunInputs& out)
      : model_(model), folder_(std::move(folder)), out_(out) {}

  absl::Status Run() {
    std::error_code error;
    for (fs::directory_iterator it(folder_, error), end; it != end && !error;
         it.increment(error))
      files_.insert(it->path().filename().string());
    if (error) return proto::ErrnoError(error.value(), folder_);
    const auto& inputs = model_.graph.inputs();
    const std::vector<std::string> stems = FileStems(inputs);
    for (size_t i = 0; i < inputs.size(); ++i) {
      choices_.push_back(fmt::format("input_{}.pb", i));
      choices_.push_back(stems[i] + ".npy");
    }
    RETURN_IF_ERROR(CheckNames());
    for (size_t i = 0; i < inputs.size(); ++i)
      RETURN_IF_ERROR(ReadInput(*inputs[i], i, stems[i]));
    return absl::OkStatus();
  }

 private:
  // What `run --outputs` and test data sets have beside the inputs.
  std::set<std::string> OutputFiles() const {
    const auto& outputs = model_.graph.outputs();
    std::set<std::string> names;
    for (const std::string& stem : FileStems(outputs))
      names.insert(stem + ".npy");
    for (const std::string& file : files_) {
      if (file.starts_with("output_") && file.ends_with(".pb"))
        names.insert(file);
    }
    return names;
  }

  absl::Status CheckNames() const {
    const std::set<std::string> outputs = OutputFiles();
    const std::set<std::string> inputs(choices_.begin(), choices_.end());
    bool has_input = inputs.empty();
    for (const std::string& file : files_) {
      const bool is_input = inputs.contains(file);
      has_input |= is_input;
      if (is_input || outputs.contains(file) ||
          !(file.ends_with(".npy") || file.ends_with(".pb")))
        continue;
      return Refused(fmt::format("{}: is the file of no input{}",
                                 (fs::path(folder_) / file).string(),
                                 Suggestion(file, choices_)));
    }
    if (has_input) return absl::OkStatus();
    return Refused(fmt::format("{}: has no file of an input, found {}", folder_,
                               FoundText()));
  }

  std::string FoundText() const {
    constexpr size_t kShown = 5;
    if (files_.empty()) return "no file at all";
    std::string text;
    size_t count = 0;
    for (const std::string& file : files_) {
      if (count++ == kShown)
        return text + fmt::format(" and {} more", files_.size() - kShown);
      text +=
          fmt::format("{}'{}'", text.empty() ? "" : ", ", ir::Printable(file));
    }
    return text;
  }

  absl::Status Refused(std::string_view what) const {
    return proto::WithHint(
        absl::FailedPreconditionError(std::string(what)),
        choices_.empty() ? "the model has no inputs" : FolderHint(model_));
  }

  absl::Status ReadInput(const ir::Value& input, size_t i,
                         const std::string& stem) {
    const std::string pb = fmt::format("input_{}.pb", i);
    const std::string npy = stem + ".npy";
    const bool has_pb = files_.erase(pb) > 0;
    const bool has_npy = files_.erase(npy) > 0;
    if (!has_pb && !has_npy) return absl::OkStatus();
    const std::string path = (fs::path(folder_) / (has_pb ? pb : npy)).string();
    if (has_pb && has_npy) {
      return absl::FailedPreconditionError(fmt::format(
          "{}: {} is there too, for the same input\nhint: remove one of them",
          path, ir::Printable(npy)));
    }
    ASSIGN_OR_RETURN(Tensor tensor,
                     has_pb ? ReadPb(path) : ReadNpy(path, input.type.element));
    absl::Status status = CheckBools(tensor);
    if (!status.ok()) return proto::WithContext(status, path);
    if (!Fits(input.type, tensor)) {
      return absl::InvalidArgumentError(
          fmt::format("{}: input '{}': expected {}, found {}\nhint: {}", path,
                      ir::Printable(input.name()), ir::ToString(input.type),
                      Describe(tensor), FolderHint(model_)));
    }
    out_.tensors[i] = std::move(tensor);
    out_.origins[i] = has_pb ? pb : npy;
    return absl::OkStatus();
  }

  const ir::Model& model_;
  std::string folder_;
  RunInputs& out_;
  std::set<std::string> files_;
  std::vector<std::string> choices_;  // what files can be called
};

absl::StatusOr<Tensor> GenerateInput(const ir::Model& model,
                                     const ir::Value& input,
                                     const SymbolDims& dims,
                                     const InputRequest& request,
                                     std::string& origin) {
  const int64_t past = dims.First(DimRole::kPast).value_or(0);
  const int64_t total =
      dims.First(DimRole::kTotal)
          .value_or(past + dims.First(DimRole::kSequence).value_or(0));
  InputValues values = ValuesFor(input, past, total);
  values.scale = request.scale;
  origin = "generated: " + values.description;
  absl::Status status = absl::UnimplementedError(fmt::format(
      "cannot be generated, its type is {}", ir::ToString(input.type)));
  if (input.type.known() && input.type.shape) {
    absl::StatusOr<Tensor> tensor =
        Generate(values, input, dims.ShapeOf(*input.type.shape), request.seed);
    if (tensor.ok()) return tensor;
    status = tensor.status();
  }
  return proto::WithHint(
      proto::WithContext(
          status, fmt::format("input '{}'", ir::Printable(input.name()))),
      FolderHint(model));
}

std::string SafeStem(std::string_view name) {
  std::string stem(name.substr(0, kLongestStem));
  for (char& c : stem) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || c == '/' || c == '\\' || c == ':')
      c = '_';
  }
  if (stem.empty()) stem = "_";
  if (stem[0] == '.') stem[0] = '_';
  return stem;
}

}  // namespace

std::vector<std::string> FileStems(const std::vector<ir::Value*>& values) {
  std::vector<std::string> stems;
  std::set<std::string> taken;
  for (const ir::Value* value : values) {
    const std::string stem = SafeStem(value->name());
    std::string unique = stem;
    for (int n = 2; !taken.insert(unique).second; ++n)
      unique = fmt::format("{}_{}", stem, n);
    stems.push_back(unique);
  }
  return stems;
}

absl::StatusOr<RunInputs> GatherInputs(const ir::Model& model,
                                       const InputRequest& request) {
  const auto& inputs = model.graph.inputs();
  RunInputs out;
  out.tensors.resize(inputs.size());
  out.origins.resize(inputs.size(), "initializer");
  if (!request.folder.empty())
    RETURN_IF_ERROR(FolderReader(model, request.folder, out).Run());
  SymbolDims dims;
  RETURN_IF_ERROR(dims.Choose(model.graph, out.tensors, request.dims));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!out.tensors[i].is_absent() || inputs[i]->initializer() != nullptr)
      continue;
    ASSIGN_OR_RETURN(out.tensors[i], GenerateInput(model, *inputs[i], dims,
                                                   request, out.origins[i]));
  }
  out.dims = dims.chosen();
  out.warnings = dims.warnings();
  return out;
}

std::string GuessHint(const absl::Status& failure,
                      const std::vector<ChosenDim>& dims) {
  std::vector<std::string> guesses;
  for (const ChosenDim& dim : dims) {
    if (dim.origin == "default")
      guesses.push_back(
          fmt::format("{}={}", ir::Printable(dim.symbol), dim.value));
  }
  if (guesses.empty() || !absl::IsInvalidArgument(failure)) return "";
  return fmt::format("{} {}: --dim NAME=N sets {}", fmt::join(guesses, ", "),
                     guesses.size() == 1 ? "is a guess" : "are guesses",
                     guesses.size() == 1 ? "another" : "others");
}

absl::StatusOr<DimValues> ParseDims(const std::vector<std::string>& words) {
  DimValues dims;
  for (const std::string& word : words) {
    const size_t equals = word.rfind('=');
    const std::string_view number =
        equals == std::string::npos ? ""
                                    : std::string_view(word).substr(equals + 1);
    int64_t value = -1;
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), value);
    if (equals == 0 || error != std::errc() || value < 0 ||
        end != number.data() + number.size()) {
      return absl::FailedPreconditionError(
          fmt::format("--dim {}: expected NAME=NUMBER, such as batch=2",
                      ir::Printable(word)));
    }
    const auto [it, added] = dims.try_emplace(word.substr(0, equals), value);
    if (added || it->second == value) continue;
    return absl::FailedPreconditionError(
        fmt::format("--dim {}: is given twice, as {} and {}",
                    ir::Printable(it->first), it->second, value));
  }
  return dims;
}

int DefaultThreads() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace addnorm::tool
