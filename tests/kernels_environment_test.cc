// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cfenv>
#include <cstdio>
#include <initializer_list>
#include <limits>
#include <string_view>

#include "runtime/float_environment.h"
#include "runtime/thread_pool.h"
#include "tests/support/catch.h"

#ifdef __SSE2_MATH__
#include <xmmintrin.h>
#endif

namespace addnorm::runtime {
namespace {

// Half of the smallest normal number is denormal. Volatile, so that it is
// computed here and now.
bool KeepsDenormals() {
  volatile float smallest = std::numeric_limits<float>::min();
  volatile float half = smallest / 2;
  return half != 0 && half + half == smallest;
}
// Whether one and a little rounds to one.
bool RoundsToNearest() {
  volatile float one = 1, little = 0x1p-30f;
  volatile float sum = one + little;
  return sum == 1;
}

// A state that another library might leave, for a scope.
class ForeignState {
 public:
  ForeignState() {
    std::fegetenv(&saved_);
    std::fesetround(FE_UPWARD);
#ifdef __SSE2_MATH__
    // Flush results to zero, and take denormal operands for zero.
    _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
  }
  ~ForeignState() { std::fesetenv(&saved_); }

 private:
  std::fenv_t saved_;
};

TEST_CASE("FloatEnvironment undoes a foreign state and brings it back",
          "[kernels]") {
  const ForeignState foreign;
#ifdef __SSE2_MATH__
  const unsigned before = _mm_getcsr();
  CHECK_FALSE(KeepsDenormals());
#endif
  CHECK(std::fegetround() == FE_UPWARD);
  bool keeps = false, rounds = false;
  {
    const FloatEnvironment environment;
    keeps = KeepsDenormals();
    rounds = RoundsToNearest();
  }
  CHECK(keeps);
  CHECK(rounds);
  CHECK_FALSE(RoundsToNearest());
#ifdef __SSE2_MATH__
  CHECK((_mm_getcsr() & 0xffc0) == (before & 0xffc0));
  CHECK_FALSE(KeepsDenormals());
#endif
  CHECK(std::fegetround() == FE_UPWARD);
}

TEST_CASE("Parts of a loop keep denormals on every thread, whatever the caller",
          "[kernels]") {
  const ForeignState foreign;
  ThreadPool threads(4);  // whose threads inherit the foreign state
  std::atomic<int> parts = 0, kept = 0;
  for (int i = 0; i < 100; ++i) {
    threads.ParallelFor(4, 1, [&](int64_t, int64_t) {
      ++parts;
      kept += KeepsDenormals() ? 1 : 0;
    });
    threads.ParallelFor(1, 1, [&](int64_t, int64_t) {
      ++parts;
      kept += KeepsDenormals() ? 1 : 0;
    });
  }
  CHECK(parts == 500);
  CHECK(kept == parts);
}

bool HasAny(std::string_view line, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* word) {
    return line.find(word) != std::string_view::npos;
  });
}

struct Instructions {
  int multiplications = 0, fused = 0;
};

// Of the runtime's library, all SIMD targets; nothing without a disassembler.
Instructions Disassembled() {
  Instructions count;
  FILE* lines = popen("objdump -d --no-show-raw-insn '" ADDNORM_RUNTIME_LIBRARY
                      "' 2>/dev/null",
                      "r");
  char buffer[4096];
  while (lines != nullptr && std::fgets(buffer, sizeof buffer, lines)) {
    std::string_view line = buffer;
    line = line.substr(0, line.find('<'));  // names of functions
    count.multiplications += HasAny(line, {"mulps", "fmul"}) ? 1 : 0;
    count.fused += HasAny(line, {"fmadd", "fmsub", "fnmadd", "fnmsub", "fmla",
                                 "fmls", "fcmla", "xvmadd"})
                       ? 1
                       : 0;
  }
  if (lines != nullptr) pclose(lines);
  return count;
}

TEST_CASE("The runtime's code has no fused multiply-add", "[kernels]") {
  const Instructions count = Disassembled();
  if (count.multiplications == 0) WARN("skipped: there is no objdump");
  CHECK(count.fused == 0);
}

}  // namespace
}  // namespace addnorm::runtime
