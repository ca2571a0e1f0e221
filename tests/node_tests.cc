// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs ONNX's backend node tests in one process, with the suite's own
// tolerance.
//
//   addnorm_node_tests FOLDER [NAME…]   only tests whose names have a NAME in
//   them; prints what failed, and per op passed / failed / unsupported. Exit 0
//   if all pass, 1 if not, 77 if the folder is not there.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "passes/ir/status_macros.h"
#include "proto/import.h"
#include "proto/model_file.h"
#include "proto/tensor_file.h"
#include "runtime/executor.h"

namespace addnorm {
namespace {

namespace fs = std::filesystem;
using runtime::Tensor;

absl::StatusOr<std::vector<Tensor>> ReadTensors(const fs::path& folder,
                                                const std::string& prefix) {
  std::vector<Tensor> tensors;
  while (true) {
    const fs::path path =
        folder / fmt::format("{}_{}.pb", prefix, tensors.size());
    if (!fs::exists(path)) return tensors;
    ASSIGN_OR_RETURN(const ir::Tensor tensor,
                     proto::ReadTensorFile(path.string()));
    ASSIGN_OR_RETURN(tensors.emplace_back(),
                     Tensor::FromBytes(tensor.type, tensor.dims,
                                       *tensor.inline_bytes(), nullptr));
  }
}

template <typename T>
bool Close(const Tensor& want, const Tensor& have, double relative) {
  for (int64_t i = 0; i < want.count(); ++i) {
    const double w = static_cast<double>(runtime::Widen(want.data<T>()[i]));
    const double h = static_cast<double>(runtime::Widen(have.data<T>()[i]));
    if (std::isnan(w) && std::isnan(h)) continue;
    if (w == h) continue;
    if (!(std::abs(w - h) <= 1e-7 + relative * std::abs(w))) return false;
  }
  return true;
}

// The suite's own: floating-point types within 1e-3, others equal.
bool ValuesAgree(const Tensor& want, const Tensor& have) {
  switch (want.type()) {
    case ir::DataType::kFloat:
      return Close<float>(want, have, 1e-3);
    case ir::DataType::kDouble:
      return Close<double>(want, have, 1e-3);
    case ir::DataType::kFloat16:
      return Close<runtime::Half>(want, have, 1e-3);
    case ir::DataType::kBFloat16:
      return Close<runtime::BFloat16>(want, have, 0x1p-6);
    default:
      return want.ToBytes() == have.ToBytes();
  }
}

absl::Status Compare(const std::vector<Tensor>& want,
                     const std::vector<Tensor>& have) {
  for (size_t i = 0; i < want.size(); ++i) {
    if (i >= have.size())
      return absl::DataLossError(fmt::format("output {} is missing", i));
    if (want[i].type() != have[i].type() || want[i].dims() != have[i].dims()) {
      return absl::DataLossError(fmt::format("output {} is {}, expected {}", i,
                                             Describe(have[i]),
                                             Describe(want[i])));
    }
    if (!ValuesAgree(want[i], have[i]))
      return absl::DataLossError(fmt::format("output {}: values differ", i));
  }
  return absl::OkStatus();
}

absl::Status RunTest(const fs::path& folder) {
  ASSIGN_OR_RETURN(const std::shared_ptr<proto::ModelFile> file,
                   proto::ModelFile::Open((folder / "model.onnx").string()));
  ASSIGN_OR_RETURN(const proto::Imported imported, proto::Import(file));
  ASSIGN_OR_RETURN(std::vector<Tensor> inputs,
                   ReadTensors(folder / "test_data_set_0", "input"));
  ASSIGN_OR_RETURN(const std::vector<Tensor> expected,
                   ReadTensors(folder / "test_data_set_0", "output"));
  inputs.resize(imported.model->graph.inputs().size());
  ASSIGN_OR_RETURN(const auto executor,
                   runtime::Executor::Create(*imported.model, {.threads = 2}));
  ASSIGN_OR_RETURN(const std::vector<Tensor> outputs,
                   executor->Run(std::move(inputs)));
  return Compare(expected, outputs);
}

struct Count {
  int passed = 0, failed = 0, unsupported = 0;
};

// "test_reduce_sum_…" tells no op, so the first node of the model does.
std::string OpOf(const fs::path& folder) {
  const auto file = proto::ModelFile::Open((folder / "model.onnx").string());
  if (!file.ok()) return "?";
  const auto imported = proto::Import(*file);
  if (!imported.ok() || imported->model->graph.nodes().empty()) return "?";
  return imported->model->graph.nodes().back().op_type();
}

int Main(const std::vector<std::string>& arguments) {
  if (arguments.empty() || !fs::is_directory(arguments[0])) {
    fmt::print("skipped: there is no folder of node tests\n");
    return 77;
  }
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(arguments[0])) {
    const std::string name = entry.path().filename().string();
    const bool wanted =
        arguments.size() == 1 ||
        std::any_of(arguments.begin() + 1, arguments.end(),
                    [&](const std::string& part) {
                      return name.find(part) != std::string::npos;
                    });
    if (wanted && fs::exists(entry.path() / "model.onnx"))
      folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  std::map<std::string, Count> by_op;
  Count all;
  for (const fs::path& folder : folders) {
    const absl::Status status = RunTest(folder);
    int Count::*kind = status.ok()                     ? &Count::passed
                       : absl::IsUnimplemented(status) ? &Count::unsupported
                                                       : &Count::failed;
    ++(by_op[OpOf(folder)].*kind);
    ++(all.*kind);
    if (!status.ok()) {
      fmt::print("{}: {}\n", folder.filename().string(),
                 std::string(status.message()));
    }
  }
  for (const auto& [op, count] : by_op) {
    fmt::print("{:24} {:4} passed {:4} failed {:4} unsupported\n", op,
               count.passed, count.failed, count.unsupported);
  }
  fmt::print("node tests: {} passed, {} failed, {} unsupported\n", all.passed,
             all.failed, all.unsupported);
  return all.failed + all.unsupported == 0 && all.passed > 0 ? 0 : 1;
}

}  // namespace
}  // namespace addnorm

int main(int argc, char** argv) {
  return addnorm::Main({argv + 1, argv + argc});
}
