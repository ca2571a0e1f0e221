// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Quantised weights of 2, 4 or 8 bits, several in a byte, the first in the low
// bits: how com.microsoft's block-wise ops store them.
//
// They are not ONNX's int4 and uint4 tensors, which the runtime unpacks.
//
//   UnpackBlock<4>(bytes, count, zero_point, scale, weights);
#ifndef ADDNORM_RUNTIME_OPS_PACKED_BITS_H_
#define ADDNORM_RUNTIME_OPS_PACKED_BITS_H_

#include <cstdint>

namespace addnorm::runtime {

inline bool IsPackedWidth(int64_t bits) {
  return bits == 2 || bits == 4 || bits == 8;
}

// Block sizes of ONNX Runtime's ops; the largest keeps products in range.
inline bool IsBlockSize(int64_t size) {
  constexpr int64_t kLargest = int64_t{1} << 30;
  return size >= 16 && size <= kLargest && (size & (size - 1)) == 0;
}

// Value i of a row of packed values.
inline int PackedValue(const uint8_t* bytes, int64_t i, int64_t bits) {
  const int64_t per_byte = 8 / bits;
  const int shift = static_cast<int>(i % per_byte * bits);
  return bytes[i / per_byte] >> shift & ((1 << bits) - 1);
}

// weights[i] = (value i - zero_point) * scale; one rounding for each operation.
template <int kBits>
void UnpackBlock(const uint8_t* bytes, int64_t count, float zero_point,
                 float scale, float* weights) {
  constexpr int kPerByte = 8 / kBits;
  constexpr int kMask = (1 << kBits) - 1;
  const int64_t whole = count / kPerByte;
  for (int64_t i = 0; i < whole; ++i) {
    for (int k = 0; k < kPerByte; ++k) {
      const int value = bytes[i] >> (k * kBits) & kMask;
      weights[i * kPerByte + k] =
          (static_cast<float>(value) - zero_point) * scale;
    }
  }
  for (int64_t i = whole * kPerByte; i < count; ++i) {
    weights[i] =
        (static_cast<float>(PackedValue(bytes, i, kBits)) - zero_point) * scale;
  }
}

inline void UnpackBlock(int64_t bits, const uint8_t* bytes, int64_t count,
                        float zero_point, float scale, float* weights) {
  switch (bits) {
    case 2:
      return UnpackBlock<2>(bytes, count, zero_point, scale, weights);
    case 4:
      return UnpackBlock<4>(bytes, count, zero_point, scale, weights);
    default:
      return UnpackBlock<8>(bytes, count, zero_point, scale, weights);
  }
}

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_OPS_PACKED_BITS_H_
