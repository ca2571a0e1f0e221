// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/fused_body.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "runtime/constant_value.h"

namespace addnorm::runtime {
namespace {

using Op = ScalarStep::Op;

// Calls inside calls; deeper ones are not understood.
constexpr int kMaxDepth = 8;

// What is known of a value of the body.
struct Symbol {
  enum class Kind {
    kOperand,       // a or b, by `operand`
    kRow,           // x after `row_steps`
    kSquares,       // the squares of x after `casts`
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

Symbol MakeSymbol(Symbol::Kind kind, ir::DataType type) {
  Symbol symbol;
  symbol.kind = kind;
  symbol.type = type;
  return symbol;
}

Symbol MakeConstant(ConstantValue value) {
  Symbol symbol = MakeSymbol(Symbol::Kind::kConstant, value.type());
  symbol.constant = std::move(value);
  return symbol;
}

using Symbols = std::vector<std::optional<Symbol>>;

class Translator {
 public:
  explicit Translator(std::span<const Tensor> operands)
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

 private:
  void Follow(const ir::Node& node, const Attributes* caller,
              absl::flat_hash_map<const ir::Value*, Symbol>& symbols,
              const ir::Model& model);
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

using Method = Translator::Result (Translator::*)(const Attributes&,
                                                  const Symbols&);
struct MethodRow {
  std::string_view op_type;
  Method method;
};

constexpr MethodRow kMethods[] = {
    {"Add", &Translator::Add},
    {"Mul", &Translator::Mul},
    {"Div", &Translator::Div},
    {"Pow", &Translator::Pow},
    {"Sqrt", &Translator::Sqrt},
    {"Reciprocal", &Translator::Reciprocal},
    {"Cast", &Translator::Cast},
    {"CastLike", &Translator::CastLike},
    {"Identity", &Translator::Same},
    {"Squeeze", &Translator::Reshape},
    {"Unsqueeze", &Translator::Reshape},
    {"Reshape", &Translator::Reshape},
    {"Shape", &Translator::Shape},
    {"ConstantOfShape", &Translator::ConstantOfShape},
    {"ReduceMean", &Translator::ReduceMean},
    {"ReduceSum", &Translator::ReduceSum},
    {"ReduceSumSquare", &Translator::ReduceSumSquare},
    {"GlobalAveragePool", &Translator::GlobalAveragePool},
    {"RMSNormalization", &Translator::RmsNormalization},
};

bool Is(const Symbols& in, size_t i, Symbol::Kind kind) {
  return i < in.size() && in[i] && in[i]->kind == kind;
}

// The constant of one element at i, if there is one.
std::optional<double> ScalarAt(const Symbols& in, size_t i) {
  if (!Is(in, i, Symbol::Kind::kConstant)) return std::nullopt;
  return in[i]->constant.scalar();
}

Symbol WithStep(Symbol number, ScalarStep step) {
  number.number.push_back(step);
  return number;
}

bool Translator::SetFactor(const std::vector<ScalarStep>& steps) {
  if (!recipe_.scalar_steps.empty()) return recipe_.scalar_steps == steps;
  recipe_.scalar_steps = steps;
  return !steps.empty();
}

bool Translator::SetScale(const std::vector<ir::DataType>& types) {
  if (!recipe_.scale_types.empty()) return false;
  recipe_.scale_types = types;
  return true;
}

Translator::Result Translator::Square(const Symbol& x) {
  if (x.kind != Symbol::Kind::kRow) return std::nullopt;
  // A recipe can say one cast of x before the square.
  if (x.row_steps.size() > 1) return std::nullopt;
  if (!x.IsX() && x.row_steps[0].op != RowStep::Op::kCast) return std::nullopt;
  if (has_square_ && recipe_.square_type != x.type) return std::nullopt;
  has_square_ = true;
  recipe_.square_type = x.type;
  return MakeSymbol(Symbol::Kind::kSquares, x.type);
}

Translator::Result Translator::TimesConstant(const Symbol& number,
                                             const Symbol& constant) {
  const std::optional<double> value = constant.constant.scalar();
  if (!value) return std::nullopt;
  return WithStep(number, {Op::kMultiply, *value});
}

Translator::Result Translator::TimesFactor(const Symbol& row,
                                           const Symbol& number,
                                           RowStep::Op op) {
  if (number.type != row.type || !SetFactor(number.number)) return std::nullopt;
  Symbol result = row;
  result.row_steps.push_back({op});
  return result;
}

Translator::Result Translator::TimesScale(const Symbol& row,
                                          const Symbol& scale) {
  if (scale.type != row.type || !SetScale(scale.casts)) return std::nullopt;
  Symbol result = row;
  result.row_steps.push_back({RowStep::Op::kTimesScale});
  return result;
}

Translator::Result Translator::Add(const Attributes&, const Symbols& in) {
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

Translator::Result Translator::Mul(const Attributes&, const Symbols& in) {
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

Translator::Result Translator::Div(const Attributes&, const Symbols& in) {
  using Kind = Symbol::Kind;
  if (Is(in, 0, Kind::kRow) && Is(in, 1, Kind::kNumber))
    return TimesFactor(*in[0], *in[1], RowStep::Op::kOverFactor);
  if (const auto value = ScalarAt(in, 1); value && Is(in, 0, Kind::kNumber))
    return WithStep(*in[0], {Op::kDivide, *value});
  if (const auto value = ScalarAt(in, 0); value && Is(in, 1, Kind::kNumber))
    return WithStep(*in[1], {Op::kDivideInto, *value});
  return std::nullopt;
}

Translator::Result Translator::Pow(const Attributes&, const Symbols& in) {
  const std::optional<double> exponent = ScalarAt(in, 1);
  if (!exponent) return std::nullopt;
  if (Is(in, 0, Symbol::Kind::kRow) && *exponent == 2) return Square(*in[0]);
  if (!Is(in, 0, Symbol::Kind::kNumber)) return std::nullopt;
  return WithStep(*in[0], {Op::kPower, *exponent});
}

Translator::Result Translator::Sqrt(const Attributes&, const Symbols& in) {
  if (!Is(in, 0, Symbol::Kind::kNumber)) return std::nullopt;
  return WithStep(*in[0], {Op::kSquareRoot});
}

Translator::Result Translator::Reciprocal(const Attributes&,
                                          const Symbols& in) {
  if (!Is(in, 0, Symbol::Kind::kNumber)) return std::nullopt;
  return WithStep(*in[0], {Op::kReciprocal});
}

Translator::Result Translator::To(Symbol symbol, ir::DataType type) {
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

Translator::Result Translator::Cast(const Attributes& attributes,
                                    const Symbols& in) {
  if (in.empty() || !in[0]) return std::nullopt;
  return To(*in[0], static_cast<ir::DataType>(attributes.Int("to", 0)));
}

Translator::Result Translator::CastLike(const Attributes&, const Symbols& in) {
  if (in.size() != 2 || !in[0] || !in[1]) return std::nullopt;
  return To(*in[0], in[1]->type);
}

Translator::Result Translator::Same(const Attributes&, const Symbols& in) {
  return in.empty() ? std::nullopt : in[0];
}

// Only constants are given another shape.
Translator::Result Translator::Reshape(const Attributes&, const Symbols& in) {
  if (!Is(in, 0, Symbol::Kind::kConstant)) return std::nullopt;
  return in[0];
}

Translator::Result Translator::Shape(const Attributes& attributes,
                                     const Symbols& in) {
  // From whichever dimension: of ones that broadcast, the rank does not matter.
  if (attributes.Has("end") || !Is(in, 0, Symbol::Kind::kRow))
    return std::nullopt;
  return MakeSymbol(Symbol::Kind::kShapeOfX, ir::DataType::kInt64);
}

Translator::Result Translator::ConstantOfShape(const Attributes& attributes,
                                               const Symbols& in) {
  const ir::Tensor* value = attributes.Tensor("value");
  if (value == nullptr || !Is(in, 0, Symbol::Kind::kShapeOfX))
    return std::nullopt;
  const std::optional<ConstantValue> constant = ConstantValue::Of(*value);
  if (!constant || constant->scalar() != 1.0) return std::nullopt;
  return MakeSymbol(Symbol::Kind::kOnes, value->type);
}

bool Translator::ReducesLastAxis(const Attributes& attributes,
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
Translator::Result Translator::Sum(const Attributes& attributes,
                                   const Symbols& in) {
  if (!Is(in, 0, Symbol::Kind::kSquares) || !ReducesLastAxis(attributes, in))
    return std::nullopt;
  return MakeSymbol(Symbol::Kind::kNumber, in[0]->type);
}

Translator::Result Translator::ReduceMean(const Attributes& attributes,
                                          const Symbols& in) {
  Result sum = Sum(attributes, in);
  if (!sum) return std::nullopt;
  return WithStep(*sum, {Op::kDivideByLength});
}

Translator::Result Translator::ReduceSum(const Attributes& attributes,
                                         const Symbols& in) {
  Result sum = Sum(attributes, in);
  if (!sum) return std::nullopt;
  return WithStep(*sum, {Op::kCast, 0, sum->type});
}

// Squares of half types are not rounded before they are summed: another recipe.
Translator::Result Translator::ReduceSumSquare(const Attributes& attributes,
                                               const Symbols& in) {
  if (in.empty() || !in[0]) return std::nullopt;
  if (in[0]->type != ir::DataType::kFloat &&
      in[0]->type != ir::DataType::kDouble)
    return std::nullopt;
  Symbols squares = in;
  squares[0] = Square(*in[0]);
  return ReduceSum(attributes, squares);
}

Translator::Result Translator::GlobalAveragePool(const Attributes&,
                                                 const Symbols& in) {
  if (rank_ != 3 || !Is(in, 0, Symbol::Kind::kSquares)) return std::nullopt;
  return WithStep(MakeSymbol(Symbol::Kind::kNumber, in[0]->type),
                  {Op::kDivideByLength});
}

// As the operator's own function body: see its schema.
Translator::Result Translator::RmsNormalization(const Attributes& attributes,
                                                const Symbols& in) {
  const int64_t axis = attributes.Int("axis", -1);
  if (in.size() != 2 || !in[0] || !in[1] || !in[0]->IsX() ||
      (axis != -1 && axis != rank_ - 1))
    return std::nullopt;
  const auto stash = static_cast<ir::DataType>(attributes.Int("stash_type", 1));
  const Result x = To(*in[0], stash);
  const Result squares = x ? Square(*x) : x;
  if (!squares) return std::nullopt;
  Symbol rms = MakeSymbol(Symbol::Kind::kNumber, stash);
  rms.number = {
      {Op::kDivideByLength},
      {Op::kAdd, static_cast<double>(attributes.Float("epsilon", 1e-5F))},
      {Op::kSquareRoot}};
  Result y = TimesFactor(*x, rms, RowStep::Op::kOverFactor);
  if (y) y = To(*y, in[0]->type);
  if (!y || in[1]->kind == Symbol::Kind::kOnes) return y;
  return Is(in, 1, Symbol::Kind::kScale) ? TimesScale(*y, *in[1])
                                         : std::nullopt;
}

void Translator::Follow(const ir::Node& node, const Attributes* caller,
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
  if (!node.domain().empty()) return;
  if (node.op_type() == "Constant") {
    if (const auto value = ConstantValue::Of(attributes)) {
      set(0, MakeConstant(*value));
    }
    return;
  }
  for (const MethodRow& row : kMethods) {
    if (row.op_type == node.op_type())
      set(0, (this->*row.method)(attributes, in));
  }
}

Symbols Translator::Call(const ir::Function& function, const Attributes& call,
                         const Symbols& operands) {
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

std::optional<RmsNormRecipe> Translator::Run(const ir::Function& function,
                                             const Attributes& call,
                                             std::span<const Tensor> operands,
                                             bool epsilon_is_last) {
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

}  // namespace

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
        Translator(operands).Run(function, call, operands, epsilon_is_last);
    if (recipe) return recipe;
  }
  return std::nullopt;
}

}  // namespace addnorm::runtime
