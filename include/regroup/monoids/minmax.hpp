// SPDX-License-Identifier: Apache-2.0
// Both ends of the range in one state. Level: element. Exact: commutes and associates bitwise.
#pragma once

#include <concepts>

#include "regroup/monoids/arithmetic.hpp"

namespace regroup {

/// `auto [low, high] = reduce(par, xs, minmax<float>{})`: `minimum` and `maximum`, NaN in both where there is one,
/// (+inf, -inf) for nothing (integers: the type's limits, crossed).
template <number T>
struct minmax {
  using element = T;
  struct state {
    T min;
    T max;
  };
  static constexpr bool is_commutative = true;
  static constexpr bool is_exact = true;
  constexpr state identity() const { return {minimum<T>{}.identity(), maximum<T>{}.identity()}; }
  template <class X>
  requires std::convertible_to<X, T>
  constexpr state lift(const X& x) const { return {static_cast<T>(x), static_cast<T>(x)}; }
  constexpr state operator()(state a, state b) const {
    return {minimum<T>{}(a.min, b.min), maximum<T>{}(a.max, b.max)};
  }
};

}  // namespace regroup
