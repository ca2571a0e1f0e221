// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/row_passes.h"

#include "runtime/kernels/highway_targets.h"
// After the above.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/row_passes.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "runtime/kernels/row_ops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace addnorm::runtime::HWY_NAMESPACE {
namespace {

// Squares are rounded to S, which is T or the type in which T computes.
template <typename T, typename S>
double First(const void* a, const void* b, void* x, size_t n) {
  const auto square = [](auto v) HWY_ATTR {
    return RoundLanes<S>(WideTag<T>(), hn::Mul(v, v));
  };
  const auto add = [](auto va, auto vb) HWY_ATTR { return hn::Add(va, vb); };
  const auto* row_a = static_cast<const T*>(a);
  const ComputeType<T> sum =
      b == nullptr ? RowSum(n, row_a, square)
                   : MapAndSumRows(n, row_a, static_cast<const T*>(b),
                                   static_cast<T*>(x), add, square);
  return static_cast<double>(Canonical(sum));
}

template <RowForm kForm, typename Middle, class D>
HWY_INLINE hn::Vec<D> Apply(D d, hn::Vec<D> v, hn::Vec<D> scale,
                            hn::Vec<D> factor) {
  const auto round = [d](hn::Vec<D> value)
                         HWY_ATTR { return RoundLanes<Middle>(d, value); };
  if constexpr (kForm == RowForm::kFactorScale) {
    return hn::Mul(round(hn::Mul(v, factor)), scale);
  } else if constexpr (kForm == RowForm::kOverScale) {
    return hn::Mul(round(Quotient(v, factor)), scale);
  } else if constexpr (kForm == RowForm::kScaleFactor) {
    return hn::Mul(round(hn::Mul(v, scale)), factor);
  } else {
    return hn::Mul(v, round(hn::Mul(factor, scale)));
  }
}

template <RowForm kForm, typename T, typename Out>
void SecondWithoutScale(const void* x, const void*, double factor, void* y,
                        size_t n) {
  const auto f = hn::Set(WideTag<T>(), static_cast<ComputeType<T>>(factor));
  const auto* row = static_cast<const T*>(x);
  MapRow(n, row, static_cast<Out*>(y), [f](auto v) HWY_ATTR {
    return kForm == RowForm::kOver ? Quotient(v, f) : hn::Mul(v, f);
  });
}

template <RowForm kForm, typename T, typename Middle, typename Out,
          typename Scale>
void SecondWithScale(const void* x, const void* scale, double factor, void* y,
                     size_t n) {
  const WideTag<T> d;
  const auto f = hn::Set(d, static_cast<ComputeType<T>>(factor));
  MapRows(n, static_cast<const T*>(x), static_cast<const Scale*>(scale),
          static_cast<Out*>(y), [d, f](auto v, auto vs) HWY_ATTR {
            return Apply<kForm, Middle>(d, v, vs, f);
          });
}

template <typename T, typename Middle, typename Out, typename Scale>
SecondPass SecondOfTypes(RowForm form) {
  switch (form) {
    case RowForm::kFactor:
      return SecondWithoutScale<RowForm::kFactor, T, Out>;
    case RowForm::kOver:
      return SecondWithoutScale<RowForm::kOver, T, Out>;
    case RowForm::kFactorScale:
      return SecondWithScale<RowForm::kFactorScale, T, Middle, Out, Scale>;
    case RowForm::kOverScale:
      return SecondWithScale<RowForm::kOverScale, T, Middle, Out, Scale>;
    case RowForm::kScaleFactor:
      return SecondWithScale<RowForm::kScaleFactor, T, Middle, Out, Scale>;
    case RowForm::kScaledFactor:
      return SecondWithScale<RowForm::kScaledFactor, T, Middle, Out, Scale>;
  }
  return nullptr;
}

struct FirstRow {
  ir::DataType type, square_type;
  FirstPass pass;
};

template <typename T, typename S>
constexpr FirstRow kFirst = {kTypeOf<T>, kTypeOf<S>, First<T, S>};

FirstPass SelectFirst(ir::DataType type, ir::DataType square_type) {
  static constexpr FirstRow kRows[] = {
      kFirst<float, float>,    kFirst<double, double>,
      kFirst<Half, float>,     kFirst<Half, Half>,
      kFirst<BFloat16, float>, kFirst<BFloat16, BFloat16>};
  for (const FirstRow& row : kRows) {
    if (row.type == type && row.square_type == square_type) return row.pass;
  }
  return nullptr;
}

struct SecondRow {
  ir::DataType type, middle, result, scale;
  SecondPass (*of_form)(RowForm);
};

template <typename T, typename Middle, typename Out, typename Scale>
constexpr SecondRow kSecond = {kTypeOf<T>, kTypeOf<Middle>, kTypeOf<Out>,
                               kTypeOf<Scale>,
                               SecondOfTypes<T, Middle, Out, Scale>};

SecondPass SelectSecond(const SecondPassKey& key) {
  // The middle of all-half chains, and of a cast before the scale, is half.
  static constexpr SecondRow kRows[] = {
      kSecond<float, float, float, float>,
      kSecond<float, float, Half, float>,
      kSecond<float, float, BFloat16, float>,
      kSecond<double, double, double, double>,
      kSecond<Half, Half, Half, Half>,
      kSecond<Half, float, Half, Half>,
      kSecond<Half, float, Half, float>,
      kSecond<BFloat16, BFloat16, BFloat16, BFloat16>,
      kSecond<BFloat16, float, BFloat16, BFloat16>,
      kSecond<BFloat16, float, BFloat16, float>};
  for (const SecondRow& row : kRows) {
    if (row.type == key.type && row.middle == key.middle &&
        row.result == key.result && row.scale == key.scale)
      return row.of_form(key.form);
  }
  return nullptr;
}

}  // namespace
}  // namespace addnorm::runtime::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace addnorm::runtime {

HWY_EXPORT(SelectFirst);
HWY_EXPORT(SelectSecond);

FirstPass FirstPassFor(ir::DataType type, ir::DataType square_type) {
  return HWY_DYNAMIC_DISPATCH(SelectFirst)(type, square_type);
}

SecondPass SecondPassFor(const SecondPassKey& key) {
  return HWY_DYNAMIC_DISPATCH(SelectSecond)(key);
}

}  // namespace addnorm::runtime
#endif  // HWY_ONCE
