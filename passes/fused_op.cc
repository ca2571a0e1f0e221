// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "passes/fused_op.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "fmt/format.h"
#include "passes/body_name.h"
#include "passes/operators.h"

namespace addnorm::passes {
namespace {

using ir::DataType;

// value_float, by which the epsilon attribute reaches the body, is new in 12.
constexpr int64_t kValueFloatOpset = 12;

bool FitsFloat(double value) {
  return static_cast<double>(static_cast<float>(value)) == value;
}

ir::Attribute FloatAttribute(std::string_view name, float value) {
  return {std::string(name), kFloatType, value, "", ir::kNoSource};
}

ir::Attribute Clone(const ir::Attribute& attribute) {
  ir::Attribute copy{attribute.name,
                     attribute.type,
                     {},
                     attribute.ref_attr_name,
                     ir::kNoSource};
  const auto clone = [&]<typename T>(const T*) {
    if (const T* value = attribute.get<T>()) copy.value = *value;
  };
  clone(static_cast<const int64_t*>(nullptr));
  clone(static_cast<const float*>(nullptr));
  clone(static_cast<const std::string*>(nullptr));
  clone(static_cast<const std::vector<int64_t>*>(nullptr));
  clone(static_cast<const std::vector<float>*>(nullptr));
  clone(static_cast<const ir::Tensor*>(nullptr));
  return copy;
}

// True where no float attribute can stand for the constant.
bool EpsilonIsOperand(const ir::Model& model, Constants& constants,
                      const NormMatch& match) {
  const Operand& operand = match.epsilon_operand;
  if (!match.epsilon || operand.node == nullptr ||
      !match.epsilon->reference.empty()) {
    return false;
  }
  const Constant& epsilon = *match.epsilon;
  // What is in a data file stays there: the file says what it is.
  const ir::Tensor* initializer = epsilon.root->initializer();
  if (initializer != nullptr && initializer->is_external()) return true;
  if (model.OpsetVersion("").value_or(0) < kValueFloatOpset) return true;
  if (!ir::IsFloat(epsilon.tensor.type)) return true;
  if (!FitsFloat(*epsilon.root_scalar())) return true;
  // The attribute has rank 0; a Reshape or Squeeze may not take that.
  const auto chain =
      constants.Resolve(operand.node->input(static_cast<size_t>(operand.index)))
          .chain;
  return std::any_of(chain.begin(), chain.end(), [](const ir::Node* node) {
    return !node->Is("", "Cast") && !node->Is("", "CastLike") &&
           !node->Is("", "Identity");
  });
}

// The attribute of the norm's own operator or call; nullptr if there is none.
const ir::Attribute* WrittenEpsilon(const NormMatch& match) {
  return match.epsilon_node == nullptr || match.epsilon_attribute.empty()
             ? nullptr
             : match.epsilon_node->attribute(match.epsilon_attribute);
}

// Of the fused op's call: a number, or the attribute of its own caller.
ir::Attribute EpsilonOf(const NormMatch& match) {
  if (const ir::Attribute* written = WrittenEpsilon(match)) {
    ir::Attribute epsilon = Clone(*written);
    epsilon.name = kEpsilonAttribute;
    return epsilon;
  }
  ir::Attribute epsilon = FloatAttribute(kEpsilonAttribute, 0);
  const NormOperator* norm = match.epsilon_node == nullptr
                                 ? nullptr
                                 : FindNormOperator(*match.epsilon_node);
  if (norm != nullptr) epsilon.value = norm->epsilon;
  if (!match.epsilon) return epsilon;
  epsilon.ref_attr_name = match.epsilon->reference;
  if (epsilon.ref_attr_name.empty())
    epsilon.value = static_cast<float>(*match.epsilon->root_scalar());
  return epsilon;
}

class BodyBuilder {
 public:
  BodyBuilder(ir::Model& model, Constants& constants, const ir::Node& add,
              const NormMatch& match)
      : model_(model), constants_(constants), add_(add), match_(match) {}

  FusedOp Build();

 private:
  void AddInputs();
  ir::Value* Copy(const ir::Node& node);
  ir::Value* CopyOperand(const ir::Node& node, int index);
  bool IsInEpsilonChain(const ir::Node* node, int index) const;
  ir::Value* CopyValue(const ir::Value* value);
  ir::Value* CopyConstant(ir::Tensor tensor);
  ir::Value* MakeEpsilon();
  void CopyAttributes(const ir::Node& node, ir::Node* copy);
  void TakeOverEpsilon(const ir::Node& node, ir::Node* copy);
  ir::Value* NewValue(std::string_view op_type);
  bool IsMatched(const ir::Node* node) const {
    return std::find(match_.nodes.begin(), match_.nodes.end(), node) !=
           match_.nodes.end();
  }
  void SetFunctionHead();
  void ImportDomain(const std::string& domain);

