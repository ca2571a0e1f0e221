// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/groups.h"
#include "runtime/ops/indexing_ops.h"

namespace addnorm::runtime {
namespace {

constexpr OpRow kRows[] = {
    {"", "Compress", Compress},
    {"", "Gather", Gather},
    {"", "GatherElements", GatherElements},
    {"", "GatherND", GatherNd},
    {"", "NonZero", NonZero},
    {"", "Scatter", ScatterElements, {{0, 0}}},
    {"", "ScatterElements", ScatterElements, {{0, 0}}},
    {"", "ScatterND", ScatterNd, {{0, 0}}},
    {"", "TensorScatter", TensorScatter, {{0, 0}}},
    {"", "TopK", TopK},
    {"", "Trilu", Trilu, {{0, 0}}},
    {"", "Unique", Unique},
};

}  // namespace

OpTable IndexingOps() { return kRows; }

}  // namespace addnorm::runtime
