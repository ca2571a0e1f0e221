// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The floating-point state that every kernel relies on: round to nearest even,
// denormals kept, no traps. It is set for a scope, because any library of the
// process may have changed it: merely loading one that was built with
// -ffast-math makes denormals zero, and new threads inherit that.
//
//   FloatEnvironment environment;  // the caller's own state comes back at the
//                                  // end
#ifndef ADDNORM_RUNTIME_FLOAT_ENVIRONMENT_H_
#define ADDNORM_RUNTIME_FLOAT_ENVIRONMENT_H_

#ifdef __SSE2_MATH__
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace addnorm::runtime {

class FloatEnvironment {
 public:
#ifdef __SSE2_MATH__
  // All arithmetic is in SSE registers, so that MXCSR is the whole state. To
  // set it takes nanoseconds, fesetenv over a hundred for the x87 unit.
  FloatEnvironment() : saved_(_mm_getcsr()) { _mm_setcsr(kDefaultState); }
  ~FloatEnvironment() { _mm_setcsr(saved_); }
#else
  // FE_DFL_ENV covers Arm's FPCR, its flush bits included.
  FloatEnvironment() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~FloatEnvironment() { std::fesetenv(&saved_); }
#endif
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
#ifdef __SSE2_MATH__
  // As a process starts: exceptions masked, all else zero.
  static constexpr unsigned kDefaultState = 0x1f80;
  unsigned saved_;
#else
  std::fenv_t saved_;
#endif
};

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_FLOAT_ENVIRONMENT_H_
