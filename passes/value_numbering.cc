// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "passes/value_numbering.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/escaping.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "passes/graph_numbering.h"
#include "passes/ir/node_order.h"
#include "passes/ir/printable.h"
#include "passes/ir/status_macros.h"

namespace addnorm::passes {
namespace {

// Nodes of called functions, repeated calls counted each time but for those of
// the same operands: ten times what a large model has.
constexpr int64_t kMaxCalledNodes = 1'000'000;
constexpr int kMaxCallDepth = 200;
// Nodes, those of its own calls included, of a function that is expanded in any
// case: fused ops, norms, layers.
constexpr int64_t kSmallFunction = 1000;

constexpr std::string_view kRandomOps[] = {
    "Bernoulli",        "Dropout",       "Multinomial",      "RandomNormal",
    "RandomNormalLike", "RandomUniform", "RandomUniformLike"};
// Of any other domain: ONNX Runtime's.
constexpr std::string_view kRandomContribOps[] = {
    "BiasDropout", "BitmaskBiasDropout", "BitmaskDropout", "Sampling"};

// Equal bits for swapped operands; but for the payload of NaNs.
constexpr std::string_view kSwappable[] = {"And", "Or", "Xor", "Equal"};
constexpr std::string_view kSwappableButForNan[] = {"Add", "Mul"};

// The elements, or so many of them that a line holds.
std::string ElementsText(ir::DataType type, std::string_view bytes) {
  constexpr size_t kMostBytes = 32;
  const std::string_view shown = bytes.substr(0, kMostBytes);
  const char* more = shown.size() < bytes.size() ? "..." : "";
  if (type != ir::DataType::kInt64)
    return fmt::format("0x{}{}", absl::BytesToHexString(std::string(shown)),
                       more);
  std::vector<int64_t> elements;
  for (size_t at = 0; at + sizeof(int64_t) <= shown.size();
       at += sizeof(int64_t)) {
    int64_t element = 0;
    std::memcpy(&element, shown.data() + at, sizeof(element));
    elements.push_back(element);
  }
  return fmt::format("{}{}", fmt::join(elements, ","), more);
}

// What is more than the function has would have no number, and be like another
// thing that has none.
absl::Status CheckCall(const ir::Node& node, const ir::Function& function) {
  const size_t inputs = function.body.inputs().size();
  const size_t outputs = function.body.outputs().size();
  if (node.inputs().size() <= inputs && node.outputs().size() <= outputs)
    return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "{}: has {} operands and {} results, expected at most {} and {}",
      node.Describe(), node.inputs().size(), node.outputs().size(), inputs,
      outputs));
}

}  // namespace

std::string Quoted(std::string_view text) {
  return fmt::format("{}:{}", text.size(), text);
}

ValueNumbering::ValueNumbering(TensorContents& contents,
                               OperatorSchemas& schemas,
                               const NumberingOptions& options)
    : contents_(contents), schemas_(schemas), options_(options) {}

ValueNumbering::~ValueNumbering() = default;

Number ValueNumbering::Intern(std::string key, Expression expression) {
  for (const Side side : {0, 1}) {
    if (expression.values[side] != nullptr)
      expression.calls[side] = outer_call_;
  }
  const auto next = static_cast<Number>(expressions_.size());
  const auto [it, added] = numbers_.try_emplace(std::move(key), next);
  if (added) {
    expressions_.push_back(std::move(expression));
    return next;
  }
  Expression& known = expressions_[static_cast<size_t>(it->second)];
  if (known.operands != expression.operands) swapped_.insert(it->second);
  for (const Side side : {0, 1}) {
    if (known.values[side] != nullptr) continue;
    known.values[side] = expression.values[side];
    known.calls[side] = expression.calls[side];
  }
  return it->second;
}

