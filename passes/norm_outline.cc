// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "passes/norm_outline.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "fmt/format.h"
#include "passes/matcher.h"
#include "passes/operators.h"

namespace addnorm::passes {

bool IsAveraging(const ir::Node& node) {
  return IsReduction(node) || node.op_type() == "GlobalAveragePool";
}

namespace {

// A norm has up to ten operators, and some may stand between.
constexpr size_t kMaxSteps = 16;
constexpr size_t kMaxStepsBack = 8;
constexpr size_t kMaxVisited = 64;
constexpr size_t kMaxBranch = 6;
constexpr size_t kMaxReaders = 256;

template <size_t n>
bool IsOneOf(const ir::Node& node, const std::string_view (&ops)[n]) {
  return std::find(std::begin(ops), std::end(ops), node.op_type()) !=
         std::end(ops);
}

template <typename T>
bool Has(const std::vector<T*>& items, const T* item) {
  return std::find(items.begin(), items.end(), item) != items.end();
}

// Their result is another tensor, also where one operand is constant.
constexpr std::string_view kMixing[] = {
    "MatMul",      "Gemm",          "Conv",          "ConvTranspose",
    "ConvInteger", "MatMulInteger", "QLinearMatMul", "QLinearConv",
    "Einsum",      "Attention",     "RNN",           "LSTM",
    "GRU",         "Softmax",       "Shape",         "Size",
    "ArgMax",      "ArgMin",        "TopK",          "NonZero"};

// Two values that are not constant make another one.
constexpr std::string_view kBlending[] = {
    "Add",  "Sub", "Mul",   "Div",    "Max",      "Min", "Sum",
    "Mean", "Mod", "Where", "Concat", "BitShift", "And", "Or"};

constexpr std::string_view kSquaringReductions[] = {"ReduceSumSquare",
                                                    "ReduceL2", "ReduceL1"};

constexpr std::string_view kInverses[] = {"Sqrt", "Reciprocal", "Pow", "Exp"};

constexpr std::string_view kAfterMean[] = {"Add", "Sqrt",       "Pow",
                                           "Div", "Reciprocal", "Mul"};

bool IsRoot(const ir::Node* node) {
  return node->Is("", "Sqrt") || node->Is("", "Pow");
}

bool IsMixing(const ir::Model& model, const ir::Node& node) {
  if (!node.subgraphs().empty()) return true;
  if (IsStandardOp(model, node)) {
    return IsOneOf(node, kMixing) || IsAveraging(node) ||
           node.op_type().ends_with("Normalization");
  }
  return model.FindFunction(node.domain(), node.op_type(), node.overload) ==
         nullptr;
}

// The reduction a few steps behind a value.
struct Mean {
  const ir::Node* reduction = nullptr;
  bool is_negated = false;  // on the way
};

Mean MeanBehind(const ir::Value* value) {
  constexpr int kMaxMeanSteps = 4;
  Mean mean;
  for (int i = 0; value != nullptr && i < kMaxMeanSteps; ++i) {
    const ir::Node* producer = value->producer();
    if (producer == nullptr || producer->input(0) == nullptr) return {};
    mean.is_negated |= producer->Is("", "Neg");
    mean.reduction = producer;
    if (IsAveraging(*producer)) return mean;
    value = producer->input(0);
  }
  return {};
}

// True if x plus the value is x minus x's mean.
bool IsLessMean(ir::Value* x, const ir::Value* value, bool is_subtracted) {
  const Mean mean = MeanBehind(value);
  return x != nullptr && mean.reduction != nullptr &&
         (mean.is_negated || is_subtracted) &&
         !mean.reduction->op_type().starts_with("ReduceMax") &&
         StripCasts(mean.reduction->input(0)) == StripCasts(x);
}

}  // namespace

bool IsCentring(const ir::Node& node) {
  const bool is_sum = node.Is("", "Add");
  if ((!is_sum && !node.Is("", "Sub")) || node.inputs().size() != 2)
    return false;
  return IsLessMean(node.input(0), node.input(1), !is_sum) ||
         (is_sum && IsLessMean(node.input(1), node.input(0), false));
}

// From the reduction's operand back to x.
struct NormOutliner::Squared {
  ir::Node* power = nullptr;
  ir::Node* reduction = nullptr;
  std::vector<ir::Node*> after_power;   // between the square and the reduction
  std::vector<ir::Node*> before_power;  // between x and the square
  std::vector<ir::Value*> x;            // x, and what before_power make of it
};

// From the reduction's result forth to the product, and from its other operand
// back to x.
struct NormOutliner::Divided {
  std::vector<ir::Node*> nodes;  // the first one first, the product last
  std::vector<ir::Node*> to_x;
};

// On the way forth.
struct NormOutliner::Step {
  ir::Node* node = nullptr;
  size_t from = 0;  // the step before
  bool is_inverse = false;
};

std::vector<ir::Value*> NormOutliner::Computed(const ir::Node& node) {
  std::vector<ir::Value*> computed;
  for (ir::Value* input : node.inputs()) {
    if (input != nullptr && constants_.DependsOnInput(input))
      computed.push_back(input);
  }
  return computed;
}

ir::Value* NormOutliner::ChangedOperand(const ir::Node& node) {
  if (IsMixing(model_, node)) return nullptr;
  const std::vector<ir::Value*> computed = Computed(node);
  if (computed.empty() || computed[0]->graph() != node.graph()) return nullptr;
  if (IsOneOf(node, kBlending))
    return computed.size() == 1 ? computed[0] : nullptr;
  return computed[0] == node.input(0) ? computed[0] : nullptr;
}

WayBack NormOutliner::Back(ir::Value* value, size_t max_steps) {
  WayBack way{.nodes = {}, .values = {value}};
  while (way.nodes.size() < max_steps) {
    ir::Node* node = way.values.back()->producer();
    if (node == nullptr || node->graph() != value->graph()) break;
    ir::Value* operand = ChangedOperand(*node);
    if (operand == nullptr) break;
    way.nodes.push_back(node);
    way.values.push_back(operand);
  }
  return way;
}

bool NormOutliner::LeadsToOutput(const ir::Node& node) {
  const ir::Node* last = &node;
  for (size_t i = 0; i < kMaxSteps; ++i) {
    const ir::Value* value = last->output(0);
    if (value == nullptr || IsMixing(model_, *last)) return false;
    if (value->is_graph_output()) return true;
    if (value->uses().size() != 1) return false;
    last = value->uses()[0].node;
  }
  return false;
}

// A product of two values that are made of one.
bool NormOutliner::TakeSquare(ir::Node* node, Squared& squared) {
  if (!node->Is("", "Mul") || Computed(*node).size() != 2) return false;
  const WayBack a = Back(node->input(0), kMaxBranch);
  const WayBack b = Back(node->input(1), kMaxBranch);
  const auto met = std::find_first_of(a.values.begin(), a.values.end(),
                                      b.values.begin(), b.values.end());
  if (met == a.values.end()) return false;
  const auto met_in_b = std::find(b.values.begin(), b.values.end(), *met);
  squared.power = node;
  squared.before_power.assign(a.nodes.begin(),
                              a.nodes.begin() + (met - a.values.begin()));
  squared.before_power.insert(squared.before_power.end(), b.nodes.begin(),
                              b.nodes.begin() + (met_in_b - b.values.begin()));
  squared.x = {*met};
  return true;
}

// Back from the reduction: the first power of x, else an absolute value.
std::optional<NormOutliner::Squared> NormOutliner::FindSquared(
    ir::Node* reduction) {
  ir::Value* operand = reduction->input(0);
  if (operand == nullptr || operand->graph() != reduction->graph())
    return std::nullopt;
  const WayBack way = Back(operand, kMaxStepsBack);
  Squared squared{.power = reduction,
                  .reduction = reduction,
                  .after_power = {},
                  .before_power = way.nodes,
                  .x = way.values};
  const bool is_found = IsOneOf(*reduction, kSquaringReductions) ||
                        TakeProduct(way, squared) || TakePower(way, squared);
  return is_found ? std::optional(std::move(squared)) : std::nullopt;
}

// Where the way ends at a product of x with itself.
bool NormOutliner::TakeProduct(const WayBack& way, Squared& squared) {
  ir::Node* last = way.values.back()->producer();
  if (last == nullptr || last->graph() != squared.reduction->graph() ||
      !TakeSquare(last, squared))
    return false;
  squared.after_power = way.nodes;
  const WayBack rest = Back(squared.x[0], kMaxStepsBack);
  squared.before_power.insert(squared.before_power.end(), rest.nodes.begin(),
                              rest.nodes.end());
  squared.x = rest.values;
  return true;
}

// Where the way has an operator that squares, or that looks as if it did.
bool NormOutliner::TakePower(const WayBack& way, Squared& squared) {
  const auto find = [&](std::string_view op) {
    return std::find_if(
        way.nodes.rbegin(), way.nodes.rend(),
        [op](const ir::Node* node) { return node->Is("", op); });
  };
  auto power = find("Pow");
  if (power == way.nodes.rend()) power = find("Abs");
  if (power == way.nodes.rend()) return false;
  const auto place = way.nodes.rend() - power;  // behind it
  squared.power = *power;
  squared.after_power.assign(way.nodes.begin(), way.nodes.begin() + place - 1);
  squared.before_power.assign(way.nodes.begin() + place, way.nodes.end());
  squared.x.assign(way.values.begin() + place, way.values.end());
  return true;
}

// Breadth first, so that the nearest product is found.
std::optional<NormOutliner::Divided> NormOutliner::FindDivided(
    const Squared& squared) {
  std::vector<Step> steps{{.node = squared.reduction}};
  for (size_t i = 0; i < steps.size() && i < kMaxVisited; ++i) {
    if (auto divided = TakeReaders(squared, i, steps)) return divided;
  }
  return std::nullopt;
}

std::optional<NormOutliner::Divided> NormOutliner::TakeReaders(
    const Squared& squared, size_t step, std::vector<Step>& steps) {
  const ir::Value* value = steps[step].node->output(0);
  if (value == nullptr || value->uses().size() > kMaxReaders)
    return std::nullopt;
  for (const ir::Use& use : value->uses()) {
    ir::Node* node = use.node;
    if (node->graph() != value->graph()) continue;
    const bool is_divisor = node->Is("", "Div") && use.index == 1;
    const Step next{.node = node,
                    .from = step,
                    .is_inverse = steps[step].is_inverse || is_divisor ||
                                  IsOneOf(*node, kInverses)};
    if (next.is_inverse) {
      if (auto divided = ProductAt(use, squared, next, steps)) return divided;
    }
    if (!IsMixing(model_, *node) || IsAveraging(*node)) steps.push_back(next);
  }
  return std::nullopt;
}

// If the last step multiplies or divides x.
std::optional<NormOutliner::Divided> NormOutliner::ProductAt(
    const ir::Use& use, const Squared& squared, const Step& last,
    const std::vector<Step>& steps) {
  ir::Node* node = use.node;
  if ((!node->Is("", "Mul") && !node->Is("", "Div")) ||
      Computed(*node).size() != 2)
    return std::nullopt;
  auto to_x = WayToX(node->input(use.index == 0 ? 1 : 0), squared);
  if (!to_x) return std::nullopt;
  Divided divided{.nodes = {node}, .to_x = *std::move(to_x)};
  for (size_t i = last.from; i != 0; i = steps[i].from)
    divided.nodes.push_back(steps[i].node);
  std::reverse(divided.nodes.begin(), divided.nodes.end());
  return divided;
}

// Back through anything that keeps or scales the value, weights included.
std::optional<std::vector<ir::Node*>> NormOutliner::WayToX(
    ir::Value* from, const Squared& squared) {
  std::vector<ir::Value*> values{from};
  std::vector<size_t> readers{0};
  for (size_t i = 0; i < values.size() && i < kMaxVisited; ++i) {
    ir::Node* node = values[i]->producer();
    if (Has(squared.x, values[i])) {
      std::vector<ir::Node*> nodes;
      for (; i != 0; i = readers[i])
        nodes.push_back(values[readers[i]]->producer());
      return nodes;
    }
    if (node == nullptr || node == squared.power || node == squared.reduction ||
        node->graph() != from->graph() || IsMixing(model_, *node))
      continue;
    const bool is_scaled = node->Is("", "Mul") || node->Is("", "Div");
    const std::vector<ir::Value*> operands =
        is_scaled ? Computed(*node)
                  : std::vector<ir::Value*>{ChangedOperand(*node)};
    for (ir::Value* operand : operands) {
      if (operand == nullptr || Has(values, operand)) continue;
      values.push_back(operand);
      readers.push_back(i);
    }
  }
  return std::nullopt;
}

std::string NormOutliner::Intruder(const Squared& squared,
                                   const Divided& divided) const {
  std::string text = Between(squared.before_power, "the sum", "the square");
  if (text.empty())
    text = Between(squared.after_power, "the square", "the mean");
  if (text.empty()) text = BehindMean(divided.nodes);
  return text.empty() ? Between(divided.to_x, "the sum", "the product") : text;
}

// The last of the nodes that no spelling has there: where `nodes` go back, the
// first that is run.
std::string NormOutliner::Between(const std::vector<ir::Node*>& nodes,
                                  std::string_view from,
                                  std::string_view to) const {
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    const bool is_scale = to == "the product" && (*node)->Is("", "Mul");
    if (is_scale || IsFloatCast(model_, **node)) continue;
    return fmt::format("{} stands between {} and {}", (*node)->Describe(), from,
                       to);
  }
  return "";
}

