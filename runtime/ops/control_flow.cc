// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// If, Loop and Scan: ops that run graphs of their own.
#include <algorithm>
#include <cstring>
#include <limits>

#include "fmt/format.h"
#include "passes/ir/status_macros.h"
#include "runtime/memory_bound.h"
#include "runtime/ops/groups.h"

namespace addnorm::runtime {
namespace {

absl::StatusOr<bool> Condition(const Tensor& tensor) {
  if (tensor.type() != ir::DataType::kBool || tensor.count() != 1) {
    return OpContext::Invalid("the condition is {}, expected one bool",
                              Describe(tensor));
  }
  return *tensor.data<bool>();
}

absl::Status If(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(1));
  ASSIGN_OR_RETURN(const bool condition, Condition(op.input(0)));
  ASSIGN_OR_RETURN(
      std::vector<Tensor> outputs,
      op.subgraphs().Run(condition ? "then_branch" : "else_branch", {}));
  for (size_t i = 0; i < outputs.size(); ++i)
    op.SetOutput(i, std::move(outputs[i]));
  return absl::OkStatus();
}

// What the iterations gave, by scan output.
using Rows = std::vector<std::vector<Tensor>>;

// A loop may have any number of iterations: it ends where what they gave could
// not be stacked any more. Tensors that share a buffer count, too.
absl::Status CheckRoom(const Rows& rows) {
  size_t bytes = 0;
  for (const std::vector<Tensor>& pieces : rows) {
    if (!pieces.empty())
      bytes += pieces.size() * (2 * sizeof(Tensor) + pieces.back().byte_size());
  }
  const absl::Status room = MemoryBound::OfProcess().CheckRoom(bytes);
  if (room.ok()) return room;
  return {room.code(), fmt::format("no memory for {} iterations: {}",
                                   rows.empty() ? 0 : rows.front().size(),
                                   std::string(room.message()))};
}

// Equal pieces, as slices [i] of one tensor along a new axis.
absl::StatusOr<Tensor> Stack(OpContext& op, const std::vector<Tensor>& pieces,
                             int64_t axis) {
  const Tensor& first = pieces.front();
  if (axis < 0) axis += first.rank() + 1;
  if (axis < 0 || axis > first.rank())
    return OpContext::Invalid("scan axis {} is out of range", axis);
  Dims dims = first.dims();
  dims.insert(dims.begin() + axis, static_cast<int64_t>(pieces.size()));
  ASSIGN_OR_RETURN(Tensor stacked, op.Scratch(first.type(), dims));
  int64_t inner = 1, outer = 1;
  for (int64_t i = 0; i < first.rank(); ++i)
    (i < axis ? outer : inner) *= first.dims()[i];
  const size_t run = static_cast<size_t>(inner) * ElementSize(first.type());
  std::byte* to = stacked.mutable_data<std::byte>();
  for (int64_t o = 0; o < outer; ++o) {
    for (const Tensor& piece : pieces) {
      if (piece.type() != first.type() || piece.dims() != first.dims()) {
        return OpContext::Invalid("iterations give {} and {}", Describe(first),
                                  Describe(piece));
      }
      std::memcpy(to, piece.data<std::byte>() + o * run, run);
      to += run;
    }
  }
  return stacked;
}

// tensor[:, …, index, …] without that axis.
absl::StatusOr<Tensor> SliceAt(OpContext& op, const Tensor& tensor,
                               int64_t axis, int64_t index) {
  Dims dims = tensor.dims();
  const int64_t length = dims[axis];
  dims.erase(dims.begin() + axis);
  ASSIGN_OR_RETURN(Tensor slice, op.Scratch(tensor.type(), dims));
  int64_t inner = 1, outer = 1;
  for (int64_t i = 0; i < tensor.rank(); ++i) {
    if (i != axis) (i < axis ? outer : inner) *= tensor.dims()[i];
  }
  const size_t run = static_cast<size_t>(inner) * ElementSize(tensor.type());
  for (int64_t o = 0; o < outer; ++o) {
    std::memcpy(slice.mutable_data<std::byte>() + o * run,
                tensor.data<std::byte>() + (o * length + index) * run, run);
  }
  return slice;
}

// What a loop without iterations has for a scan output: no rows of the type and
// shape that the body declares.
absl::StatusOr<Tensor> NoRows(OpContext& op, size_t body_output) {
  const auto* body =
      op.node().attribute("body")->get<std::unique_ptr<ir::Graph>>();
  const ir::TensorType& type = (*body)->outputs()[body_output]->type;
  Dims dims = {0};
  if (type.shape) {
    for (const ir::Dimension& dim : *type.shape)
      dims.push_back(dim.value.value_or(0));
  }
  return op.Scratch(type.element, dims);
}

absl::Status Loop(OpContext& op) {
  int64_t trips = std::numeric_limits<int64_t>::max();
  bool condition = true;
  if (op.has_input(0)) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> count, op.Ints(0));
    if (count.size() != 1)
      return OpContext::Invalid("the trip count is not one");
    trips = count[0];
  }
  if (op.has_input(1)) {
    ASSIGN_OR_RETURN(condition, Condition(op.input(1)));
  }
  std::vector<Tensor> carried;
  for (size_t i = 2; i < op.input_count(); ++i) carried.push_back(op.input(i));
  const size_t carried_count = carried.size();
  if (op.output_count() < carried_count)
    return OpContext::Invalid("has fewer outputs than values it carries");
  Rows rows(op.output_count() - carried_count);
  for (int64_t i = 0; i < trips && condition; ++i) {
    std::vector<Tensor> inputs = {Tensor::Scalar<int64_t>(i),
                                  Tensor::Scalar<bool>(condition)};
    for (Tensor& value : carried) inputs.push_back(std::move(value));
    ASSIGN_OR_RETURN(std::vector<Tensor> outputs,
                     op.subgraphs().Run("body", std::move(inputs)));
    if (outputs.size() != 1 + carried_count + rows.size())
      return OpContext::Invalid("the body has {} outputs, expected {}",
                                outputs.size(),
                                1 + carried_count + rows.size());
    ASSIGN_OR_RETURN(condition, Condition(outputs[0]));
    for (size_t k = 0; k < carried_count; ++k)
      carried[k] = std::move(outputs[1 + k]);
    for (size_t k = 0; k < rows.size(); ++k)
      rows[k].push_back(std::move(outputs[1 + carried_count + k]));
    RETURN_IF_ERROR(CheckRoom(rows));
  }
  for (size_t k = 0; k < carried_count; ++k)
    op.SetOutput(k, std::move(carried[k]));
  for (size_t k = 0; k < rows.size(); ++k) {
    ASSIGN_OR_RETURN(Tensor scanned, rows[k].empty()
                                         ? NoRows(op, 1 + carried_count + k)
                                         : Stack(op, rows[k], 0));
    op.SetOutput(carried_count + k, std::move(scanned));
  }
  return absl::OkStatus();
}