Number ValueNumbering::InternConstant(SmallConstant constant,
                                      const ir::Value* value, Side side) {
  const std::string type = fmt::format(
      "{}[{}]", ir::DataTypeName(constant.type), fmt::join(constant.dims, ","));
  Expression expression;
  expression.values[side] = value;
  std::string key = "constant " + type;
  if (constant.number) {
    expression.label = fmt::format("constant {} {}", type, *constant.number);
    key += fmt::format(" {:016x}", std::bit_cast<uint64_t>(*constant.number));
  } else {
    expression.label = fmt::format("constant {} {}", type,
                                   ElementsText(constant.type, constant.bytes));
    key += " " + constant.bytes;
  }
  const Number number = Intern(std::move(key), std::move(expression));
  least_ranks_[number] = constant.dims.size();
  constants_.try_emplace(number, std::move(constant));
  return number;
}

const ValueNumbering::SmallConstant* ValueNumbering::FindConstant(
    Number number) const {
  const auto it = constants_.find(number);
  return it == constants_.end() ? nullptr : &it->second;
}

absl::StatusOr<std::vector<Number>> ValueNumbering::NumberOutputs(
    const ir::Model& model, Side side) {
  called_nodes_ = 0;
  calls_.clear();
  bodies_.clear();
  random_nodes_.clear();
  sizes_.emplace(model);
  GraphNumbering graph(*this, model, side, nullptr, nullptr, 0);
  for (const ir::Value* input : model.graph.inputs()) {
    Expression expression;
    expression.label = fmt::format("input '{}'", ir::Printable(input->name()));
    expression.values[side] = input;
    const Number number = Intern("input " + input->name(), expression);
    graph.Set(input, number);
    if (input->type.shape) least_ranks_[number] = input->type.shape->size();
  }
  RETURN_IF_ERROR(graph.Run(model.graph));
  main_numbers_[static_cast<size_t>(side)] = graph.numbers();
  return graph.Outputs(model.graph);
}

Number GraphNumbering::Get(const ir::Value* value) const {
  for (const GraphNumbering* graph = this; graph != nullptr;
       graph = graph->outer_) {
    const auto it = graph->numbers_.find(value);
    if (it != graph->numbers_.end()) return it->second;
  }
  return kAbsent;
}

std::vector<Number> GraphNumbering::Outputs(const ir::Graph& graph) const {
  std::vector<Number> numbers;
  for (const ir::Value* output : graph.outputs())
    numbers.push_back(Get(output));
  return numbers;
}

absl::Status GraphNumbering::Run(const ir::Graph& graph) {
  RETURN_IF_ERROR(AddInitializers(graph));
  for (const ir::Node* node : ir::NodesInOrder(graph))
    RETURN_IF_ERROR(NumberNode(*node));
  return absl::OkStatus();
}

// Of the operator, not of the set: most operators change in few versions.
int64_t GraphNumbering::SchemaVersion(const ir::Node& node) const {
  return numbering_.schemas_.SinceVersion(node.domain(), node.op_type(),
                                          ir::OpsetOf(node));
}

// Two nodes of these are two values, however alike. A Dropout is one only where
// it trains: by an attribute before version 7, an operand from version 12 on.
bool GraphNumbering::IsRandom(const ir::Node& node, int64_t version) const {
  if (!node.domain().empty()) return HasTypeOf(kRandomContribOps, node);
  if (!IsOneOf(kRandomOps, node)) return false;
  if (node.op_type() != "Dropout") return true;
  if (version >= 7) return node.input(2) != nullptr;
  const ir::Attribute* written = node.attribute("is_test");
  const ir::Attribute* is_test =
      written == nullptr ? nullptr : Resolve(*written);
  const int64_t* value = is_test == nullptr ? nullptr : is_test->get<int64_t>();
  return value == nullptr || *value == 0;
}

