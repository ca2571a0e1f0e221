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
#include "passes/constants.h"
#include "passes/ir/node_order.h"
#include "passes/ir/printable.h"
#include "passes/ir/status_macros.h"

namespace addnorm::passes {
namespace {

// Nodes of called functions, repeated calls counted each time; 100 times what a
// large model has.
constexpr int64_t kMaxCalledNodes = 10'000'000;
constexpr int kMaxCallDepth = 200;

// Two nodes of these are two values, however alike.
constexpr std::string_view kRandomOps[] = {
    "Bernoulli",        "Dropout",       "Multinomial",      "RandomNormal",
    "RandomNormalLike", "RandomUniform", "RandomUniformLike"};

// Elementwise ops that broadcast: an operand of one element may have any rank
// up to the other's.
constexpr std::string_view kBroadcastOps[] = {"Add", "Sub", "Mul", "Div",
                                              "Pow"};
// Equal bits for swapped operands; but for the payload of NaNs.
constexpr std::string_view kSwappable[] = {"And", "Or", "Xor", "Equal"};
constexpr std::string_view kSwappableButForNan[] = {"Add", "Mul"};

template <size_t N>
bool IsOneOf(const std::string_view (&names)[N], const ir::Node& node) {
  return node.domain().empty() && std::find(std::begin(names), std::end(names),
                                            node.op_type()) != std::end(names);
}

// Text in a key: no other text's continuation.
std::string Quoted(std::string_view text) {
  return fmt::format("{}:{}", text.size(), text);
}

// The number of a constant of one floating-point element; a NaN is more than a
// number.
std::optional<double> NumberOf(const ir::Tensor& tensor) {
  if (!ir::IsFloat(tensor.type)) return std::nullopt;
  Constant constant;
  constant.tensor = tensor;
  const std::optional<double> number = constant.root_scalar();
  return number && *number == *number ? number : std::nullopt;
}

// The elements, or so many of them that a line holds.
std::string ElementsText(ir::DataType type, std::string_view bytes) {
  constexpr size_t kMostBytes = 32;
  const std::string_view shown = bytes.substr(0, kMostBytes);
  const char* more = shown.size() < bytes.size() ? "..." : "";
  if (type != ir::DataType::kInt64)
    return fmt::format("0x{}{}", absl::BytesToHexString(std::string(shown)),
                       more);
  std::vector<int64_t> elements(shown.size() / sizeof(int64_t));
  for (size_t i = 0; i < elements.size(); ++i)
    std::memcpy(&elements[i], &shown[i * sizeof(int64_t)], sizeof(int64_t));
  return fmt::format("{}{}", fmt::join(elements, ","), more);
}

std::string BytesOf(const void* data, size_t size) {
  return std::string(static_cast<const char*>(data), size);
}

}  // namespace

// The attributes of a call, through which its function's references are
// resolved.
struct CallScope {
  const ir::Node* call = nullptr;
  const ir::Function* function = nullptr;
  const CallScope* outer = nullptr;
};

// One graph of one model: numbers of its values, and of the outer graphs'.
class GraphNumbering {
 public:
  GraphNumbering(ValueNumbering& numbering, const ir::Model& model, Side side,
                 const CallScope* call, const GraphNumbering* outer)
      : numbering_(numbering),
        model_(model),
        side_(side),
        call_(call),
        outer_(outer),
        depth_(outer == nullptr ? 0 : outer->depth_ + 1) {}

  absl::Status Run(const ir::Graph& graph);
  void Set(const ir::Value* value, Number number) { numbers_[value] = number; }
  Number Get(const ir::Value* value) const;
  std::vector<Number> Outputs(const ir::Graph& graph) const;
  const absl::flat_hash_map<const ir::Value*, Number>& numbers() const {
    return numbers_;
  }
  void SetCallDepth(int depth) { call_depth_ = depth; }