// One Scan: which operands are state, which are sliced, and how.
struct ScanShape {
  size_t states = 0, scans = 0, outputs = 0;
  std::vector<int64_t> input_axes, output_axes, input_directions,
      output_directions;
  int64_t length = 0;
};

std::vector<int64_t> IntsOr(const OpContext& op, std::string_view name,
                            size_t count) {
  std::vector<int64_t> values =
      op.attributes().Ints(name).value_or(std::vector<int64_t>());
  values.resize(count, 0);
  return values;
}

absl::StatusOr<ScanShape> ShapeOfScan(const OpContext& op,
                                      std::span<const Tensor> operands) {
  ScanShape scan;
  scan.scans = static_cast<size_t>(op.attributes().Int("num_scan_inputs", 0));
  if (scan.scans < 1 || scan.scans > operands.size())
    return OpContext::Invalid("num_scan_inputs is {}", scan.scans);
  scan.states = operands.size() - scan.scans;
  if (op.output_count() < scan.states)
    return OpContext::Invalid("has fewer outputs than state variables");
  scan.outputs = op.output_count() - scan.states;
  scan.input_axes = IntsOr(op, "scan_input_axes", scan.scans);
  scan.output_axes = IntsOr(op, "scan_output_axes", scan.outputs);
  scan.input_directions = IntsOr(
      op, op.opset() < 9 ? "directions" : "scan_input_directions", scan.scans);
  scan.output_directions = IntsOr(op, "scan_output_directions", scan.outputs);
  scan.length = -1;
  for (size_t i = 0; i < scan.scans; ++i) {
    const Tensor& sliced = operands[scan.states + i];
    int64_t& axis = scan.input_axes[i];
    if (axis < 0) axis += sliced.rank();
    if (axis < 0 || axis >= sliced.rank())
      return OpContext::Invalid("scan axis {} of {}", axis, Describe(sliced));
    if (scan.length >= 0 && sliced.dims()[axis] != scan.length)
      return OpContext::Invalid("scan inputs of lengths {} and {}", scan.length,
                                sliced.dims()[axis]);
    scan.length = sliced.dims()[axis];
  }
  return scan;
}