// The calls and subgraphs that a random node is in, and how many of the same
// name were met there before.
std::string GraphNumbering::PlaceInCalls(const ir::Node& node) const {
  std::string place =
      fmt::format(" in {} graphs {}", depth_, Quoted(node.Describe()));
  for (const CallScope* scope = call_; scope != nullptr; scope = scope->outer)
    place += Quoted(scope->call->Describe());
  const int number = numbering_.random_nodes_[{side_, place}]++;
  ++numbering_.random_count_;
  return fmt::format("{} number {}", place, number);
}

absl::Status GraphNumbering::NumberNode(const ir::Node& node) {
  const ir::Function* function =
      model_.FindFunction(node.domain(), node.op_type(), node.overload);
  if (function != nullptr) return NumberCall(node, *function);
  if (node.Is("", "Constant") && node.output(0) != nullptr) {
    ASSIGN_OR_RETURN(const Number number, NumberConstant(node));
    if (number != kAbsent) {
      Set(node.output(0), number);
      return absl::OkStatus();
    }
  }
  if (node.domain().empty() && ir::OpsetOf(node) == 0) {
    return absl::InvalidArgumentError(fmt::format(
        "{}: the version of its operator set is not said", node.Describe()));
  }
  std::vector<Number> operands;
  for (const ir::Value* input : node.inputs()) operands.push_back(Get(input));
  while (!operands.empty() && operands.back() == kAbsent) operands.pop_back();
  ASSIGN_OR_RETURN(const bool is_forwarded, NumberForwarded(node, operands));
  if (is_forwarded) return absl::OkStatus();
  LoosenRanks(node, operands);
  const int64_t version = SchemaVersion(node);
  Expression expression;
  ASSIGN_OR_RETURN(std::string key,
                   AttributesKey(node, nullptr, expression.label));
  size_t results = node.outputs().size();
  while (results > 0 && node.output(results - 1) == nullptr) --results;
  // Some operators do other things where more results are asked for.
  key = fmt::format("node {} {} {} {} {} {}", Quoted(node.domain()),
                    Quoted(node.op_type()), Quoted(node.overload), version,
                    results, key);
  if (IsRandom(node, version)) key += PlaceInCalls(node);
  expression.label = fmt::format("{}{}{}{} (version {})", node.domain(),
                                 node.domain().empty() ? "" : ".",
                                 node.op_type(), expression.label, version);
  expression.operands = operands;
  if (IsOneOf(kSwappable, node) ||
      (numbering_.options_.commutes && IsOneOf(kSwappableButForNan, node)))
    std::sort(operands.begin(), operands.end());
  key += fmt::format(" ({})", fmt::join(operands, ","));
  const size_t rank = LeastRank(node, operands);
  for (size_t i = 0; i < node.outputs().size(); ++i) {
    const ir::Value* output = node.output(i);
    if (output == nullptr) continue;
    expression.output = static_cast<int>(i);
    expression.values = {};
    expression.values[side_] = output;
    const Number number =
        numbering_.Intern(fmt::format("{} {}", i, key), expression);
    if (i == 0) numbering_.least_ranks_.try_emplace(number, rank);
    Set(output, number);
  }
  return absl::OkStatus();
}

