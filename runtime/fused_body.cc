// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/fused_body.h"

#include <string>
#include <utility>
#include <vector>

#include "runtime/body_translator.h"

namespace addnorm::runtime {
namespace {

// Calls inside calls; deeper ones are not understood.
constexpr int kMaxDepth = 8;

using Method = BodyTranslator::Result (BodyTranslator::*)(const Attributes&,
                                                          const Symbols&);
struct MethodRow {
  std::string_view op_type;
  Method method;
  // ONNX Runtime writes its own operators into either domain.
  bool is_contrib = false;
};

constexpr MethodRow kMethods[] = {
    {"Add", &BodyTranslator::Add},
    {"Mul", &BodyTranslator::Mul},
    {"Div", &BodyTranslator::Div},
    {"Pow", &BodyTranslator::Pow},
    {"Sqrt", &BodyTranslator::Sqrt},
    {"Reciprocal", &BodyTranslator::Reciprocal},
    {"Cast", &BodyTranslator::Cast},
    {"CastLike", &BodyTranslator::CastLike},
    {"Identity", &BodyTranslator::Same},
    {"Squeeze", &BodyTranslator::Reshape},
    {"Unsqueeze", &BodyTranslator::Reshape},
    {"Reshape", &BodyTranslator::Reshape},
    {"Shape", &BodyTranslator::Shape},
    {"ConstantOfShape", &BodyTranslator::ConstantOfShape},
    {"ReduceMean", &BodyTranslator::ReduceMean},
    {"ReduceSum", &BodyTranslator::ReduceSum},
    {"ReduceSumSquare", &BodyTranslator::ReduceSumSquare},
    {"GlobalAveragePool", &BodyTranslator::GlobalAveragePool},
    {"RMSNormalization", &BodyTranslator::RmsNormalization},
    {"SimplifiedLayerNormalization",
     &BodyTranslator::SimplifiedLayerNormalization, /*is_contrib=*/true},
};

}  // namespace

void BodyTranslator::Follow(
    const ir::Node& node, const Attributes* caller,
    absl::flat_hash_map<const ir::Value*, Symbol>& symbols,
    const ir::Model& model) {
  const Attributes attributes(node, caller);
  Symbols in;
  for (const ir::Value* value : node.inputs()) {
    const auto it = symbols.find(value);
    in.push_back(it == symbols.end() ? std::nullopt
                                     : std::optional(it->second));
  }
  const auto set = [&](size_t i, const Result& symbol) {
    if (symbol && node.output(i) != nullptr)
      symbols.insert_or_assign(node.output(i), *symbol);
  };
  const ir::Function* function =
      model.FindFunction(node.domain(), node.op_type(), node.overload);
  if (function != nullptr) {
    const Symbols results = Call(*function, attributes, in);
    for (size_t i = 0; i < results.size(); ++i) set(i, results[i]);
    return;
  }
  if (node.Is("", "Constant")) {
    if (const auto value = ConstantValue::Of(attributes)) {
      set(0, MakeConstant(*value));
    }
    return;
  }
  for (const MethodRow& row : kMethods) {
    const bool is_domain = node.domain().empty() ||
                           (row.is_contrib && node.domain() == "com.microsoft");
    if (is_domain && row.op_type == node.op_type())
      set(0, (this->*row.method)(attributes, in));
  }
}

Symbols BodyTranslator::Call(const ir::Function& function,
                             const Attributes& call, const Symbols& operands) {
  if (depth_ >= kMaxDepth) return {};
  ++depth_;
  absl::flat_hash_map<const ir::Value*, Symbol> symbols;
  const auto& inputs = function.body.inputs();
  for (size_t i = 0; i < inputs.size() && i < operands.size(); ++i) {
    if (operands[i]) symbols.insert_or_assign(inputs[i], *operands[i]);
  }
  for (const ir::Node& node : function.body.nodes())
    Follow(node, &call, symbols, *function.body.model());
  --depth_;
  Symbols results;
  for (const ir::Value* output : function.body.outputs()) {
    const auto it = symbols.find(output);
    results.push_back(it == symbols.end() ? std::nullopt
                                          : std::optional(it->second));
  }
  return results;
}

std::optional<RmsNormRecipe> BodyTranslator::Run(
    const ir::Function& function, const Attributes& call,
    std::span<const Tensor> operands, bool epsilon_is_last) {
  Symbols symbols;
  for (size_t i = 0; i < operands.size(); ++i) {
    Symbol symbol = MakeSymbol(Symbol::Kind::kOperand, operands[i].type());
    symbol.operand = static_cast<int>(i);
    if (i >= 2) {
      symbol.kind = Symbol::Kind::kScale;
      symbol.casts = {symbol.type};
    }
    symbols.emplace_back(std::move(symbol));
  }
  if (epsilon_is_last) {
    const auto epsilon = ConstantValue::Of(operands.back());
    if (!epsilon) return std::nullopt;
    symbols.back() = MakeConstant(*epsilon);
  }
  const Symbols results = Call(function, call, symbols);
  if (results.size() != 2 || !Is(results, 0, Symbol::Kind::kRow) ||
      !results[1] || !results[1]->IsX())
    return std::nullopt;
  recipe_.row_steps = results[0]->row_steps;
  // A scale or factor that y does not use is none of this norm.
  const bool is_scaled = operands.size() - (epsilon_is_last ? 1 : 0) > 2;
  if (recipe_.scalar_steps.empty() || recipe_.scale_types.empty() == is_scaled)
    return std::nullopt;
  return recipe_;
}

std::optional<RmsNormRecipe> TranslateBody(const ir::Function& function,
                                           const Attributes& call,
                                           std::span<const Tensor> operands) {
  if (operands.size() < 2 || operands.size() > 4 ||
      operands.size() != function.body.inputs().size())
    return std::nullopt;
  for (const Tensor& operand : operands) {
    if (operand.is_absent() || !ir::IsFloat(operand.type()))
      return std::nullopt;
  }
  if (operands[0].type() != operands[1].type()) return std::nullopt;
  // The third of three operands is a scale, or epsilon.
  for (const bool epsilon_is_last : {false, true}) {
    const size_t row_operands = operands.size() - (epsilon_is_last ? 1 : 0);
    if (row_operands < 2 || row_operands > 3) continue;
    const auto recipe =
        BodyTranslator(operands).Run(function, call, operands, epsilon_is_last);
    if (recipe) return recipe;
  }
  return std::nullopt;
}

}  // namespace addnorm::runtime
