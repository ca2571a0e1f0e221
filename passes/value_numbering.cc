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

constexpr std::string_view kRandomOps[] = {
    "Bernoulli",        "Dropout",       "Multinomial",      "RandomNormal",
    "RandomNormalLike", "RandomUniform", "RandomUniformLike"};

// Elementwise ops that broadcast: an operand of one element may have any rank
// up to the other's.
constexpr std::string_view kBroadcastOps[] = {"Add", "Sub", "Mul", "Div",
                                              "Pow"};
// Results have the rank of the first operand.
constexpr std::string_view kKeepRank[] = {"Cast",       "CastLike", "Sqrt",
                                          "Reciprocal", "Neg",      "Tanh",
                                          "Softmax",    "Sigmoid"};
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
  std::vector<int64_t> elements;
  for (size_t at = 0; at + sizeof(int64_t) <= shown.size();
       at += sizeof(int64_t)) {
    int64_t element = 0;
    std::memcpy(&element, shown.data() + at, sizeof(element));
    elements.push_back(element);
  }
  return fmt::format("{}{}", fmt::join(elements, ","), more);
}

bool HoldsGraphs(const ir::Attribute& attribute) {
  return attribute.get<std::unique_ptr<ir::Graph>>() != nullptr ||
         attribute.get<std::vector<std::unique_ptr<ir::Graph>>>() != nullptr;
}

// Two nodes of these are two values, however alike. A Dropout is one only where
// it trains.
bool IsRandom(const ir::Node& node) {
  if (!IsOneOf(kRandomOps, node)) return false;
  return node.op_type() != "Dropout" || node.input(2) != nullptr;
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
                 const CallScope* call, const GraphNumbering* outer, int depth)
      : numbering_(numbering),
        model_(model),
        side_(side),
        call_(call),
        outer_(outer),
        depth_(depth) {}

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
  absl::StatusOr<std::vector<Number>> NumberBody(
      const ir::Node& call, const ir::Function& function,
      const std::vector<Number>& operands);
  absl::StatusOr<bool> NumberForwarded(const ir::Node& node,
                                       const std::vector<Number>& operands);
  absl::StatusOr<Number> NumberConstant(const ir::Node& node);
  absl::StatusOr<std::string> AttributesKey(const ir::Node& node,
                                            std::string& label);
  absl::StatusOr<std::string> ValueKey(const ir::Attribute& attribute);
  absl::StatusOr<std::string> GraphKey(const ir::Graph& graph);
  // The attribute that a reference stands for in this call; nullptr: absent.
  // Itself where it is no reference, or outside of calls.
  const ir::Attribute* Resolve(const ir::Attribute& attribute) const;
  void LoosenRanks(const ir::Node& node, std::vector<Number>& operands);
  size_t LeastRank(const ir::Node& node, const std::vector<Number>& operands);
  bool KeepsDims(const ir::Node& node) const;
  bool HasAxis(const ir::Node& node, const std::vector<Number>& operands) const;
  std::string PlaceInCalls(const ir::Node& node) const;
  int64_t VersionOf(const ir::Node& node) const;
  int64_t SchemaVersion(const ir::Node& node) const;

  ValueNumbering& numbering_;
  const ir::Model& model_;
  Side side_;
  const CallScope* call_;
  const GraphNumbering* outer_;
  // How many subgraphs it is in, those around calls included: parameters of
  // subgraphs are told apart by it.
  int depth_;
  int call_depth_ = 0;
  absl::flat_hash_map<const ir::Value*, Number> numbers_;
};

ValueNumbering::ValueNumbering(TensorContents& contents,
                               OperatorSchemas& schemas, bool commutes)
    : contents_(contents), schemas_(schemas), commutes_(commutes) {}

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
  random_nodes_.clear();
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

// Of the operator, not of the set: most operators change in few versions.
int64_t GraphNumbering::SchemaVersion(const ir::Node& node) const {
  return numbering_.schemas_.SinceVersion(node.domain(), node.op_type(),
                                          VersionOf(node));
}

// The calls and subgraphs that a random node is in, and how many of the same
// name were met there before.
std::string GraphNumbering::PlaceInCalls(const ir::Node& node) const {
  std::string place =
      fmt::format(" in {} graphs {}", depth_, Quoted(node.Describe()));
  for (const CallScope* scope = call_; scope != nullptr; scope = scope->outer)
    place += Quoted(scope->call->Describe());
  const int number = numbering_.random_nodes_[{side_, place}]++;
  return fmt::format("{} number {}", place, number);
}

const ir::Attribute* GraphNumbering::Resolve(
    const ir::Attribute& attribute) const {
  const ir::Attribute* resolved = &attribute;
  for (const CallScope* scope = call_;
       resolved != nullptr && !resolved->ref_attr_name.empty() &&
       scope != nullptr;
       scope = scope->outer) {
    const std::string& name = resolved->ref_attr_name;
    resolved = scope->call->attribute(name);
    if (resolved == nullptr) resolved = scope->function->FindDefault(name);
  }
  return resolved;
}

