// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What GroupQueryAttention does to its cache: sizes, and for each batch entry
// how many tokens are where; from checked operands.
//
// It reads no queries, keys or values.
//
//   ASSIGN_OR_RETURN(const GqaPlan plan, MakeGqaPlan(op));
#ifndef ADDNORM_RUNTIME_OPS_GQA_PLAN_H_
#define ADDNORM_RUNTIME_OPS_GQA_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/op.h"
#include "runtime/ops/head_rows.h"
#include "runtime/ops/rotary.h"

namespace addnorm::runtime {

enum GqaOperand : size_t {
  kQuery,
  kKey,
  kValue,
  kPastKey,
  kPastValue,
  kLengths,
  kTotalLength,
  kCos,
  kSin,
  kPositions,
  kBias,
  kSinks,
  kKeyScale,
  kValueScale,
  kQueryNorm,
  kKeyNorm,
  kQueryLengths
};
// The cache of one batch entry before and after the step.
struct GqaEntry {
  int64_t total = 0;     // tokens after the step
  int64_t added = 0;     // by the step
  int64_t resident = 0;  // tokens in the past's rows: the last ones
  int64_t kept = 0;      // tokens in the present's rows: the last ones
  int64_t old_tokens() const { return total - added; }
  int64_t rows() const { return resident + added; }  // that attention reads
};

struct GqaPlan {
  AttentionShape shape;  // kv_rows: the most rows of any entry
  bool packed = false;   // query holds keys and values too
  bool windowed = false;
  int64_t window = -1;
  int64_t total_length = 0;
  int64_t past_capacity = 0, capacity = 0;
  std::vector<GqaEntry> entries;
  std::vector<int64_t> positions;  // [batch, q_rows], or empty
  Rotation rotation;               // half is 0 without rotation

  // Of a row of queries or keys, for the rotation.
  int64_t Position(int64_t batch, int64_t row) const;
};

// Checks all operands and attributes of the node.
absl::StatusOr<GqaPlan> MakeGqaPlan(const OpContext& op);

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_OPS_GQA_PLAN_H_
