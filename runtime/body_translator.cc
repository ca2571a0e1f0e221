// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/body_translator.h"

#include "runtime/kernels/norm_recipes.h"

namespace addnorm::runtime {
namespace {

using Op = ScalarStep::Op;

// The constant of one element at i, if there is one.
std::optional<double> ScalarAt(const Symbols& in, size_t i) {
  if (!Is(in, i, Symbol::Kind::kConstant)) return std::nullopt;
  return in[i]->constant.scalar();
}

Symbol WithStep(Symbol number, ScalarStep step) {
  number.number.push_back(step);
  return number;
}

}  // namespace

bool BodyTranslator::SetFactor(const std::vector<ScalarStep>& steps) {
  if (!recipe_.scalar_steps.empty()) return recipe_.scalar_steps == steps;
  recipe_.scalar_steps = steps;
  return !steps.empty();
}

bool BodyTranslator::SetScale(const std::vector<ir::DataType>& types) {
  if (!recipe_.scale_types.empty()) return false;
  recipe_.scale_types = types;
  return true;
}

BodyTranslator::Result BodyTranslator::Square(const Symbol& x) {
  if (x.kind != Symbol::Kind::kRow || has_square_) return std::nullopt;
  for (const RowStep& step : x.row_steps) {
    if (step.op != RowStep::Op::kCast) return std::nullopt;
    recipe_.casts_before_square.push_back(step.type);
  }
  if (!x.IsX()) recipe_.casts_before_square.pop_back();
  has_square_ = true;
  recipe_.square_type = x.type;
  return MakeSymbol(Symbol::Kind::kSquares, x.type);
}

BodyTranslator::Result BodyTranslator::TimesConstant(const Symbol& number,
                                                     const Symbol& constant) {
  const std::optional<double> value = constant.constant.scalar();
  if (!value) return std::nullopt;
  return WithStep(number, {Op::kMultiply, *value});
}

BodyTranslator::Result BodyTranslator::TimesFactor(const Symbol& row,
                                                   const Symbol& number,
                                                   RowStep::Op op) {
  if (number.type != row.type || !SetFactor(number.number)) return std::nullopt;
  Symbol result = row;
  result.row_steps.push_back({op});
  return result;
}

BodyTranslator::Result BodyTranslator::TimesScale(const Symbol& row,
                                                  const Symbol& scale) {
  if (scale.type != row.type || !SetScale(scale.casts)) return std::nullopt;
  Symbol result = row;
  result.row_steps.push_back({RowStep::Op::kTimesScale});
  return result;
}

BodyTranslator::Result BodyTranslator::Add(const Attributes&,
                                           const Symbols& in) {
  if (Is(in, 0, Symbol::Kind::kOperand) && Is(in, 1, Symbol::Kind::kOperand)) {
    if (in[0]->operand == in[1]->operand) return std::nullopt;
    return MakeSymbol(Symbol::Kind::kRow, recipe_.type);
  }
  for (const size_t i : {0u, 1u}) {
    const std::optional<double> value = ScalarAt(in, 1 - i);
    if (Is(in, i, Symbol::Kind::kNumber) && value)
      return WithStep(*in[i], {Op::kAdd, *value});
  }
  return std::nullopt;
}

BodyTranslator::Result BodyTranslator::Mul(const Attributes&,
                                           const Symbols& in) {
  using Kind = Symbol::Kind;
  if (Is(in, 0, Kind::kRow) && in[0] == in[1]) return Square(*in[0]);
  for (const size_t i : {0u, 1u}) {
    const size_t k = 1 - i;
    if (Is(in, i, Kind::kNumber) && Is(in, k, Kind::kConstant))
      return TimesConstant(*in[i], *in[k]);
    if (Is(in, i, Kind::kRow) && Is(in, k, Kind::kNumber))
      return TimesFactor(*in[i], *in[k], RowStep::Op::kTimesFactor);
    if (Is(in, i, Kind::kRow) && Is(in, k, Kind::kScale))
      return TimesScale(*in[i], *in[k]);
    if (Is(in, i, Kind::kNumber) && Is(in, k, Kind::kScale)) {
      if (in[i]->type != in[k]->type) return std::nullopt;
      Symbol product = *in[i];
      product.kind = Kind::kScaledNumber;
      product.casts = in[k]->casts;
      return product;
    }
    if (Is(in, i, Kind::kRow) && Is(in, k, Kind::kScaledNumber)) {
      if (!SetScale(in[k]->casts)) return std::nullopt;
      return TimesFactor(*in[i], *in[k], RowStep::Op::kTimesScaledFactor);
    }
  }
  return std::nullopt;
}

BodyTranslator::Result BodyTranslator::Div(const Attributes&,
                                           const Symbols& in) {
  using Kind = Symbol::Kind;
  if (Is(in, 0, Kind::kRow) && Is(in, 1, Kind::kNumber))
    return TimesFactor(*in[0], *in[1], RowStep::Op::kOverFactor);
  if (const auto value = ScalarAt(in, 1); value && Is(in, 0, Kind::kNumber))
    return WithStep(*in[0], {Op::kDivide, *value});
  if (const auto value = ScalarAt(in, 0); value && Is(in, 1, Kind::kNumber))
    return WithStep(*in[1], {Op::kDivideInto, *value});
  return std::nullopt;
}

BodyTranslator::Result BodyTranslator::Pow(const Attributes&,
                                           const Symbols& in) {
  const std::optional<double> exponent = ScalarAt(in, 1);
  if (!exponent) return std::nullopt;
  if (Is(in, 0, Symbol::Kind::kRow) && *exponent == 2) return Square(*in[0]);
  if (!Is(in, 0, Symbol::Kind::kNumber)) return std::nullopt;
  return WithStep(*in[0], {Op::kPower, *exponent});
}

BodyTranslator::Result BodyTranslator::Sqrt(const Attributes&,
                                            const Symbols& in) {
  if (!Is(in, 0, Symbol::Kind::kNumber)) return std::nullopt;
  return WithStep(*in[0], {Op::kSquareRoot});
}

BodyTranslator::Result BodyTranslator::Reciprocal(const Attributes&,
                                                  const Symbols& in) {
  if (!Is(in, 0, Symbol::Kind::kNumber)) return std::nullopt;
  return WithStep(*in[0], {Op::kReciprocal});
}

BodyTranslator::Result BodyTranslator::To(Symbol symbol, ir::DataType type) {
  if (symbol.type == type) return symbol;
  if (!ir::IsFloat(type)) return std::nullopt;
  symbol.type = type;
  switch (symbol.kind) {
    case Symbol::Kind::kRow:
      symbol.row_steps.push_back({RowStep::Op::kCast, type});
      return symbol;
    case Symbol::Kind::kNumber:
      symbol.number.push_back({Op::kCast, 0, type});
      return symbol;
    case Symbol::Kind::kScale:
    case Symbol::Kind::kSquares:
      symbol.casts.push_back(type);
      return symbol;
    case Symbol::Kind::kConstant: {
      const std::optional<ConstantValue> cast = symbol.constant.CastTo(type);
      if (!cast) return std::nullopt;
      symbol.constant = *cast;
      return symbol;
    }
    default:
      return std::nullopt;
  }
}

BodyTranslator::Result BodyTranslator::Cast(const Attributes& attributes,
                                            const Symbols& in) {
  if (in.empty() || !in[0]) return std::nullopt;
  return To(*in[0], static_cast<ir::DataType>(attributes.Int("to", 0)));
}

BodyTranslator::Result BodyTranslator::CastLike(const Attributes&,
                                                const Symbols& in) {
  if (in.size() != 2 || !in[0] || !in[1]) return std::nullopt;
  return To(*in[0], in[1]->type);
}

BodyTranslator::Result BodyTranslator::Same(const Attributes&,
                                            const Symbols& in) {
  return in.empty() ? std::nullopt : in[0];
}

// Only constants are given another shape.
BodyTranslator::Result BodyTranslator::Reshape(const Attributes&,
                                               const Symbols& in) {
  if (!Is(in, 0, Symbol::Kind::kConstant)) return std::nullopt;
  return in[0];
}

BodyTranslator::Result BodyTranslator::Shape(const Attributes& attributes,
                                             const Symbols& in) {
  // To the end, from wherever: ones of it are the same beside x.
  if (attributes.Has("end") || !Is(in, 0, Symbol::Kind::kRow))
    return std::nullopt;
  return MakeSymbol(Symbol::Kind::kShapeOfX, ir::DataType::kInt64);
}

BodyTranslator::Result BodyTranslator::ConstantOfShape(
    const Attributes& attributes, const Symbols& in) {
  const ir::Tensor* value = attributes.Tensor("value");
  if (value == nullptr || !Is(in, 0, Symbol::Kind::kShapeOfX))
    return std::nullopt;
  const std::optional<ConstantValue> constant = ConstantValue::Of(*value);
  if (!constant || constant->scalar() != 1.0) return std::nullopt;
  return MakeSymbol(Symbol::Kind::kOnes, value->type);
}

bool BodyTranslator::ReducesLastAxis(const Attributes& attributes,
                                     const Symbols& in) const {
  if (attributes.Int("keepdims", 1) != 1) return false;
  std::vector<int64_t> axes =
      attributes.Ints("axes").value_or(std::vector<int64_t>());
  if (in.size() > 1) {
    if (!Is(in, 1, Symbol::Kind::kConstant)) return false;
    axes = in[1]->constant.ints();
  }
  return axes.size() == 1 && (axes[0] == -1 || axes[0] == rank_ - 1);
}

// For a half type the sum is kept in float until the reduction's end.
BodyTranslator::Result BodyTranslator::Sum(const Attributes& attributes,
                                           const Symbols& in) {
  if (!Is(in, 0, Symbol::Kind::kSquares) || !ReducesLastAxis(attributes, in))
    return std::nullopt;
  recipe_.casts_of_squares = in[0]->casts;
  return MakeSymbol(Symbol::Kind::kNumber, in[0]->type);
}

BodyTranslator::Result BodyTranslator::ReduceMean(const Attributes& attributes,
                                                  const Symbols& in) {
  Result sum = Sum(attributes, in);
  if (!sum) return std::nullopt;
  return WithStep(*sum, {Op::kDivideByLength});
}

BodyTranslator::Result BodyTranslator::ReduceSum(const Attributes& attributes,
                                                 const Symbols& in) {
  Result sum = Sum(attributes, in);
  if (!sum) return std::nullopt;
  return WithStep(*sum, {Op::kCast, 0, sum->type});
}

BodyTranslator::Result BodyTranslator::ReduceSumSquare(
    const Attributes& attributes, const Symbols& in) {
  if (in.empty() || !in[0]) return std::nullopt;
  Symbols squares = in;
  squares[0] = Square(*in[0]);
  recipe_.squares_are_rounded = false;
  return ReduceSum(attributes, squares);
}

BodyTranslator::Result BodyTranslator::GlobalAveragePool(const Attributes&,
                                                         const Symbols& in) {
  if (rank_ != 3 || !Is(in, 0, Symbol::Kind::kSquares)) return std::nullopt;
  recipe_.casts_of_squares = in[0]->casts;
  return WithStep(MakeSymbol(Symbol::Kind::kNumber, in[0]->type),
                  {Op::kDivideByLength});
}

BodyTranslator::Result BodyTranslator::RmsNormalization(
    const Attributes& attributes, const Symbols& in) {
  if (in.size() != 2 || !in[1]) return std::nullopt;
  const auto stash = static_cast<ir::DataType>(attributes.Int("stash_type", 1));
  return NormOperator(RmsNormalizationRecipe(recipe_.type, in[1]->type, stash),
                      attributes, in);
}

BodyTranslator::Result BodyTranslator::SimplifiedLayerNormalization(
    const Attributes& attributes, const Symbols& in) {
  if (in.size() != 2 || !in[1]) return std::nullopt;
  return NormOperator(
      SimplifiedLayerNormalizationRecipe(recipe_.type, in[1]->type), attributes,
      in);
}

// An operator that is a norm by itself, by its own recipe.
BodyTranslator::Result BodyTranslator::NormOperator(
    const RmsNormRecipe& norm, const Attributes& attributes,
    const Symbols& in) {
  const int64_t axis = attributes.Int("axis", -1);
  if (!in[0] || !in[0]->IsX() || has_square_ ||
      (axis != -1 && axis != rank_ - 1))
    return std::nullopt;
  has_square_ = true;
  recipe_.square_type = norm.square_type;
  std::vector<ScalarStep> scalar_steps = norm.scalar_steps;
  for (ScalarStep& step : scalar_steps) {
    if (step.op == Op::kAddEpsilon) {
      step = {Op::kAdd,
              static_cast<double>(attributes.Float("epsilon", 1e-5F))};
    }
  }
  if (!SetFactor(scalar_steps)) return std::nullopt;
  Symbol y = *in[0];
  for (const RowStep& step : norm.row_steps) {
    if (step.op == RowStep::Op::kCast) y.type = step.type;
    // Times one changes nothing.
    const bool is_scale = step.op == RowStep::Op::kTimesScale;
    if (!is_scale || !Is(in, 1, Symbol::Kind::kOnes))
      y.row_steps.push_back(step);
  }
  if (Is(in, 1, Symbol::Kind::kOnes)) return y;
  if (!Is(in, 1, Symbol::Kind::kScale)) return std::nullopt;
  std::vector<ir::DataType> scale_types = in[1]->casts;
  scale_types.insert(scale_types.end(), norm.scale_types.begin() + 1,
                     norm.scale_types.end());
  return SetScale(scale_types) ? Result(y) : std::nullopt;
}

}  // namespace addnorm::runtime