std::string NormOutliner::BehindMean(
    const std::vector<ir::Node*>& nodes) const {
  const auto root = std::find_if(nodes.begin(), nodes.end(), IsRoot);
  bool is_inverted = nodes.back()->Is("", "Div");
  for (auto node = nodes.begin(); node != nodes.end(); ++node) {
    const bool is_reciprocal = (*node)->Is("", "Reciprocal");
    const bool is_second =
        (node > root && IsRoot(*node)) || (is_inverted && is_reciprocal);
    is_inverted |= is_reciprocal;
    const bool is_known = !is_second && IsOneOf(**node, kAfterMean);
    if (is_known || IsFloatCast(model_, **node)) continue;
    return node < root ? Between({*node}, "the mean", "the root")
                       : Between({*node}, "the root", "the product");
  }
  return "";
}

// E[x^2] - E[x]^2: what is subtracted from the mean comes from another one.
bool NormOutliner::IsVariance(const Squared& squared) {
  constexpr int kMaxMeanSteps = 4;
  const ir::Value* mean = squared.reduction->output(0);
  for (int casts = 0;
       casts < kMaxMeanSteps && mean != nullptr && mean->uses().size() == 1;
       ++casts) {
    const ir::Node* node = mean->uses()[0].node;
    if (node->Is("", "Sub")) {
      const ir::Node* other = MeanBehind(node->input(1)).reduction;
      if (other != nullptr) return other != squared.reduction;
    }
    mean = node->output(0);
  }
  return false;
}

std::optional<NormOutline> NormOutliner::From(ir::Node* reduction) {
  const std::optional<Squared> squared = FindSquared(reduction);
  if (!squared) return std::nullopt;
  if (IsVariance(*squared)) {
    return NormOutline{.power = squared->power,
                       .reduction = reduction,
                       .x = squared->x.back(),
                       .is_centred = true,
                       .is_variance = true,
                       .intruder = ""};
  }
  const std::optional<Divided> divided = FindDivided(*squared);
  if (!divided) return std::nullopt;
  ir::Value* x = squared->x.back();
  const ir::Node* producer = x->producer();
  return NormOutline{.power = squared->power,
                     .reduction = reduction,
                     .product = divided->nodes.back(),
                     .x = x,
                     .is_centred = producer != nullptr && IsCentring(*producer),
                     .intruder = Intruder(*squared, *divided)};
}

}  // namespace addnorm::passes
