// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/strided_copy.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>

namespace addnorm::runtime {
namespace {

// A thread's share should take longer than waking the thread.
constexpr int64_t kGrainBytes = 128 << 10;
// A row is cut into blocks of this size, so that one long row is shared out.
constexpr int64_t kBlockBytes = 64 << 10;
// Planes are transposed in strips: as many columns as make a cache line of the
// output, and rows that are this many bytes of the input, so that a page of it
// is looked up once and not for every line. (Measured: twice to three times as
// fast as squares where strides are powers of two.)
constexpr int64_t kLineBytes = 64;
constexpr int64_t kStripBytes = 2048;

// Where a nested loop over axes stands.
class Walk {
 public:
  Walk(std::span<const CopyAxis> axes, int64_t index)
      : axes_(axes), counters_(axes.size()) {
    for (size_t i = axes.size(); i-- > 0;) {
      counters_[i] = index % axes[i].count;
      index /= axes[i].count;
      from_ += counters_[i] * axes[i].from;
      to_ += counters_[i] * axes[i].to;
    }
  }

  void Next() {
    for (size_t i = axes_.size(); i-- > 0;) {
      from_ += axes_[i].from;
      to_ += axes_[i].to;
      if (++counters_[i] < axes_[i].count) return;
      from_ -= axes_[i].from * axes_[i].count;
      to_ -= axes_[i].to * axes_[i].count;
      counters_[i] = 0;
    }
  }

  int64_t from() const { return from_; }
  int64_t to() const { return to_; }
  int64_t innermost() const { return counters_.back(); }

 private:
  std::span<const CopyAxis> axes_;
  std::vector<int64_t> counters_;
  int64_t from_ = 0, to_ = 0;
};

// The part of a copy that a kernel does: `row`, and for each of its indices
// `column` where it has one.
struct Kernel {
  CopyAxis row;
  CopyAxis column;
  int64_t run = 1;  // contiguous bytes on both sides
};

using KernelFunction = void (*)(const Kernel&, const std::byte*, std::byte*,
                                int64_t count);

template <size_t kBytes>
void FillRow(const Kernel& kernel, const std::byte* from, std::byte* to,
             int64_t count) {
  std::byte value[kBytes];
  std::memcpy(value, from, kBytes);
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(to + i * kernel.row.to, value, kBytes);
}

template <size_t kBytes>
void CopyRow(const Kernel& kernel, const std::byte* from, std::byte* to,
             int64_t count) {
  if (kernel.row.from == 0) return FillRow<kBytes>(kernel, from, to, count);
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(to + i * kernel.row.to, from + i * kernel.row.from, kBytes);
}

void CopyLongRuns(const Kernel& kernel, const std::byte* from, std::byte* to,
                  int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(to + i * kernel.row.to, from + i * kernel.row.from,
                static_cast<size_t>(kernel.run));
  }
}

// Rows are contiguous in `from`, columns in `to`.
template <size_t kBytes>
void CopyPlane(const Kernel& kernel, const std::byte* from, std::byte* to,
               int64_t count) {
  constexpr int64_t kStep = kBytes, kColumns = kLineBytes / kStep;
  const CopyAxis& column = kernel.column;
  for (int64_t left = 0; left < column.count; left += kColumns) {
    const int64_t width = std::min(kColumns, column.count - left);
    const std::byte* strip = from + left * column.from;
    for (int64_t i = 0; i < count; ++i) {
      std::byte* out = to + i * kernel.row.to + left * kStep;
      for (int64_t j = 0; j < width; ++j) {
        std::memcpy(out + j * kStep, strip + i * kStep + j * column.from,
                    kBytes);
      }
    }
  }
}

struct KernelRow {
  int64_t bytes;
  KernelFunction row, plane;
};

constexpr KernelRow kKernels[] = {{1, CopyRow<1>, CopyPlane<1>},
                                  {2, CopyRow<2>, CopyPlane<2>},
                                  {4, CopyRow<4>, CopyPlane<4>},
                                  {8, CopyRow<8>, CopyPlane<8>},
                                  {16, CopyRow<16>, CopyPlane<16>}};

const KernelRow* FindKernel(int64_t bytes) {
  const auto* row = std::find_if(
      std::begin(kKernels), std::end(kKernels),
      [bytes](const KernelRow& kernel) { return kernel.bytes == bytes; });
  return row == std::end(kKernels) ? nullptr : row;
}

// Fewest axes of the same copy, in the order of the bytes written.
std::vector<CopyAxis> Simplified(std::vector<CopyAxis> axes) {
  std::erase_if(axes, [](const CopyAxis& axis) { return axis.count == 1; });
  std::stable_sort(axes.begin(), axes.end(),
                   [](const CopyAxis& a, const CopyAxis& b) {
                     return std::abs(a.to) > std::abs(b.to);
                   });
  std::vector<CopyAxis> merged;  // innermost first
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    if (!merged.empty() &&
        axis->from == merged.back().from * merged.back().count &&
        axis->to == merged.back().to * merged.back().count) {
      merged.back().count *= axis->count;
    } else {
      merged.push_back(*axis);
    }
  }
  std::reverse(merged.begin(), merged.end());
  return merged;
}

