// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/arithmetic_probe.h"

#include <atomic>

#include "runtime/kernels/highway_targets.h"
// After the above.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/arithmetic_probe.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace addnorm::runtime::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Twelve chains hide the latency of both operations and fit 16 registers. They
// begin with different values, or the compiler would make them one, and settle
// near 2. Using `value` keeps them from being left out.
template <typename T>
double Chains(int64_t rounds, double& value) {
  constexpr double kChains = 12;
  const hn::ScalableTag<T> d;
  const auto factor = hn::Set(d, static_cast<T>(0.5));
  const auto one = hn::Set(d, static_cast<T>(1));
  auto a = one;
  auto b = hn::Add(a, one), c = hn::Add(b, one), e = hn::Add(c, one);
  auto f = hn::Add(e, one), g = hn::Add(f, one), h = hn::Add(g, one);
  auto i = hn::Add(h, one), j = hn::Add(i, one), k = hn::Add(j, one);
  auto l = hn::Add(k, one), m = hn::Add(l, one);
  for (int64_t round = 0; round < rounds; ++round) {
    a = hn::Add(hn::Mul(a, factor), one);
    b = hn::Add(hn::Mul(b, factor), one);
    c = hn::Add(hn::Mul(c, factor), one);
    e = hn::Add(hn::Mul(e, factor), one);
    f = hn::Add(hn::Mul(f, factor), one);
    g = hn::Add(hn::Mul(g, factor), one);
    h = hn::Add(hn::Mul(h, factor), one);
    i = hn::Add(hn::Mul(i, factor), one);
    j = hn::Add(hn::Mul(j, factor), one);
    k = hn::Add(hn::Mul(k, factor), one);
    l = hn::Add(hn::Mul(l, factor), one);
    m = hn::Add(hn::Mul(m, factor), one);
  }
  const auto sum =
      hn::Add(hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, e)), hn::Add(f, g)),
              hn::Add(hn::Add(hn::Add(h, i), hn::Add(j, k)), hn::Add(l, m)));
  value = static_cast<double>(hn::GetLane(sum));
  return 2 * kChains * static_cast<double>(hn::Lanes(d)) *
         static_cast<double>(rounds);
}

double Floats(int64_t rounds, double& value) {
  return Chains<float>(rounds, value);
}

double Doubles(int64_t rounds, double& value) {
  return Chains<double>(rounds, value);
}

}  // namespace
}  // namespace addnorm::runtime::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace addnorm::runtime {

HWY_EXPORT(Floats);
HWY_EXPORT(Doubles);

double MultiplyAndAdd(bool is_double, int64_t rounds) {
  static std::atomic<double> sink = 0;
  double value = 0;
  const double operations = is_double
                                ? HWY_DYNAMIC_DISPATCH(Doubles)(rounds, value)
                                : HWY_DYNAMIC_DISPATCH(Floats)(rounds, value);
  sink = value;
  return operations;
}

}  // namespace addnorm::runtime
#endif  // HWY_ONCE
