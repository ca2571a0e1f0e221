// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/kernel_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "fmt/format.h"
#include "passes/fused_op.h"
#include "passes/ir/status_macros.h"
#include "runtime/element_types.h"
#include "runtime/executor.h"
#include "runtime/kernels/simd_target.h"
#include "tool/report.h"

namespace addnorm::tool {
namespace {

using runtime::Tensor;

// So many elements that several threads take part.
constexpr int64_t kThreadedElements = 70'000;
constexpr int kThreads = 4;

// Kinds of rows, taken in turn.
enum class RowKind {
  kNormal,
  kMixed,
  kZeros,
  kDenormal,
  kHuge,
  kTiny,
  kInfinite,
  kNan
};
constexpr int64_t kRowKinds = 8;

// A number that shows something: signed zeros, denormals of each type, squares
// that overflow, infinities, NaN.
constexpr double kSpecials[] = {0.0,
                                -0.0,
                                6e-8,
                                -1e-40,
                                5e-324,
                                3e4,
                                -6e4,
                                1e20,
                                -3e38,
                                1e200,
                                1.0,
                                -1.0,
                                std::numeric_limits<double>::infinity(),
                                -std::numeric_limits<double>::infinity(),
                                std::numeric_limits<double>::quiet_NaN()};

// Numbers of its own, so that a seed means the same on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  // In [0, 1).
  double Uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  // About normally distributed.
  double Normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += Uniform();
    return sum;
  }
  double Special() { return kSpecials[engine_() % std::size(kSpecials)]; }

 private:
  std::mt19937_64 engine_;
};

double Element(RowKind kind, Random& random) {
  const double normal = random.Normal();
  switch (kind) {
    case RowKind::kMixed:
      return random.Uniform() < 0.2 ? random.Special() : normal;
    case RowKind::kZeros:
      return std::copysign(0.0, normal);
    case RowKind::kDenormal:
      return normal * 1e-40;
    case RowKind::kHuge:
      return normal * 1e19;
    case RowKind::kTiny:
      return normal * 1e-22;
    case RowKind::kInfinite:
      return random.Uniform() < 0.01 ? kSpecials[12] : normal;
    case RowKind::kNan:
      return random.Uniform() < 0.01 ? kSpecials[14] : normal;
    case RowKind::kNormal:
      break;
  }
  return normal;
}

template <typename T>
void Store(double value, int64_t i, Tensor& tensor) {
  if constexpr (std::is_same_v<T, double>) {
    tensor.mutable_data<T>()[i] = value;
  } else {
    tensor.mutable_data<T>()[i] = runtime::Narrow<T>(static_cast<float>(value));
  }
}

template <typename... Ts>
void StoreAs(double value, int64_t i, Tensor& tensor) {
  (void)((tensor.type() == runtime::kTypeOf<Ts> &&
          (Store<Ts>(value, i, tensor), true)) ||
         ...);
}

absl::StatusOr<Tensor> MakeRows(ir::DataType type, runtime::Dims dims,
                                Random& random) {
  const int64_t length = dims.back();
  ASSIGN_OR_RETURN(Tensor tensor,
                   Tensor::Create(type, std::move(dims), nullptr));
  for (int64_t i = 0; i < tensor.count(); ++i) {
    const auto kind = static_cast<RowKind>(i / length % kRowKinds);
    StoreAs<float, double, runtime::Half, runtime::BFloat16>(
        Element(kind, random), i, tensor);
  }
  return tensor;
}

absl::StatusOr<Tensor> Copy(const Tensor& tensor) {
  ASSIGN_OR_RETURN(Tensor copy,
                   Tensor::Create(tensor.type(), tensor.dims(), nullptr));
  std::copy_n(tensor.data<std::byte>(), tensor.byte_size(),
              copy.mutable_data<std::byte>());
  return copy;
}

// Whether a call ran as one kernel: then no inner node was seen.
class NodeCounter : public runtime::RunObserver {
 public:
  void BeforeNode(const runtime::Step&, std::span<const Tensor>) override {
    ++nodes;
  }
  int nodes = 0;
};

class KernelChecker {
 public:
  static absl::StatusOr<std::unique_ptr<KernelChecker>> Create(
      const ir::Model& model, uint64_t seed);

  absl::StatusOr<KernelResult> Check(const FusedCall& call);

 private:
  explicit KernelChecker(uint64_t seed) : seed_(seed) {}

  absl::Status CheckLength(const FusedCall& call, int64_t rows, int64_t length,
                           KernelResult& result);
  absl::Status CheckOne(const FusedCall& call, const std::vector<Tensor>& in,
                        const std::vector<Tensor>& expected,
                        runtime::Executor& executor, bool in_place,
                        const std::string& where, KernelResult& result);