// Runs the kernel for all indices of the outer axes and blocks of the row.
void Drive(ThreadPool& threads, const StridedCopy& copy, const Kernel& kernel,
           KernelFunction function, std::vector<CopyAxis> outer,
           int64_t block) {
  const int64_t count = kernel.row.count;
  outer.push_back({(count + block - 1) / block, block * kernel.row.from,
                   block * kernel.row.to});
  int64_t total = 1;
  for (const CopyAxis& axis : outer) total *= axis.count;
  const int64_t bytes =
      kernel.run * std::min(block, count) * kernel.column.count;
  threads.ParallelFor(
      total, GrainOfBytes(bytes), [&](int64_t begin, int64_t end) {
        Walk walk(outer, begin);
        for (int64_t i = begin; i < end; ++i, walk.Next()) {
          function(kernel, copy.from + walk.from(), copy.to + walk.to(),
                   std::min(block, count - walk.innermost() * block));
        }
      });
}

// Fewer where there would not be a strip for each thread.
int64_t StripRows(const ThreadPool& threads, const Kernel& kernel) {
  const int64_t share = kernel.row.count / threads.thread_count();
  return std::clamp<int64_t>(share, 32, kStripBytes / kernel.run);
}

void CopyContiguous(ThreadPool& threads, const StridedCopy& copy,
                    int64_t bytes) {
  threads.ParallelFor(bytes, kGrainBytes, [&](int64_t begin, int64_t end) {
    std::memcpy(copy.to + begin, copy.from + begin,
                static_cast<size_t>(end - begin));
  });
}

}  // namespace

int64_t GrainOfBytes(int64_t bytes) {
  return std::max<int64_t>(1, kGrainBytes / std::max<int64_t>(bytes, 1));
}

void Copy(ThreadPool& threads, StridedCopy copy) {
  for (const CopyAxis& axis : copy.axes) {
    if (axis.count <= 0) return;
  }
  std::vector<CopyAxis> axes = Simplified(std::move(copy.axes));
  Kernel kernel{{}, {1, 0, 0}, copy.element};
  if (!axes.empty() && axes.back().from == kernel.run &&
      axes.back().to == kernel.run) {
    kernel.run *= axes.back().count;
    axes.pop_back();
  }
  if (axes.empty()) return CopyContiguous(threads, copy, kernel.run);
  const KernelRow* sized = FindKernel(kernel.run);
  const CopyAxis last = axes.back();
  axes.pop_back();
  const auto across = std::find_if(
      axes.begin(), axes.end(),
      [&](const CopyAxis& axis) { return axis.from == kernel.run; });
  if (sized != nullptr && last.to == kernel.run && across != axes.end()) {
    kernel.row = *across;
    kernel.column = last;
    axes.erase(across);
    return Drive(threads, copy, kernel, sized->plane, std::move(axes),
                 StripRows(threads, kernel));
  }
  kernel.row = last;
  Drive(threads, copy, kernel, sized == nullptr ? CopyLongRuns : sized->row,
        std::move(axes), std::max<int64_t>(1, kBlockBytes / kernel.run));
}

void Fill(ThreadPool& threads, std::byte* to, int64_t count,
          const std::byte* value, int64_t element) {
  Copy(threads, {value, to, element, {{count, 0, element}}});
}

Dims ByteStrides(const Dims& dims, int64_t element) {
  Dims strides(dims.size());
  // Unsigned: where a dim is 0, the product of the others may wrap.
  uint64_t stride = static_cast<uint64_t>(element);
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = static_cast<int64_t>(stride);
    stride *= static_cast<uint64_t>(dims[i]);
  }
  return strides;
}

}  // namespace addnorm::runtime
