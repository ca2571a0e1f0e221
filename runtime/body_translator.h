// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The symbols behind fused_body.h, and what each operator makes of them; not
// for other files.
//
//   BodyTranslator translator(operands);
//   return translator.Run(function, call, operands, epsilon_is_last);
#ifndef ADDNORM_RUNTIME_BODY_TRANSLATOR_H_
#define ADDNORM_RUNTIME_BODY_TRANSLATOR_H_

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "passes/ir/model.h"
#include "runtime/attributes.h"
#include "runtime/constant_value.h"
#include "runtime/recipe.h"
#include "runtime/tensor.h"

namespace addnorm::runtime {

// What is known of a value of the body.
struct Symbol {
  enum class Kind {
    kOperand,       // a or b, by `operand`
    kRow,           // x after `row_steps`
    kSquares,       // the squares of x, then cast to `casts`
    kNumber,        // one number a row: the sum of squares after `number`
    kScale,         // the scale after `casts`
    kScaledNumber,  // a number times the scale
    kConstant,
    kShapeOfX,
    kOnes,  // ones of the shape of x
  };
  Kind kind = Kind::kConstant;
  ir::DataType type = ir::DataType::kUndefined;
  int operand = 0;
  std::vector<RowStep> row_steps;
  std::vector<ScalarStep> number;
  std::vector<ir::DataType> casts;
  ConstantValue constant;

  bool IsX() const { return kind == Kind::kRow && row_steps.empty(); }
  friend bool operator==(const Symbol&, const Symbol&) = default;
};

inline Symbol MakeSymbol(Symbol::Kind kind, ir::DataType type) {
  Symbol symbol;
  symbol.kind = kind;
  symbol.type = type;
  return symbol;
}

inline Symbol MakeConstant(ConstantValue value) {
  Symbol symbol = MakeSymbol(Symbol::Kind::kConstant, value.type());
  symbol.constant = std::move(value);
  return symbol;
}

using Symbols = std::vector<std::optional<Symbol>>;

class BodyTranslator {
 public:
  explicit BodyTranslator(std::span<const Tensor> operands)
      : rank_(operands[0].rank()) {
    recipe_.type = operands[0].type();
  }

  std::optional<RmsNormRecipe> Run(const ir::Function& function,
                                   const Attributes& call,
                                   std::span<const Tensor> operands,
                                   bool epsilon_is_last);

  // Results of a function for these operands; nullopt in place of what is not
  // understood.
  Symbols Call(const ir::Function& function, const Attributes& call,
               const Symbols& operands);

  // ---- one method an operator; nullopt: not understood
  using Result = std::optional<Symbol>;
  Result Add(const Attributes&, const Symbols& in);
  Result Mul(const Attributes&, const Symbols& in);
  Result Div(const Attributes&, const Symbols& in);
  Result Pow(const Attributes&, const Symbols& in);
  Result Sqrt(const Attributes&, const Symbols& in);
  Result Reciprocal(const Attributes&, const Symbols& in);
  Result Cast(const Attributes& attributes, const Symbols& in);
  Result CastLike(const Attributes&, const Symbols& in);
  Result Same(const Attributes&, const Symbols& in);
  Result Reshape(const Attributes&, const Symbols& in);
  Result Shape(const Attributes& attributes, const Symbols& in);
  Result ConstantOfShape(const Attributes& attributes, const Symbols& in);
  Result ReduceMean(const Attributes& attributes, const Symbols& in);
  Result ReduceSum(const Attributes& attributes, const Symbols& in);
  Result ReduceSumSquare(const Attributes& attributes, const Symbols& in);
  Result GlobalAveragePool(const Attributes&, const Symbols& in);
  Result RmsNormalization(const Attributes& attributes, const Symbols& in);
  Result SimplifiedLayerNormalization(const Attributes& attributes,
                                      const Symbols& in);

 private:
  void Follow(const ir::Node& node, const Attributes* caller,
              absl::flat_hash_map<const ir::Value*, Symbol>& symbols,
              const ir::Model& model);
  Result NormOperator(const RmsNormRecipe& norm, const Attributes& attributes,
                      const Symbols& in);
  Result Square(const Symbol& x);
  Result Sum(const Attributes& attributes, const Symbols& in);
  bool ReducesLastAxis(const Attributes& attributes, const Symbols& in) const;
  Result TimesConstant(const Symbol& number, const Symbol& constant);
  Result TimesFactor(const Symbol& row, const Symbol& number, RowStep::Op op);
  Result TimesScale(const Symbol& row, const Symbol& scale);
  Result To(Symbol symbol, ir::DataType type);
  // The one factor and the one scale of the norm.
  bool SetFactor(const std::vector<ScalarStep>& steps);
  bool SetScale(const std::vector<ir::DataType>& types);

  int64_t rank_;
  RmsNormRecipe recipe_;
  bool has_square_ = false;
  int depth_ = 0;
};

// True if operand i is known and of that kind.
inline bool Is(const Symbols& in, size_t i, Symbol::Kind kind) {
  return i < in.size() && in[i] && in[i]->kind == kind;
}

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_BODY_TRANSLATOR_H_
