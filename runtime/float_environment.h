// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The floating-point state that every kernel relies on: round to nearest even,
// denormals kept, no traps. It is set for a scope, because any library of the
// process may have changed it: merely loading one that was built with
// -ffast-math makes denormals zero, and new threads inherit that.
//
//   FloatEnvironment environment;  // the caller's own state comes back at the
//   end
#ifndef ADDNORM_RUNTIME_FLOAT_ENVIRONMENT_H_
#define ADDNORM_RUNTIME_FLOAT_ENVIRONMENT_H_

#include <cfenv>

namespace addnorm::runtime {

class FloatEnvironment {
 public:
  // FE_DFL_ENV covers x86's MXCSR and Arm's FPCR, their flush bits included.
  FloatEnvironment() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~FloatEnvironment() { std::fesetenv(&saved_); }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
  std::fenv_t saved_;
};

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_FLOAT_ENVIRONMENT_H_
