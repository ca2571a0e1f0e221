// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot and BitShift.
#include <limits>
#include <string>

#include "passes/ir/printable.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/groups.h"

namespace addnorm::runtime {
namespace {

constexpr auto kAnd = []<typename T>(T a, T b) {
  return static_cast<T>(a & b);
};
constexpr auto kOr = []<typename T>(T a, T b) { return static_cast<T>(a | b); };
constexpr auto kXor = []<typename T>(T a, T b) {
  return static_cast<T>(a ^ b);
};
constexpr auto kNot = []<typename T>(T a) { return static_cast<T>(~a); };

// Amounts that are negative or not less than the width shift everything out:
// zeros come in, or from the left the sign.
template <typename T>
bool ShiftsAllOut(T amount) {
  return amount < 0 || amount >= static_cast<T>(sizeof(T) * 8);
}
constexpr auto kShiftLeft = []<typename T>(T x, T amount) -> T {
  if (ShiftsAllOut(amount)) return T{0};
  return static_cast<T>(static_cast<uint64_t>(x) << amount);
};
constexpr auto kShiftRight = []<typename T>(T x, T amount) -> T {
  if (ShiftsAllOut(amount)) return static_cast<T>(x < 0 ? -1 : 0);
  return static_cast<T>(x >> amount);
};

absl::Status BitShift(OpContext& op) {
  const std::string direction = op.attributes().String("direction", "");
  if (direction == "LEFT") return Binary<kShiftLeft, ADDNORM_INTEGER_TYPES>(op);
  if (direction == "RIGHT")
    return Binary<kShiftRight, ADDNORM_INTEGER_TYPES>(op);
  return OpContext::Invalid("direction is '{}', expected LEFT or RIGHT",
                            ir::Printable(direction));
}

constexpr OpRow kRows[] = {
    {"", "BitShift", BitShift, {{0, 0}, {0, 1}}},
    {"", "BitwiseAnd", Binary<kAnd, ADDNORM_INTEGER_TYPES>, {{0, 0}, {0, 1}}},
    {"", "BitwiseNot", Unary<kNot, ADDNORM_INTEGER_TYPES>, {{0, 0}}},
    {"", "BitwiseOr", Binary<kOr, ADDNORM_INTEGER_TYPES>, {{0, 0}, {0, 1}}},
    {"", "BitwiseXor", Binary<kXor, ADDNORM_INTEGER_TYPES>, {{0, 0}, {0, 1}}},
};

}  // namespace

OpTable BitwiseOps() { return kRows; }

}  // namespace addnorm::runtime
