// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What an op is given and what it is: OpContext is one execution of a node,
// OpRow one row of the table that names all ops.
//
// An op checks its operands, makes its outputs, and computes. It throws
// nothing and asserts nothing that a model could break. Adding one: a function
// in ops/<group>.cc, a row in that file's table, a case in its test.
//
//   absl::Status Relu(OpContext& op) {
//     const Tensor& x = op.input(0);
//     ASSIGN_OR_RETURN(Tensor* y, op.Output(0, x.type(), x.dims()));
//     return op.ForType<float, double>(x, [&]<typename T>() { … });
//   }
//   constexpr OpRow kRows[] = {{"", "Relu", Relu, {{0, 0}}}, …};
#ifndef ADDNORM_RUNTIME_OP_H_
#define ADDNORM_RUNTIME_OP_H_

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fmt/format.h"
#include "runtime/attributes.h"
#include "runtime/tensor.h"
#include "runtime/thread_pool.h"

namespace addnorm::runtime {

struct OpRow;
class Weights;

// How an op that has graphs runs them (If, Loop, Scan); the executor's part.
class SubgraphRunner {
 public:
  virtual ~SubgraphRunner() = default;
  // Outputs of the graph attribute of that name, given its inputs.
  virtual absl::StatusOr<std::vector<Tensor>> Run(
      std::string_view attribute, std::vector<Tensor> inputs) = 0;
  // How many inputs that graph has.
  virtual absl::StatusOr<size_t> InputCount(std::string_view attribute) = 0;
};

// What one execution of a model shares among its nodes.
struct RunResources {
  ThreadPool& threads;
  std::shared_ptr<MemoryMeter> meter;
  Weights& weights;
};

class OpContext {
 public:
  OpContext(const OpRow& row, const ir::Node& node, Attributes attributes,
            int64_t opset, std::vector<Tensor> inputs, size_t output_count,
            RunResources& resources, SubgraphRunner* subgraphs = nullptr);

  // ---- the node
  const ir::Node& node() const { return node_; }
  const Attributes& attributes() const { return attributes_; }
  // Version of the operator set that the node's domain has here.
  int64_t opset() const { return opset_; }

  // ---- operands
  size_t input_count() const { return inputs_.size(); }
  bool has_input(size_t i) const {
    return i < inputs_.size() && !inputs_[i].is_absent();
  }
  // The operand, an absent Tensor where it is not given.
  const Tensor& input(size_t i) const;
  // Operands that must be there: kInvalidArgument otherwise.
  absl::Status RequireInputs(size_t count) const;
  // The elements of an int32 or int64 operand (axes, shapes, indices).
  absl::StatusOr<std::vector<int64_t>> Ints(size_t i) const;

  // ---- results
  size_t output_count() const { return outputs_.size(); }
  // False for an output that the node does not name.
  bool wants_output(size_t i) const;
  // Makes output i. It takes over the buffer of an operand that dies here,
  // where the op's row allows that and the bytes are as many: so do not read
  // such an operand at an index after writing that index. Other outputs may be
  // made while this one is in use.
  absl::StatusOr<Tensor*> Output(size_t i, ir::DataType type, Dims dims);
  // Output i is this tensor, which may share its buffer with an operand.
  void SetOutput(size_t i, Tensor tensor);
  // A tensor for intermediate results.
  absl::StatusOr<Tensor> Scratch(ir::DataType type, Dims dims);
  std::vector<Tensor> TakeOutputs() {
    return {std::make_move_iterator(outputs_.begin()),
            std::make_move_iterator(outputs_.end())};
  }
  std::vector<Tensor> TakeInputs() { return std::move(inputs_); }

  // ---- running
  ThreadPool& threads() { return resources_.threads; }
  // For tensors that are attributes.
  Weights& weights() { return resources_.weights; }
  SubgraphRunner& subgraphs() { return *subgraphs_; }

  // Calls f.operator()<T>() with the C++ type of the tensor's elements, if it
  // is one of Ts; the error names the op and the type otherwise. f returns void
  // or absl::Status.
  template <typename... Ts, typename F>
  absl::Status ForType(const Tensor& tensor, F&& f) const {
    return ForType<Ts...>(tensor.type(), std::forward<F>(f));
  }
  template <typename... Ts, typename F>
  absl::Status ForType(ir::DataType type, F&& f) const {
    absl::Status status = UnsupportedType(type);
    (void)((type == kTypeOf<Ts> && (status = Call<Ts>(f), true)) || ...);
    return status;
  }
  absl::Status UnsupportedType(ir::DataType type) const;

  // kInvalidArgument with the given text; the executor adds the node.
  template <typename... Args>
  static absl::Status Invalid(fmt::format_string<Args...> format,
                              Args&&... args) {
    return absl::InvalidArgumentError(
        fmt::format(format, std::forward<Args>(args)...));
  }
  // kUnimplemented likewise.
  template <typename... Args>
  static absl::Status Unsupported(fmt::format_string<Args...> format,
                                  Args&&... args) {
    return absl::UnimplementedError(
        fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  template <typename T, typename F>
  static absl::Status Call(F&& f) {
    if constexpr (std::is_void_v<decltype(f.template operator()<T>())>) {
      f.template operator()<T>();
      return absl::OkStatus();
    } else {
      return f.template operator()<T>();
    }
  }
  // The error, with the name of the output that it is about.
  absl::Status OfOutput(size_t i, const absl::Status& status) const;
  // The operand whose buffer output i may have, nullptr if none.
  const Tensor* Donor(size_t output, size_t bytes) const;

  const OpRow& row_;
  const ir::Node& node_;
  Attributes attributes_;
  int64_t opset_;
  std::vector<Tensor> inputs_;
  // Grows where an op makes an output that the node does not name, and moves
  // none of those before.
  std::deque<Tensor> outputs_;
  RunResources& resources_;
  SubgraphRunner* subgraphs_;
};

using OpFunction = absl::Status (*)(OpContext& op);

// The output may be written over the input: element i of the output is written
// after all reads of element i of the input, or whole rows after whole rows.
struct InPlace {
  int8_t output = -1;
  int8_t input = -1;
};

struct OpRow {
  std::string_view domain;
  std::string_view op_type;
  OpFunction run = nullptr;
  InPlace in_place[4] = {};
};

using OpTable = std::span<const OpRow>;

// Lists of types for ForType.
#define ADDNORM_FLOAT_TYPES float, double, Half, BFloat16
#define ADDNORM_INTEGER_TYPES \
  int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
#define ADDNORM_NUMBER_TYPES ADDNORM_FLOAT_TYPES, ADDNORM_INTEGER_TYPES

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_OP_H_
