// SPDX-License-Identifier: Apache-2.0
// The average: its state is (sum, count), because averages of pieces do not average, but sums and counts add. (The
// median has no such state of bounded size.) Level: element. Commutes bitwise; associates within the sum's bound.
#pragma once

#include <concepts>

#include "regroup/monoids/arithmetic.hpp"

namespace regroup {

/// The mean of elements converted to Real, summed in Real: NaN for nothing, NaN in NaN out, +-inf where the sum is.
/// State (sum, count) with identity (-0, 0); |error| <= (h u sum |x|) / n + 2 u |mean|, h combines deep.
template <std::floating_point Real>
struct mean {
  using element = Real;
  struct state {
    Real sum;
    index count;
  };
  static constexpr bool is_commutative = true;
  static constexpr bool is_quick = true;
  constexpr state identity() const { return {plus<Real>{}.identity(), 0}; }
  template <class X>
  requires std::convertible_to<X, Real>
  constexpr state lift(const X& x) const { return {static_cast<Real>(x), 1}; }
  constexpr state operator()(state a, state b) const { return {a.sum + b.sum, a.count + b.count}; }
  constexpr Real lower(state s) const { return plus<Real>{}.lower(s.sum) / static_cast<Real>(s.count); }
};

}  // namespace regroup
