// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/gemm.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <vector>

#include "dnnl.h"
#include "passes/ir/status_macros.h"
#include "runtime/element_types.h"
#include "runtime/matrix_product.h"

namespace addnorm::runtime {
namespace {

// oneDNN, where it was built with OpenMP, takes as many threads as OpenMP gives
// the calling thread. Which OpenMP that is depends on how oneDNN was built, not
// on our compiler, so it is looked up in the process; without one there is
// nothing to set.
class SingleThreaded {
 public:
  SingleThreaded() {
    static const auto get =
        reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
    if (get == nullptr || set() == nullptr) return;
    saved_ = get();
    set()(1);
  }
  ~SingleThreaded() {
    if (saved_ > 0) set()(saved_);
  }
  SingleThreaded(const SingleThreaded&) = delete;
  SingleThreaded& operator=(const SingleThreaded&) = delete;

 private:
  static void (*set())(int) {
    static const auto function = reinterpret_cast<void (*)(int)>(
        dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
    return function;
  }
  int saved_ = 0;
};

void CanonicaliseBlock(int64_t rows, int64_t columns, int64_t ld, float* c) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column)
      c[row * ld + column] = Canonical(c[row * ld + column]);
  }
}

// No operand is to blame for a lack of memory.
absl::Status ToStatus(dnnl_status_t status) {
  if (status == dnnl_success) return absl::OkStatus();
  if (status == dnnl_out_of_memory) {
    return absl::ResourceExhaustedError(
        "out of memory for a matrix product (oneDNN)");
  }
  return absl::InternalError("oneDNN refuses a matrix product");
}

// oneDNN's code generators do not survive a failed mmap: room for their code is
// asked for before each kind of product is computed for the first time.
bool HasRoomForCode(bool transpose_a, bool transpose_b, bool accumulate) {
  constexpr size_t kRoom = 16 << 20;
  static std::array<std::atomic<bool>, 8> had_room{};
  std::atomic<bool>& had =
      had_room[transpose_a * 4 + transpose_b * 2 + accumulate];
  if (had) return true;
  void* const room = ::mmap(nullptr, kRoom, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) return false;
  ::munmap(room, kRoom);
  return had = true;
}

}  // namespace

absl::Status GemmBlock(const GemmShape& shape, const float* a, const float* b,
                       float* c, bool accumulate) {
  if (!HasRoomForCode(shape.transpose_a, shape.transpose_b, accumulate))
    return ToStatus(dnnl_out_of_memory);
  const SingleThreaded single_threaded;
  return ToStatus(
      dnnl_sgemm(shape.transpose_a ? 'T' : 'N', shape.transpose_b ? 'T' : 'N',
                 shape.m, shape.n, shape.k, 1.0F, a,
                 shape.transpose_a ? shape.column_of_a() : shape.row_of_a(), b,
                 shape.transpose_b ? shape.column_of_b() : shape.row_of_b(),
                 accumulate ? 1.0F : 0.0F, c, shape.row_of_c()));
}

absl::Status Gemm(const GemmShape& shape, const float* a, const float* b,
                  float* c, ThreadPool& threads) {
  if (shape.m == 0 || shape.n == 0) return absl::OkStatus();
  if (shape.m == 1 || shape.n == 1 || shape.k == 0)
    return MatrixProduct<float>(shape, a, b, c, {}, threads);
  const int64_t row_blocks = (shape.m - 1) / kGemmBlockRows + 1;
  const int64_t column_blocks = (shape.n - 1) / kGemmBlockColumns + 1;
  // The leading dimensions stay those of the whole.
  GemmShape block = shape;
  block.lda = shape.transpose_a ? shape.column_of_a() : shape.row_of_a();
  block.ldb = shape.transpose_b ? shape.column_of_b() : shape.row_of_b();
  block.ldc = shape.row_of_c();
  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / column_blocks * kGemmBlockRows;
      const int64_t column = i % column_blocks * kGemmBlockColumns;
      GemmShape part = block;
      part.m = std::min(kGemmBlockRows, shape.m - row);
      part.n = std::min(kGemmBlockColumns, shape.n - column);
      float* to = c + row * block.ldc + column;
      RETURN_IF_ERROR(GemmBlock(part, a + row * shape.row_of_a(),
                                b + column * shape.column_of_b(), to, false));
      CanonicaliseBlock(part.m, part.n, block.ldc, to);
    }
    return absl::OkStatus();
  };
  return threads.TryParallelFor(row_blocks * column_blocks, 1, run);
}

void PrepareGemm(ThreadPool& threads) {
  constexpr int64_t kSize = 64;
  const std::vector<float> a(kSize * kSize), b(kSize * kSize);
  std::vector<float> c(kSize * kSize);
  for (const bool transpose_b : {false, true}) {
    const GemmShape shape = {
        .m = kSize, .n = kSize, .k = kSize, .transpose_b = transpose_b};
    // A refusal is told by the product that needs it.
    Gemm(shape, a.data(), b.data(), c.data(), threads).IgnoreError();
  }
}

}  // namespace addnorm::runtime