// The states after the scan, then the scanned outputs.
absl::StatusOr<std::vector<Tensor>> ScanOnce(OpContext& op,
                                             std::vector<Tensor> operands) {
  ASSIGN_OR_RETURN(const ScanShape scan, ShapeOfScan(op, operands));
  std::vector<Tensor> results(operands.begin(), operands.begin() + scan.states);
  Rows rows(scan.outputs);
  for (int64_t step = 0; step < scan.length; ++step) {
    std::vector<Tensor> inputs;
    for (Tensor& state : results) inputs.push_back(std::move(state));
    for (size_t i = 0; i < scan.scans; ++i) {
      const int64_t at =
          scan.input_directions[i] == 0 ? step : scan.length - 1 - step;
      ASSIGN_OR_RETURN(
          inputs.emplace_back(),
          SliceAt(op, operands[scan.states + i], scan.input_axes[i], at));
    }
    ASSIGN_OR_RETURN(std::vector<Tensor> outputs,
                     op.subgraphs().Run("body", std::move(inputs)));
    if (outputs.size() != scan.states + scan.outputs)
      return OpContext::Invalid("the body has {} outputs, expected {}",
                                outputs.size(), scan.states + scan.outputs);
    std::move(outputs.begin(), outputs.begin() + scan.states, results.begin());
    for (size_t k = 0; k < scan.outputs; ++k)
      rows[k].push_back(std::move(outputs[scan.states + k]));
    RETURN_IF_ERROR(CheckRoom(rows));
  }
  for (size_t k = 0; k < scan.outputs; ++k) {
    if (scan.output_directions[k] != 0)
      std::reverse(rows[k].begin(), rows[k].end());
    ASSIGN_OR_RETURN(results.emplace_back(),
                     rows[k].empty() ? NoRows(op, scan.states + k)
                                     : Stack(op, rows[k], scan.output_axes[k]));
  }
  return results;
}

// Opset 8 scans each element of a batch; its first operand, the lengths, is
// optional and not supported.
absl::StatusOr<std::vector<Tensor>> ScanBatch(OpContext& op) {
  if (op.has_input(0))
    return OpContext::Unsupported("sequence lengths are not supported");
  if (op.input_count() < 2 || op.input(1).rank() < 1)
    return OpContext::Invalid("has no operand with a batch");
  const int64_t batch = op.input(1).dims()[0];
  Rows results(op.output_count());
  for (int64_t b = 0; b < batch; ++b) {
    std::vector<Tensor> operands;
    for (size_t i = 1; i < op.input_count(); ++i) {
      if (op.input(i).rank() < 1 || op.input(i).dims()[0] != batch)
        return OpContext::Invalid("operand {} has another batch", i);
      ASSIGN_OR_RETURN(operands.emplace_back(), SliceAt(op, op.input(i), 0, b));
    }
    ASSIGN_OR_RETURN(std::vector<Tensor> outputs,
                     ScanOnce(op, std::move(operands)));
    for (size_t k = 0; k < outputs.size(); ++k)
      results[k].push_back(std::move(outputs[k]));
    RETURN_IF_ERROR(CheckRoom(results));
  }
  std::vector<Tensor> stacked;
  for (const std::vector<Tensor>& pieces : results) {
    if (pieces.empty()) return OpContext::Unsupported("an empty batch");
    ASSIGN_OR_RETURN(stacked.emplace_back(), Stack(op, pieces, 0));
  }
  return stacked;
}

absl::Status Scan(OpContext& op) {
  std::vector<Tensor> operands;
  for (size_t i = 0; i < op.input_count(); ++i) operands.push_back(op.input(i));
  ASSIGN_OR_RETURN(
      std::vector<Tensor> results,
      op.opset() < 9 ? ScanBatch(op) : ScanOnce(op, std::move(operands)));
  for (size_t k = 0; k < results.size(); ++k)
    op.SetOutput(k, std::move(results[k]));
  return absl::OkStatus();
}

constexpr OpRow kRows[] = {
    {"", "If", If},
    {"", "Loop", Loop},
    {"", "Scan", Scan},
};

}  // namespace

OpTable ControlFlowOps() { return kRows; }

}  // namespace addnorm::runtime
