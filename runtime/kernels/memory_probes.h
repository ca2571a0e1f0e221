// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Moving memory and nothing else: what a kernel can be measured against.
//
// Not memcpy, which chooses other stores, or one microcoded instruction, by
// size. StreamRow (row_ops.h) is the copy past the caches.
//
//   CopyRow(a, sum, bytes);
#ifndef ADDNORM_RUNTIME_KERNELS_MEMORY_PROBES_H_
#define ADDNORM_RUNTIME_KERNELS_MEMORY_PROBES_H_

#include <cstddef>
#include <cstdint>

namespace addnorm::runtime {

// Reads each byte once; what it returns only keeps it from being left out.
uint64_t ReadRow(const void* from, size_t bytes);
// With plain stores of whole vectors.
void CopyRow(const void* from, void* to, size_t bytes);

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_KERNELS_MEMORY_PROBES_H_