  uint64_t seed_;
  NodeCounter counter_;
  std::unique_ptr<runtime::Executor> by_nodes_, one_thread_, threads_;
};

absl::StatusOr<std::unique_ptr<KernelChecker>> KernelChecker::Create(
    const ir::Model& model, uint64_t seed) {
  std::unique_ptr<KernelChecker> checker(new KernelChecker(seed));
  ASSIGN_OR_RETURN(
      checker->by_nodes_,
      runtime::Executor::Create(model, {.threads = 1, .row_kernels = false}));
  ASSIGN_OR_RETURN(checker->one_thread_,
                   runtime::Executor::Create(
                       model, {.threads = 1, .observer = &checker->counter_}));
  ASSIGN_OR_RETURN(checker->threads_,
                   runtime::Executor::Create(model, {.threads = kThreads}));
  return checker;
}

absl::Status KernelChecker::CheckOne(const FusedCall& call,
                                     const std::vector<Tensor>& in,
                                     const std::vector<Tensor>& expected,
                                     runtime::Executor& executor, bool in_place,
                                     const std::string& where,
                                     KernelResult& result) {
  std::vector<Tensor> operands = in;
  if (in_place) {
    // Nobody else holds these, so the kernel may write over them.
    ASSIGN_OR_RETURN(operands[0], Copy(in[0]));
    ASSIGN_OR_RETURN(operands[1], Copy(in[1]));
  }
  ASSIGN_OR_RETURN(const std::vector<Tensor> found,
                   executor.RunNode(*call.node, std::move(operands)));
  for (size_t i = 0; i < expected.size(); ++i) {
    if (expected[i].is_absent() || i >= found.size() || found[i].is_absent())
      continue;
    const runtime::Comparison comparison =
        runtime::Compare(expected[i], found[i]);
    if (result.where.empty() && !comparison.is_equal()) {
      result.where = fmt::format("output {}, {}{}", i, where,
                                 in_place ? ", in place" : "");
    }
    result.comparison.Add(comparison);
    result.words += comparison.elements;
  }
  return absl::OkStatus();
}