absl::StatusOr<std::string> GraphNumbering::GraphKey(const ir::Graph& graph) {
  GraphNumbering inner(numbering_, model_, side_, call_, this, depth_ + 1);
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
  if (const auto* graphs =
          attribute.get<std::vector<std::unique_ptr<ir::Graph>>>()) {
    std::string key = "graphs";
    for (const auto& graph : *graphs) {
      ASSIGN_OR_RETURN(const std::string one, GraphKey(*graph));
      key += " " + Quoted(one);
    }
    return key;
  }
  if (const auto* tensors = attribute.get<std::vector<ir::Tensor>>()) {
    std::string key = "tensors";
    for (const ir::Tensor& tensor : *tensors) {
      ASSIGN_OR_RETURN(const Number number, NumberTensor(tensor, nullptr));
      key += fmt::format(" {}", number);
    }
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
    if (resolved != &attribute && HoldsGraphs(*resolved)) {
      return absl::UnimplementedError(
          fmt::format("attribute '{}': graphs that are passed by reference are "
                      "not compared",
                      ir::Printable(attribute.name)));
    }
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

// From what operators do, never from declared types of inner values: those may
// be wrong, and values of one number may be declared in several ways.
size_t GraphNumbering::LeastRank(const ir::Node& node,
                                 const std::vector<Number>& operands) {
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
  if (IsOneOf(kKeepRank, node)) return of(operands[0]);
  if (node.Is("", "MatMul") && operands.size() == 2) {
    const size_t rank = std::max(of(operands[0]), of(operands[1]));
    return std::min(of(operands[0]), of(operands[1])) >= 2 ? rank : 0;
  }
  if (node.op_type().starts_with("Reduce") && KeepsDims(node))
    return std::max<size_t>(of(operands[0]), HasAxis(node, operands) ? 1 : 0);
  return 0;
}

bool GraphNumbering::KeepsDims(const ir::Node& node) const {
  const ir::Attribute* written = node.attribute("keepdims");
  if (written == nullptr) return true;
  const ir::Attribute* attribute = Resolve(*written);
  if (attribute == nullptr) return true;
  const auto* keeps = attribute->get<int64_t>();
  return keeps != nullptr && *keeps == 1;
}

// Of a reduction: with an axis, there is one dimension at least.
bool GraphNumbering::HasAxis(const ir::Node& node,
                             const std::vector<Number>& operands) const {
  const ir::Attribute* written = node.attribute("axes");
  const ir::Attribute* attribute =
      written == nullptr ? nullptr : Resolve(*written);
  const auto* axes =
      attribute == nullptr ? nullptr : attribute->get<std::vector<int64_t>>();
  if (axes != nullptr) return !axes->empty();
  if (operands.size() < 2) return false;
  const ValueNumbering::SmallConstant* constant =
      numbering_.FindConstant(operands[1]);
  return constant != nullptr && !constant->bytes.empty();
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
  size_t results = node.outputs().size();
  while (results > 0 && node.output(results - 1) == nullptr) --results;
  // Some operators do other things where more results are asked for.
  key = fmt::format("node {} {} {} {} {}", Quoted(node.domain()),
                    Quoted(node.op_type()), SchemaVersion(node), results, key);
  if (IsRandom(node)) key += PlaceInCalls(node);
  expression.label = fmt::format(
      "{}{}{}{} (version {})", node.domain(), node.domain().empty() ? "" : ".",
      node.op_type(), expression.label, SchemaVersion(node));
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

// A call with the same operands and attributes gives the same, unless something
// in it is random.
absl::Status GraphNumbering::NumberCall(const ir::Node& node,
                                        const ir::Function& function) {
  std::vector<Number> operands;
  for (const ir::Value* input : node.inputs()) operands.push_back(Get(input));
  std::string label;
  ASSIGN_OR_RETURN(const std::string attributes, AttributesKey(node, label));
  const std::string key =
      fmt::format("{} {} ({}) {}", static_cast<const void*>(&function), depth_,
                  fmt::join(operands, ","), attributes);
  const auto known = numbering_.calls_.find(key);
  std::vector<Number> results;
  if (known != numbering_.calls_.end()) {
    results = known->second;
  } else {
    const size_t random_nodes = numbering_.random_nodes_.size();
    ASSIGN_OR_RETURN(results, NumberBody(node, function, operands));
    if (numbering_.random_nodes_.size() == random_nodes)
      numbering_.calls_[key] = results;
  }
  for (size_t i = 0; i < results.size(); ++i) {
    if (node.output(i) != nullptr) Set(node.output(i), results[i]);
  }
  return absl::OkStatus();
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