 private:
  absl::Status AddInitializers(const ir::Graph& graph);
  absl::StatusOr<Number> NumberTensor(const ir::Tensor& tensor,
                                      const ir::Value* value);
  Number InternSmall(const ir::Tensor& tensor, const ir::Value* value);
  absl::Status NumberNode(const ir::Node& node);
  absl::Status NumberCall(const ir::Node& node, const ir::Function& function);
  absl::StatusOr<bool> NumberForwarded(const ir::Node& node,
                                       const std::vector<Number>& operands);
  absl::StatusOr<Number> NumberConstant(const ir::Node& node);
  absl::StatusOr<std::string> AttributesKey(const ir::Node& node,
                                            std::string& label);
  absl::StatusOr<std::string> ValueKey(const ir::Attribute& attribute);
  absl::StatusOr<std::string> GraphKey(const ir::Graph& graph);
  // The attribute that a reference stands for in this call: what the call
  // gives, itself perhaps by reference, else the default; nullptr: absent.
  // Itself where it is no reference, or outside of calls.
  const ir::Attribute* Resolve(const ir::Attribute& attribute) const;
  static const ir::Attribute* ResolveIn(const ir::Attribute& attribute,
                                        const CallScope* scope);
  void LoosenRanks(const ir::Node& node, std::vector<Number>& operands);
  size_t LeastRank(const ir::Node& node, const std::vector<Number>& operands);
  int64_t VersionOf(const ir::Node& node) const;