// A call with the same operands and attributes gives the same, unless something
// in it is random.
absl::Status GraphNumbering::NumberCall(const ir::Node& node,
                                        const ir::Function& function) {
  RETURN_IF_ERROR(CheckCall(node, function));
  std::vector<Number> operands;
  for (const ir::Value* input : node.inputs()) operands.push_back(Get(input));
  std::string label;
  ASSIGN_OR_RETURN(const std::string attributes,
                   AttributesKey(node, &function, label));
  ASSIGN_OR_RETURN(
      const std::vector<Number> results,
      NumberResults(node, function, std::move(operands), attributes));
  for (size_t i = 0; i < results.size(); ++i) {
    if (node.output(i) != nullptr) Set(node.output(i), results[i]);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Number>> GraphNumbering::NumberResults(
    const ir::Node& call, const ir::Function& function,
    std::vector<Number> operands, const std::string& attributes) {
  operands.resize(function.body.inputs().size(), kAbsent);
  if (!numbering_.options_.expands_calls &&
      numbering_.sizes_->Of(function) > kSmallFunction)
    return NumberWhole(call, function, operands, attributes);
  std::string key =
      fmt::format("{} {} ({}) {}", static_cast<const void*>(&function), depth_,
                  fmt::join(operands, ","), attributes);
  const auto known = numbering_.calls_.find(key);
  if (known != numbering_.calls_.end()) return known->second;
  const int64_t random_nodes = numbering_.random_count_;
  ASSIGN_OR_RETURN(std::vector<Number> results,
                   NumberBody(call, function, operands));
  if (numbering_.random_count_ == random_nodes)
    numbering_.calls_[std::move(key)] = results;
  return results;
}

// The call as one expression: what the function makes of its parameters, whose
// numbers are the same in every function, and what it is given for them here.
absl::StatusOr<std::vector<Number>> GraphNumbering::NumberWhole(
    const ir::Node& call, const ir::Function& function,
    const std::vector<Number>& operands, const std::string& attributes) {
  const std::string key = fmt::format(
      "{} {} {}", static_cast<const void*>(&function), depth_, attributes);
  auto body = numbering_.bodies_.find(key);
  if (body == numbering_.bodies_.end()) {
    std::vector<Number> parameters;
    for (size_t i = 0; i < operands.size(); ++i) {
      Expression parameter;
      std::string name = fmt::format("parameter {} of a function", i);
      parameter.label = name;
      parameters.push_back(
          numbering_.Intern(std::move(name), std::move(parameter)));
    }
    const int64_t random_nodes = numbering_.random_count_;
    ASSIGN_OR_RETURN(std::vector<Number> results,
                     NumberBody(call, function, parameters));
    if (numbering_.random_count_ != random_nodes)
      return absl::UnimplementedError(
          "calls with something random in them expand to too many nodes");
    body = numbering_.bodies_.emplace(key, std::move(results)).first;
  }
  numbering_.left_calls_whole_ = true;
  std::vector<Number> results;
  for (size_t i = 0; i < body->second.size(); ++i) {
    Expression expression;
    expression.label = fmt::format("a call of {}", function.name);
    expression.operands = operands;
    expression.output = static_cast<int>(i);
    expression.values[side_] = call.output(i);
    results.push_back(numbering_.Intern(
        fmt::format("call {} ({}) ({})", body->second[i], operands.size(),
                    fmt::join(operands, ",")),
        std::move(expression)));
  }
  return results;
}

absl::StatusOr<std::vector<Number>> GraphNumbering::NumberBody(
    const ir::Node& call, const ir::Function& function,
    const std::vector<Number>& operands) {
  if (call_depth_ >= kMaxCallDepth)
    return absl::UnimplementedError("calls are nested too deep to compare");
  numbering_.called_nodes_ +=
      static_cast<int64_t>(function.body.nodes().size());
  if (numbering_.called_nodes_ > kMaxCalledNodes)
    return absl::UnimplementedError("calls expand to too many nodes");
  const CallScope scope{&call, &function, call_};
  GraphNumbering body(numbering_, model_, side_, &scope, nullptr, depth_);
  body.SetCallDepth(call_depth_ + 1);
  const auto& parameters = function.body.inputs();
  for (size_t i = 0; i < parameters.size(); ++i)
    body.Set(parameters[i], i < operands.size() ? operands[i] : kAbsent);
  const bool is_outer = call_ == nullptr;
  if (is_outer) numbering_.outer_call_ = &call;
  const absl::Status status = body.Run(function.body);
  if (is_outer) numbering_.outer_call_ = nullptr;
  RETURN_IF_ERROR(status);
  return body.Outputs(function.body);
}

}  // namespace addnorm::passes
