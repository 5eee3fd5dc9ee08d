// SPDX-License-Identifier: Apache-2.0
// A sum that carries its own rounding error: the error of an addition is a number too (Moller 1965, Knuth 1969),
// so a state (sum, error) holds twice the digits (Dekker 1971; compensated sums: Kahan, Neumaier 1974). It is
// symmetric, so the combine commutes bitwise. Identity (-0, +0): an error is never -0. Where errors are 0 the sum is
// unchanged, so that -0 stays -0. Level: element. Associates within the bound, which is about one rounding in total.
#pragma once

#include <concepts>

#include "regroup/monoids/arithmetic.hpp"

namespace regroup {

/// The sum of elements converted to Real, as if summed with twice its digits: |error| <= u |sum| + 4 h u^2 sum |x|, h
/// combines deep. State (sum, error), where sum is the rounding of sum + error and the answer; +0 for nothing. Infinities
/// stay infinite with an error of 0; opposite infinities, and NaN elements, give NaN. 8 additions a combine.
template <std::floating_point Real>
struct compensated_plus {
  using element = Real;
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
    const state sums = two_sum(a.sum, b.sum);
    const Real error = (a.error + b.error) + sums.error;
    const state settled = two_sum(sums.sum, error);
    return {math::select(error == 0, sums.sum, settled.sum), settled.error};
  }
  constexpr Real lower(state s) const { return s.sum + s.error; }

 private:
  /// a + b rounded, and what the rounding lost, exactly; 0 where that is not finite.
  static constexpr state two_sum(Real a, Real b) {
    // The larger first (Dekker 1971), or sum - a could overflow where sum does not, on one side of a commutation only.
    const bool right_is_larger = math::abs(a) < math::abs(b);
    const Real large = math::select(right_is_larger, b, a);
    const Real small = math::select(right_is_larger, a, b);
    const Real sum = a + b;
    const Real lost = small - (sum - large);
    return {sum, math::select(math::abs(lost) < detail::greatest<Real>, lost, Real{0})};
  }
};

}  // namespace regroup