absl::Status KernelChecker::CheckLength(const FusedCall& call, int64_t rows,
                                        int64_t length, KernelResult& result) {
  Random random(seed_ + static_cast<uint64_t>(length));
  std::vector<Tensor> in;
  for (size_t i = 0; i < call.types.size(); ++i) {
    if (i + 1 == call.types.size() && !call.epsilon.is_absent()) {
      in.push_back(call.epsilon);
      break;
    }
    runtime::Dims dims = {length};
    if (i < 2) {
      dims.assign(call.rank, 1);
      dims.back() = length;
      // Of rank 1, a tensor is one row.
      if (call.rank > 1) dims[call.rank - 2] = rows;
    }
    ASSIGN_OR_RETURN(in.emplace_back(),
                     MakeRows(call.types[i], std::move(dims), random));
  }
  ASSIGN_OR_RETURN(const std::vector<Tensor> expected,
                   by_nodes_->RunNode(*call.node, in));
  for (const runtime::SimdTarget& target : runtime::SimdTargets()) {
    const runtime::UseSimdTarget use(target);
    for (const bool in_place : {false, true}) {
      for (runtime::Executor* executor : {one_thread_.get(), threads_.get()}) {
        const std::string where =
            fmt::format("{} rows of {}, {}, {}", rows, length, target.name,
                        Plural(executor->thread_count(), "thread"));
        RETURN_IF_ERROR(
            CheckOne(call, in, expected, *executor, in_place, where, result));
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<KernelResult> KernelChecker::Check(const FusedCall& call) {
  KernelResult result;
  result.op = call.node->op_type();
  result.type =
      fmt::format("{} x {}", ir::DataTypeName(call.types[0]), call.length);
  counter_.nodes = 0;
  std::set<int64_t> lengths = {1, 7, 33, call.length, call.length + 1};
  if (call.length > 1) lengths.insert(call.length - 1);
  for (const int64_t length : lengths) {
    int64_t rows = kRowKinds;
    if (length == call.length)
      rows = std::max(rows, kThreadedElements / length + 1);
    RETURN_IF_ERROR(CheckLength(call, rows, length, result));
  }
  result.has_kernel = counter_.nodes == 0;
  return result;
}

bool RefersToCaller(const ir::Node& node) {
  return std::any_of(
      node.attributes.begin(), node.attributes.end(),
      [](const ir::Attribute& a) { return !a.ref_attr_name.empty(); });
}

bool HasOneElement(const ir::Value& value) {
  if (value.initializer() != nullptr)
    return value.initializer()->element_count() == 1;
  return value.type.shape &&
         std::all_of(value.type.shape->begin(), value.type.shape->end(),
                     [](const ir::Dimension& dim) { return dim.value == 1; });
}

// What the model gives as epsilon; where that is computed, a usual one.
absl::StatusOr<Tensor> EpsilonOf(const ir::Model& model,
                                 const ir::Value& value) {
  const ir::Tensor* tensor = value.initializer();
  if (tensor == nullptr && value.producer() != nullptr &&
      value.producer()->Is("", "Constant")) {
    const ir::Attribute* attribute = value.producer()->attribute("value");
    tensor = attribute == nullptr ? nullptr : attribute->get<ir::Tensor>();
  }
  if (tensor != nullptr && model.reader != nullptr) {
    ASSIGN_OR_RETURN(const std::string bytes, model.reader->Read(*tensor));
    return Tensor::FromBytes(tensor->type, tensor->dims, bytes, nullptr);
  }
  ASSIGN_OR_RETURN(Tensor epsilon,
                   Tensor::Create(value.type.element, {}, nullptr));
  StoreAs<float, double, runtime::Half, runtime::BFloat16>(1e-6, 0, epsilon);
  return epsilon;
}

// The rank and the length of the rows, by any operand that tells.
void SetRows(const ir::Node& node, FusedCall& call) {
  for (const ir::Value* value : {node.input(0), node.input(1), node.output(1),
                                 node.output(0), node.input(2)}) {
    if (value == nullptr || !value->type.shape || value->type.shape->empty())
      continue;
    const std::optional<int64_t>& last = value->type.shape->back().value;
    if (last && *last > 1) call.length = *last;
    call.rank = std::max(call.rank, value->type.shape->size());
  }
}

std::optional<FusedCall> CallOf(const ir::Model& model, const ir::Node& node) {
  if (RefersToCaller(node) || node.inputs().size() < 2) return std::nullopt;
  FusedCall call;
  call.node = &node;
  for (const ir::Value* input : node.inputs()) {
    if (input == nullptr || !input->type.known()) return std::nullopt;
    call.types.push_back(input->type.element);
  }
  SetRows(node, call);
  if (call.length == 0) return std::nullopt;
  const ir::Value& last = *node.inputs().back();
  if (call.types.size() > 2 && HasOneElement(last)) {
    absl::StatusOr<Tensor> epsilon = EpsilonOf(model, last);
    if (!epsilon.ok()) return std::nullopt;
    call.epsilon = *std::move(epsilon);
  }
  const size_t rows = call.types.size() - (call.epsilon.is_absent() ? 0 : 1);
  const bool are_floats = std::all_of(
      call.types.begin(), call.types.begin() + static_cast<ptrdiff_t>(rows),
      [](ir::DataType type) { return ir::IsFloat(type); });
  return rows <= 3 && are_floats ? std::optional(std::move(call))
                                 : std::nullopt;
}

std::string KindOf(const FusedCall& call) {
  std::string kind =
      fmt::format("{} {} {}", call.node->op_type(), call.rank, call.length);
  for (const ir::DataType type : call.types)
    kind += fmt::format(" {}", static_cast<int>(type));
  return kind;
}

}  // namespace

FusedCalls FusedCallsOf(ir::Model& model) {
  FusedCalls found;
  std::set<std::string> seen;
  for (const ir::Graph* graph : model.AllGraphs()) {
    for (const ir::Node& node : graph->nodes()) {
      if (node.domain() != passes::kFusedDomain) continue;
      ++found.calls;
      std::optional<FusedCall> call = CallOf(model, node);
      if (!call) {
        ++found.unknown;
      } else if (seen.insert(KindOf(*call)).second) {
        found.kinds.push_back(*std::move(call));
      }
    }
  }
  return found;
}

bool KernelCheck::is_equal() const {
  return std::all_of(results.begin(), results.end(), [](const KernelResult& r) {
    return r.comparison.is_equal();
  });
}

absl::StatusOr<KernelCheck> CheckKernels(const ir::Model& model,
                                         const std::vector<FusedCall>& calls,
                                         uint64_t seed) {
  KernelCheck check;
  for (const runtime::SimdTarget& target : runtime::SimdTargets())
    check.targets.push_back(target.name);
  if (calls.empty()) return check;
  ASSIGN_OR_RETURN(const auto checker, KernelChecker::Create(model, seed));
  for (const FusedCall& call : calls) {
    ASSIGN_OR_RETURN(KernelResult result, checker->Check(call));
    check.words += result.words;
    check.results.push_back(std::move(result));
  }
  return check;
}

}  // namespace addnorm::tool
