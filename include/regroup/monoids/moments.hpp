// SPDX-License-Identifier: Apache-2.0
// Count, mean and variance in one pass, without the cancellation of sums of squares. Two states combine symmetrically:
//     n = n_a + n_b      mean = (n_a m_a + n_b m_b) / n      d2 = d2_a + d2_b + (m_b - m_a)^2 n_a n_b / n
// (Chan, Golub, LeVeque 1982, with the mean written so that a b == b a bitwise), and where a count is 0 the other
// operand is selected, so the identity is exact. Level: element. Commutes bitwise; associates within the bound.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>

#include "regroup/math.hpp"
#include "regroup/monoid.hpp"

namespace regroup {

namespace detail {
/// A count as a float, rounded once (by way of double): integer operations and two additions, because AVX2 has no such
/// conversion and a loop of conversions would not vectorise.
template <std::floating_point Real>
constexpr Real from_count(index n) {
  const auto word = static_cast<std::uint64_t>(n);
  const double high = std::bit_cast<double>(0x4530000000000000u | (word >> 32));         // 2^84 + 2^32 (n / 2^32)
  const double low = std::bit_cast<double>(0x4330000000000000u | (word & 0xffffffffu));  // 2^52 + n mod 2^32
  return static_cast<Real>((high - 0x1.00000001p84) + low);
}
}  // namespace detail

/// `auto [count, mean, variance] = reduce(par, xs, moments<double>{})`: the population variance, NumPy's `var`.
/// Elements are converted to Real. Nothing gives (0, NaN, NaN); NaN in, NaN out; an infinity makes the variance NaN and the
/// mean infinite (opposite infinities: NaN), and so does a sum that exceeds the largest Real. Squares of deviations that exceed
/// it make the variance infinite.
/// Relative error of the variance: about n u sqrt(1 + mean^2 / variance).
template <std::floating_point Real>
struct moments {
  using element = Real;
  struct state {
    index count;
    Real mean;
    Real deviation;  ///< the sum of squared deviations from the mean
  };
  struct answer {
    index count;
    Real mean;
    Real variance;
  };
  static constexpr bool is_commutative = true;
  constexpr state identity() const { return {0, 0, 0}; }
  template <class X>
  requires std::convertible_to<X, Real>
  constexpr state lift(const X& x) const {
    const Real value = static_cast<Real>(x);
    return {1, value, value - value};  // 0, or NaN for what is not finite
  }
  constexpr state operator()(state a, state b) const {
    const bool swap = (a.mean > b.mean) | ((a.mean == b.mean) & (a.count > b.count));
    const auto [count, mean, deviation] = joined(a, b, swap);
    return {count, present(a, b, a.mean, b.mean, mean), present(a, b, a.deviation, b.deviation, deviation)};
  }
  template <class X>
  requires std::convertible_to<X, Real>
  constexpr state append(index n, state a, const X& x) const {
    a.count = n;
    const state b = lift(x);
    return joined(a, b, a.mean >= b.mean);  // of equal means, a's has the larger count or the same
  }
  constexpr answer lower(state s) const {
    const Real n = detail::from_count<Real>(s.count);
    const Real variance = s.deviation / n + (s.mean - s.mean);  // 0 / 0 for nothing
    return {s.count, s.count == 0 ? variance : s.mean + 0, variance};
  }

 private:
  /// The combine of two states of one element or more.
  static constexpr state joined(state a, state b, bool swap) {
    const Real in_a = detail::from_count<Real>(a.count);
    const Real in_b = detail::from_count<Real>(b.count);
    const Real n = in_a + in_b;
    // One product inside the fma, the other rounded: which is which depends on the values, not on their sides.
    const Real rounded = math::select(swap, in_a, in_b) * math::select(swap, a.mean, b.mean);
    const Real sum = math::fma(math::select(swap, in_b, in_a), math::select(swap, b.mean, a.mean), rounded);
    const Real apart = b.mean - a.mean;
    return {a.count + b.count, sum / n, math::fma(apart * apart, in_a * in_b / n, a.deviation + b.deviation)};
  }
  /// `of_both`, or the other side's value where a count is 0.
  static constexpr Real present(state a, state b, Real of_a, Real of_b, Real of_both) {
    return math::select(a.count == 0, of_b, math::select(b.count == 0, of_a, of_both));
  }
};

}  // namespace regroup