  ValueNumbering& numbering_;
  const ir::Model& model_;
  Side side_;
  const CallScope* call_;
  const GraphNumbering* outer_;
  int depth_;
  int call_depth_ = 0;
  absl::flat_hash_map<const ir::Value*, Number> numbers_;
};

ValueNumbering::ValueNumbering(TensorContents& contents,
                               OperatorSchemas& schemas, bool commutes)
    : contents_(contents), schemas_(schemas), commutes_(commutes) {}

ValueNumbering::~ValueNumbering() = default;

Number ValueNumbering::Intern(std::string key, Expression expression) {
  const auto next = static_cast<Number>(expressions_.size());
  const auto [it, added] = numbers_.try_emplace(std::move(key), next);
  if (added) {
    expressions_.push_back(std::move(expression));
    return next;
  }
  Expression& known = expressions_[static_cast<size_t>(it->second)];
  if (known.operands != expression.operands) swapped_.insert(it->second);
  for (const Side side : {0, 1}) {
    if (known.values[side] == nullptr)
      known.values[side] = expression.values[side];
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
  GraphNumbering graph(*this, model, side, nullptr, nullptr);
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

absl::Status GraphNumbering::AddInitializers(const ir::Graph& graph) {
  for (const ir::Value* value : graph.values()) {
    if (value->is_sparse_initializer()) {
      return absl::UnimplementedError(
          fmt::format("value '{}': sparse initializers are not compared",
                      ir::Printable(value->name())));
    }
    // One that is an input too is what the caller says.
    if (value->initializer() == nullptr || value->is_input()) continue;
    ASSIGN_OR_RETURN(const Number number,
                     NumberTensor(*value->initializer(), value));
    Set(value, number);
  }
  return absl::OkStatus();
}

// Small constants count by their elements; of large ones the contents tell.
absl::StatusOr<Number> GraphNumbering::NumberTensor(const ir::Tensor& tensor,
                                                    const ir::Value* value) {
  const std::optional<int64_t> count = tensor.element_count();
  if (count && *count <= Constants::kMaxElements) {
    ir::Tensor small = tensor;
    if (small.inline_bytes() == nullptr) {
      if (model_.reader == nullptr)
        return absl::UnimplementedError("a constant cannot be read");
      ASSIGN_OR_RETURN(std::string bytes, model_.reader->Read(tensor));
      small.elements = ir::InlineElements{std::move(bytes)};
    }
    return InternSmall(small, value);
  }
  ASSIGN_OR_RETURN(const int32_t contents,
                   numbering_.contents_.Classify(side_, tensor));
  Expression expression;
  expression.label = fmt::format("weight {}[{}]", ir::DataTypeName(tensor.type),
                                 fmt::join(tensor.dims, ","));
  expression.values[side_] = value;
  std::string key =
      fmt::format("weight {} [{}] {}", static_cast<int>(tensor.type),
                  fmt::join(tensor.dims, ","), contents);
  const Number number =
      numbering_.Intern(std::move(key), std::move(expression));
  numbering_.least_ranks_[number] = tensor.dims.size();
  return number;
}

Number GraphNumbering::InternSmall(const ir::Tensor& tensor,
                                   const ir::Value* value) {
  return numbering_.InternConstant(
      {tensor.type, tensor.dims, *tensor.inline_bytes(), NumberOf(tensor)},
      value, side_);
}

int64_t GraphNumbering::VersionOf(const ir::Node& node) const {
  const ir::Function* function = node.graph()->function();
  const auto& imports =
      function != nullptr ? function->opset_imports : model_.opset_imports;
  for (const ir::OpsetImport& import : imports) {
    if (import.domain == node.domain()) return import.version;
  }
  return 0;
}

const ir::Attribute* GraphNumbering::ResolveIn(const ir::Attribute& attribute,
                                               const CallScope* scope) {
  if (attribute.ref_attr_name.empty() || scope == nullptr) return &attribute;
  const ir::Attribute* given = scope->call->attribute(attribute.ref_attr_name);
  const ir::Attribute* resolved =
      given == nullptr ? nullptr : ResolveIn(*given, scope->outer);
  return resolved != nullptr
             ? resolved
             : scope->function->FindDefault(attribute.ref_attr_name);
}

const ir::Attribute* GraphNumbering::Resolve(
    const ir::Attribute& attribute) const {
  return ResolveIn(attribute, call_);
}

absl::StatusOr<std::string> GraphNumbering::GraphKey(const ir::Graph& graph) {
  GraphNumbering inner(numbering_, model_, side_, call_, this);
  inner.SetCallDepth(call_depth_);
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    Expression expression;
    expression.label = fmt::format("input {} of a subgraph", i);
    expression.values[side_] = graph.inputs()[i];
    inner.Set(graph.inputs()[i],
              numbering_.Intern(fmt::format("parameter {} {}", inner.depth_, i),
                                std::move(expression)));
  }
  RETURN_IF_ERROR(inner.Run(graph));
  return fmt::format("graph {} ({})", graph.inputs().size(),
                     fmt::join(inner.Outputs(graph), ","));
}

absl::StatusOr<std::string> GraphNumbering::ValueKey(
    const ir::Attribute& attribute) {
  if (const auto* graph = attribute.get<std::unique_ptr<ir::Graph>>())
    return GraphKey(**graph);
  if (const auto* tensor = attribute.get<ir::Tensor>()) {
    ASSIGN_OR_RETURN(const Number number, NumberTensor(*tensor, nullptr));
    return fmt::format("tensor {}", number);
  }
  if (const auto* value = attribute.get<float>())
    return fmt::format("float {:08x}", std::bit_cast<uint32_t>(*value));
  if (const auto* values = attribute.get<std::vector<float>>())
    return "floats " + BytesOf(values->data(), values->size() * sizeof(float));
  if (const auto* value = attribute.get<std::string>())
    return "string " + Quoted(*value);
  if (const auto* values = attribute.get<std::vector<std::string>>()) {
    std::string key = "strings";
    for (const std::string& value : *values) key += " " + Quoted(value);
    return key;
  }
  if (attribute.ref_attr_name.empty() &&
      std::holds_alternative<ir::OpaqueAttribute>(attribute.value)) {
    return absl::UnimplementedError(
        fmt::format("attribute '{}' is of a kind that is not compared",
                    ir::Printable(attribute.name)));
  }
  return ir::ToString(attribute);
}

// Attributes by name, without those that say what is so without them.
absl::StatusOr<std::string> GraphNumbering::AttributesKey(const ir::Node& node,
                                                          std::string& label) {
  std::vector<std::pair<std::string, std::string>> given;
  for (const ir::Attribute& attribute : node.attributes) {
    const ir::Attribute* resolved = Resolve(attribute);
    if (resolved == nullptr) continue;
    ASSIGN_OR_RETURN(std::string value, ValueKey(*resolved));
    const ir::Attribute* fallback = numbering_.schemas_.Default(
        node.domain(), node.op_type(), VersionOf(node), attribute.name);
    if (fallback != nullptr) {
      ASSIGN_OR_RETURN(const std::string default_value, ValueKey(*fallback));
      if (default_value == value) continue;
    }
    label += fmt::format("{}{} = {}", label.empty() ? "<" : ", ",
                         ir::Printable(attribute.name),
                         ir::Printable(ir::ToString(*resolved)));
    given.emplace_back(attribute.name, std::move(value));
  }
  if (!label.empty()) label += ">";
  std::sort(given.begin(), given.end());
  std::string key;
  for (const auto& [name, value] : given)
    key += " " + Quoted(name) + Quoted(value);
  return key;
}

// A Constant node as the tensor that it is.
absl::StatusOr<Number> GraphNumbering::NumberConstant(const ir::Node& node) {
  const ir::Value* value = node.output(0);
  for (const ir::Attribute& written : node.attributes) {
    const ir::Attribute* attribute = Resolve(written);
    if (attribute == nullptr) continue;
    if (const auto* tensor = attribute->get<ir::Tensor>())
      return NumberTensor(*tensor, value);
    const auto number = [&](ir::DataType type, std::vector<int64_t> dims,
                            const void* data, size_t size) {
      ir::Tensor tensor;
      tensor.type = type;
      tensor.dims = std::move(dims);
      tensor.elements = ir::InlineElements{BytesOf(data, size)};
      return InternSmall(tensor, value);
    };
    if (const auto* v = attribute->get<float>())
      return number(ir::DataType::kFloat, {}, v, sizeof(float));
    if (const auto* v = attribute->get<int64_t>())
      return number(ir::DataType::kInt64, {}, v, sizeof(int64_t));
    if (const auto* v = attribute->get<std::vector<float>>()) {
      return number(ir::DataType::kFloat, {static_cast<int64_t>(v->size())},
                    v->data(), v->size() * sizeof(float));
    }
    if (const auto* v = attribute->get<std::vector<int64_t>>()) {
      return number(ir::DataType::kInt64, {static_cast<int64_t>(v->size())},
                    v->data(), v->size() * sizeof(int64_t));
    }
  }
  return kAbsent;
}

// True if the node's result has the number of its operand, or is a small
// constant in another form.
absl::StatusOr<bool> GraphNumbering::NumberForwarded(
    const ir::Node& node, const std::vector<Number>& operands) {
  if (!node.domain().empty() || operands.empty() || node.output(0) == nullptr)
    return false;
  if (node.op_type() == "Identity") {
    Set(node.output(0), operands[0]);
    return true;
  }
  const ValueNumbering::SmallConstant* constant =
      numbering_.FindConstant(operands[0]);
  if (constant == nullptr || node.op_type() != "Cast") return false;
  const ir::Attribute* written = node.attribute("to");
  const ir::Attribute* to = written == nullptr ? nullptr : Resolve(*written);
  const auto* type = to == nullptr ? nullptr : to->get<int64_t>();
  if (type == nullptr) return false;
  const auto target = static_cast<ir::DataType>(*type);
  if (!constant->number || !ir::IsFloat(target) ||
      !IsExactIn(*constant->number, target))
    return false;
  Set(node.output(0),
      numbering_.InternConstant(
          {target, constant->dims, /*bytes=*/"", constant->number},
          node.output(0), side_));
  return true;
}

size_t GraphNumbering::LeastRank(const ir::Node& node,
                                 const std::vector<Number>& operands) {
  const ir::Value* result = node.output(0);
  if (result != nullptr && result->type.shape)
    return result->type.shape->size();
  if (!node.domain().empty() || operands.empty()) return 0;
  const auto of = [&](Number number) -> size_t {
    const auto it = numbering_.least_ranks_.find(number);
    return it == numbering_.least_ranks_.end() ? 0 : it->second;
  };
  if (IsOneOf(kBroadcastOps, node)) {
    size_t rank = 0;
    for (const Number operand : operands) rank = std::max(rank, of(operand));
    return rank;
  }
  constexpr std::string_view kKeepRank[] = {"Cast", "CastLike", "Sqrt",
                                            "Reciprocal", "Neg"};
  if (IsOneOf(kKeepRank, node)) return of(operands[0]);
  // With an axis, there is one; and dimensions are kept unless it says not.
  const ir::Attribute* keep = node.attribute("keepdims");
  const auto* keeps = keep == nullptr ? nullptr : keep->get<int64_t>();
  const bool is_reduction = node.op_type().starts_with("Reduce");
  if (is_reduction && (keeps == nullptr || *keeps == 1) &&
      (node.attribute("axes") != nullptr || operands.size() > 1))
    return std::max<size_t>(of(operands[0]), 1);
  return 0;
}

// [1,1] and a scalar are the same beside an operand of rank 2 or more.
void GraphNumbering::LoosenRanks(const ir::Node& node,
                                 std::vector<Number>& operands) {
  if (!IsOneOf(kBroadcastOps, node) || operands.size() != 2) return;
  for (const size_t i : {0u, 1u}) {
    const ValueNumbering::SmallConstant* constant =
        numbering_.FindConstant(operands[i]);
    const auto rank = numbering_.least_ranks_.find(operands[1 - i]);
    if (constant == nullptr || constant->dims.empty() ||
        rank == numbering_.least_ranks_.end() ||
        rank->second < constant->dims.size())
      continue;
    const bool is_one =
        std::all_of(constant->dims.begin(), constant->dims.end(),
                    [](int64_t dim) { return dim == 1; });
    if (!is_one) continue;
    operands[i] = numbering_.InternConstant(
        {constant->type, {}, constant->bytes, constant->number}, nullptr,
        side_);
  }
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
  std::vector<Number> operands;
  for (const ir::Value* input : node.inputs()) operands.push_back(Get(input));
  while (!operands.empty() && operands.back() == kAbsent) operands.pop_back();
  ASSIGN_OR_RETURN(const bool is_forwarded, NumberForwarded(node, operands));
  if (is_forwarded) return absl::OkStatus();
  LoosenRanks(node, operands);
  Expression expression;
  ASSIGN_OR_RETURN(std::string key, AttributesKey(node, expression.label));
  key = fmt::format("node {} {} {} {}", Quoted(node.domain()),
                    Quoted(node.op_type()), VersionOf(node), key);
  if (IsOneOf(kRandomOps, node)) key += " " + Quoted(node.Describe());
  expression.label = fmt::format(
      "{}{}{}{} (opset {})", node.domain(), node.domain().empty() ? "" : ".",
      node.op_type(), expression.label, VersionOf(node));
  expression.operands = operands;
  if (IsOneOf(kSwappable, node) ||
      (numbering_.commutes_ && IsOneOf(kSwappableButForNan, node)))
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

absl::Status GraphNumbering::NumberCall(const ir::Node& node,
                                        const ir::Function& function) {
  if (call_depth_ >= kMaxCallDepth)
    return absl::ResourceExhaustedError("calls are nested too deep to compare");
  numbering_.called_nodes_ +=
      static_cast<int64_t>(function.body.nodes().size());
  if (numbering_.called_nodes_ > kMaxCalledNodes)
    return absl::ResourceExhaustedError("calls expand to too many nodes");
  const CallScope scope{&node, &function, call_};
  GraphNumbering body(numbering_, model_, side_, &scope, nullptr);
  body.SetCallDepth(call_depth_ + 1);
  const auto& parameters = function.body.inputs();
  for (size_t i = 0; i < parameters.size(); ++i)
    body.Set(parameters[i], Get(node.input(i)));
  RETURN_IF_ERROR(body.Run(function.body));
  const std::vector<Number> results = body.Outputs(function.body);
  for (size_t i = 0; i < results.size(); ++i) {
    if (node.output(i) != nullptr) Set(node.output(i), results[i]);
  }
  return absl::OkStatus();
}

}  // namespace addnorm::passes
