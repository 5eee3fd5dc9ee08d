// SPDX-License-Identifier: Apache-2.0
// log(sum exp x) without overflow: the state is (m, s), the largest x and the sum of exp(x - m), so every exponent is
// <= 0. The larger m wins; new information changes the meaning of the other sum, and exp(m_low - m_high) corrects it
// (online softmax: Milakov and Gimelshein 2018). At equal m, both infinite too, the factor is 1; inf - inf is dropped.
// Level: element; `rescale` is the one definition of the merge, here and in softmax_mean. Commutes bitwise.
#pragma once

#include <concepts>
#include <type_traits>

#include "regroup/monoids/arithmetic.hpp"

namespace regroup {

/// How two states with maxima m_left and m_right merge: the maximum of both (NaN wins), and the factor for the sums of the
/// lower side. `merge(left, right)` = fma(low, factor, high) for every sum the states carry: s, or an element of O.
template <std::floating_point Real>
struct rescale {
  Real m;
  Real factor;  ///< decay(m_low - m_high); 1 where they are equal; NaN where one is
  bool right_is_higher;

  // (?: where neither arm computes anything is fewer instructions than select.)
  constexpr rescale(Real m_left, Real m_right) : factor(Real{1}), right_is_higher(m_left < m_right) {
    const Real low = right_is_higher ? m_left : m_right;
    const Real high = right_is_higher ? m_right : m_left;
    m = low == low ? high : low;
    if (std::is_constant_evaluated() && low == high) return;  // compilers refuse to fold infinity - infinity
    factor = math::decay(math::select(low == high, Real{0}, low - high));
  }

  constexpr Real operator()(Real left, Real right) const {
    const Real low = right_is_higher ? left : right;
    const Real high = right_is_higher ? right : left;
    return math::fma(low, factor, high);
  }
};

/// The weight of x in a tile whose maximum is m: decay(x - m), 0 for the identity's -inf, 1 at the maximum itself.
template <std::floating_point Real>
struct softmax_weight {
  Real m;
  template <class X>
  constexpr Real operator()(const X& element) const {
    const Real x = static_cast<Real>(element);
    const Real present = math::select(x == m, Real{1}, math::decay(x - m));
    return math::select(x == detail::least<Real>, Real{0}, present);
  }
};

/// The same for a finite m, where no special cases are needed.
template <std::floating_point Real>
struct finite_weight {
  Real m;
  template <class X>
  constexpr Real operator()(const X& element) const {
    return math::decay(static_cast<Real>(element) - m);
  }
};

namespace detail {
/// The largest element, except that a NaN may or may not show and the sign of a zero is not defined. That is enough for
/// softmax's first sweep, because its second one meets every NaN. One instruction a pack.
template <std::floating_point Real>
struct peak {
  static constexpr bool is_commutative = true;
  static constexpr bool is_quick = true;
  constexpr Real identity() const { return detail::least<Real>; }
  constexpr Real operator()(Real a, Real b) const {
#ifdef __CUDA_ARCH__
    if (!std::is_constant_evaluated()) return fmax(a, b);
#endif
    return a < b ? b : a;
  }
  constexpr Real lower(Real m) const { return m + Real{0}; }
};
}  // namespace detail

/// log(sum exp x) of elements converted to Real, natural logarithm: -inf for nothing or all -inf, +inf where one is,
/// NaN in, NaN out. State (m, s) with identity (-inf, 0); NaN is NaN in both. A tile is lifted at once: its maximum, then
/// plus's fold over the weights. |error of s| <= u sum w ((1 + a) (m - x) + c r + h), w = exp(x - m), a = decay_slope and
/// c = exp_error of math, h combines and r rescales deep. One exp a combine.
template <std::floating_point Real>
struct log_sum_exp {
  struct state {
    Real m;
    Real s;
  };
  static constexpr bool is_commutative = true;
  constexpr state identity() const { return {detail::least<Real>, 0}; }
  template <class X>
  requires std::convertible_to<X, Real>
  constexpr state lift(const X& element) const {
    const Real x = static_cast<Real>(element) + Real{0};
    const Real one = x == x ? Real{1} : x;
    return {x, x == detail::least<Real> ? Real{0} : one};
  }
  constexpr state operator()(state a, state b) const {
    const rescale<Real> merge{a.m, b.m};
    return {merge.m, merge(a.s, b.s)};
  }
  constexpr Real lower(state s) const {
    const bool infinite = s.m == detail::least<Real> || s.m == detail::greatest<Real>;
    return math::select(infinite, s.m, s.m + math::log(s.s));
  }
  template <class Tile>
  constexpr state lift_tile(const Tile& tile) const {
    const Real m = detail::peak<Real>{}.lower(tile.fold(detail::peak<Real>{}));
    const Real s = math::is_finite(m) ? tile.fold(plus<Real>{}, finite_weight<Real>{m})
                                      : tile.fold(plus<Real>{}, softmax_weight<Real>{m});
    return {math::select(s == s, m, s), plus<Real>{}.lower(s)};
  }
};

}  // namespace regroup