  ir::Model& model_;
  Constants& constants_;
  const ir::Node& add_;
  const NormMatch& match_;

  FusedOp op_;
  ir::Graph* body_ = nullptr;
  ir::Value* scale_ = nullptr;
  ir::Value* epsilon_ = nullptr;
  const ir::Node* epsilon_chain_ = nullptr;  // of it, the node being copied
  absl::flat_hash_map<const ir::Value*, ir::Value*> copies_;
};

FusedOp BodyBuilder::Build() {
  ir::Function& function = op_.function.emplace_back();
  body_ = &function.body;
  body_->SetPlace(&model_, &function, nullptr);
  AddInputs();
  ir::Value* sum = body_->AddValue("sum");
  ir::Node* add = body_->AddNode("", "Add");
  for (size_t i = 0; i < 2; ++i) {
    body_->AddNodeInput(add, body_->inputs()[i]);
    copies_[add_.input(i)] =
        body_->inputs()[i];  // a CastLike may name its type
  }
  CopyAttributes(add_, add);
  body_->AddNodeOutput(add, sum);
  copies_[match_.x] = sum;

  ir::Value* y = Copy(*match_.y->producer());
  if (y == nullptr) {
    op_.function.clear();
    return std::move(op_);
  }
  body_->AddOutput(y);
  body_->AddOutput(sum);
  SetFunctionHead();
  return std::move(op_);
}

void BodyBuilder::AddInputs() {
  body_->AddInput("a");
  body_->AddInput("b");
  op_.operands = {add_.input(0), add_.input(1)};
  if (match_.scale != nullptr) {
    scale_ = body_->AddInput("scale");
    op_.operands.push_back(match_.scale);
  }
  op_.epsilon = EpsilonOf(match_);
  if (!EpsilonIsOperand(model_, constants_, match_)) return;
  epsilon_ = body_->AddInput(std::string(kEpsilonAttribute));
  // The Casts between the constant and its use are copied with the norm.
  op_.operands.push_back(const_cast<ir::Value*>(match_.epsilon->root));
}

ir::Value* BodyBuilder::NewValue(std::string_view op_type) {
  std::string base(op_type);
  std::transform(base.begin(), base.end(), base.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  std::string name = base;
  for (int n = 2; name == "y" || body_->FindValue(name) != nullptr; ++n) {
    name = fmt::format("{}_{}", base, n);
  }
  return body_->AddValue(name);
}

// Copies a node after what it reads, so that the order of the body depends on
// its structure alone. Depth is bounded by the variant and
// Constants::kMaxChain.
ir::Value* BodyBuilder::Copy(const ir::Node& node) {
  std::vector<ir::Value*> inputs;
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    ir::Value* input = nullptr;
    if (node.input(i) != nullptr) {
      input = CopyOperand(node, static_cast<int>(i));
      if (input == nullptr) return nullptr;
    }
    inputs.push_back(input);
  }
  ir::Node* copy = body_->AddNode(node.domain(), node.op_type());
  copy->overload = node.overload;
  CopyAttributes(node, copy);
  for (ir::Value* input : inputs) body_->AddNodeInput(copy, input);
  ir::Value* output = node.output(0) == match_.y ? body_->AddValue("y")
                                                 : NewValue(node.op_type());
  body_->AddNodeOutput(copy, output);
  copies_[node.output(0)] = output;
  // A call has all results of its function, needed or not.
  const size_t results = IsStandardOp(model_, node) ? 1 : node.outputs().size();
  for (size_t i = 1; i < results; ++i)
    body_->AddNodeOutput(copy, NewValue(node.op_type()));
  return output;
}

ir::Value* BodyBuilder::CopyOperand(const ir::Node& node, int index) {
  const Operand operand{&node, index};
  if (scale_ != nullptr && operand == match_.scale_operand) return scale_;
  const ir::Value* value = node.input(static_cast<size_t>(index));
  const bool is_epsilon =
      match_.epsilon &&
      (operand == match_.epsilon_operand || IsInEpsilonChain(&node, index));
  if (is_epsilon && value == match_.epsilon->root) {
    return epsilon_ != nullptr ? epsilon_ : MakeEpsilon();
  }
  if (is_epsilon) {
    epsilon_chain_ = value->producer();
    return Copy(*value->producer());
  }
  return CopyValue(value);
}

// True while the Casts between epsilon's constant and its use are copied. The
// same constant may be a number elsewhere in the norm.
bool BodyBuilder::IsInEpsilonChain(const ir::Node* node, int index) const {
  return node == epsilon_chain_ && index == 0;
}

ir::Value* BodyBuilder::CopyValue(const ir::Value* value) {
  if (const auto copy = copies_.find(value); copy != copies_.end())
    return copy->second;
  const ir::Node* producer = value->producer();
  if (producer != nullptr && IsMatched(producer)) return Copy(*producer);
  Resolution resolution = constants_.Resolve(value);
  if (!resolution.constant) {
    op_.reason = fmt::format("'{}', which is outside the norm, is read inside",
                             value->name());
    return nullptr;
  }
  if (resolution.constant->root != value) return Copy(*producer);
  ir::Value* made = CopyConstant(std::move(resolution.constant->tensor));
  copies_[value] = made;
  return made;
}

ir::Value* BodyBuilder::CopyConstant(ir::Tensor tensor) {
  tensor.name.clear();
  ir::Node* node = body_->AddNode("", "Constant");
  node->attributes.push_back(
      {"value", kTensorType, std::move(tensor), "", ir::kNoSource});
  ir::Value* made = NewValue("Constant");
  body_->AddNodeOutput(node, made);
  return made;
}

// The call's attribute as a value, in the type of the constant that it stands
// for.
ir::Value* BodyBuilder::MakeEpsilon() {
  ir::Node* node = body_->AddNode("", "Constant");
  node->attributes.push_back({"value_float",
                              kFloatType,
                              {},
                              std::string(kEpsilonAttribute),
                              ir::kNoSource});
  ir::Value* made = NewValue(kEpsilonAttribute);
  body_->AddNodeOutput(node, made);
  const DataType type = match_.epsilon->tensor.type;
  if (type == DataType::kFloat) return made;
  ir::Node* cast = body_->AddNode("", "Cast");
  cast->attributes.push_back(
      {"to", kIntType, static_cast<int64_t>(type), "", ir::kNoSource});
  body_->AddNodeInput(cast, made);
  ir::Value* narrowed = NewValue("Cast");
  body_->AddNodeOutput(cast, narrowed);
  return narrowed;
}

void BodyBuilder::CopyAttributes(const ir::Node& node, ir::Node* copy) {
  for (const ir::Attribute& attribute : node.attributes) {
    copy->attributes.push_back(Clone(attribute));
  }
  if (match_.epsilon_attribute.empty() || &node != match_.epsilon_node) return;
  TakeOverEpsilon(node, copy);
}

// The operator's epsilon becomes the op's: written at every call of it, also
// where it is the default, as not every runtime knows defaults.
void BodyBuilder::TakeOverEpsilon(const ir::Node& node, ir::Node* copy) {
  const NormOperator* norm = FindNormOperator(node);
  // Else the called function's own default stays in force.
  if (WrittenEpsilon(match_) == nullptr && norm == nullptr) return;
  std::erase_if(copy->attributes, [&](const ir::Attribute& attribute) {
    return attribute.name == match_.epsilon_attribute;
  });
  ir::Attribute taken = FloatAttribute(match_.epsilon_attribute, 0);
  taken.ref_attr_name = kEpsilonAttribute;
  copy->attributes.push_back(std::move(taken));
  if (norm != nullptr && copy->attribute("stash_type") == nullptr) {
    copy->attributes.push_back(
        {"stash_type", kIntType, norm->stash_type, "", ir::kNoSource});
  }
}

void BodyBuilder::SetFunctionHead() {
  ir::Function& function = op_.function.front();
  function.domain = kFusedDomain;
  function.attributes = {std::string(kEpsilonAttribute)};
  function.opset_imports = {{"", model_.OpsetVersion("").value_or(0), true}};
  for (const ir::Node& node : body_->nodes()) ImportDomain(node.domain());
  function.name = BodyName(match_.variant, function);
}

// A called function's domain, in the version that the site's own scope has.
void BodyBuilder::ImportDomain(const std::string& domain) {
  auto& imports = op_.function.front().opset_imports;
  const auto has_domain = [&](const ir::OpsetImport& import) {
    return import.domain == domain;
  };
  if (std::any_of(imports.begin(), imports.end(), has_domain)) return;
  const ir::Function* scope = add_.graph()->function();
  const auto& known =
      scope == nullptr ? model_.opset_imports : scope->opset_imports;
  const auto found = std::find_if(known.begin(), known.end(), has_domain);
  imports.push_back({domain, found == known.end() ? 1 : found->version, true});
}

}  // namespace

std::optional<ir::Attribute> EpsilonAttribute(const ir::Model& model,
                                              Constants& constants,
                                              const NormMatch& match) {
  if (EpsilonIsOperand(model, constants, match)) return std::nullopt;
  return EpsilonOf(match);
}

FusedOp BuildFusedOp(ir::Model& model, Constants& constants,
                     const ir::Node& add, const NormMatch& match) {
  return BodyBuilder(model, constants, add, match).Build();
}

}  // namespace addnorm::passes
