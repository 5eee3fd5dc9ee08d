// SPDX-License-Identifier: Apache-2.0
// A sum that carries its own rounding error: every addition's error is exact (TwoSum: Moller 1965, Knuth), and the
// errors are summed beside (Kahan and Babuska; Neumaier 1974). TwoSum is symmetric, so the combine commutes bitwise.
// Identity (-0, +0): an error is never -0. Level: element. Associates within the bound, which is nearly one rounding.
#pragma once

#include <concepts>

#include "regroup/math.hpp"
#include "regroup/monoids/arithmetic.hpp"

namespace regroup {

/// The sum of elements converted to Real, as if summed in twice the precision: |error| <= u |sum| + (h u)^2 sum |x|, h
/// combines deep. State (sum, error); the answer is their sum, +0 for nothing. Infinities stay infinite (their TwoSum's
/// error is NaN, and dropped); opposite ones, and NaN in, give NaN. Eight additions a combine.
template <std::floating_point Real>
struct compensated_plus {
  struct state {
    Real sum;
    Real error;
  };
  static constexpr bool is_commutative = true;
  constexpr state identity() const { return {plus<Real>{}.identity(), 0}; }
  template <class X>
  requires std::convertible_to<X, Real>
  constexpr state lift(const X& x) const { return {static_cast<Real>(x), 0}; }
  constexpr state operator()(state a, state b) const {
    const Real sum = a.sum + b.sum;
    const Real from_b = sum - a.sum;
    const Real lost = (a.sum - (sum - from_b)) + (b.sum - from_b);
    const Real exact = math::abs(lost) < detail::greatest<Real> ? lost : Real{0};  // neither NaN nor infinite
    return {sum, (a.error + b.error) + exact};
  }
  constexpr Real lower(state s) const { return s.sum + s.error; }
};

}  // namespace regroup
