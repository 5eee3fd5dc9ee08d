// SPDX-License-Identifier: Apache-2.0
// Maps x -> a x + b under composition: the scan of such maps solves a linear recurrence x_i = a_i x_(i-1) + b_i in
// parallel (Blelloch 1990; selective state spaces, Gu and Dao 2023). Left is applied first; not commutative.
// The identity is (1, -0): 1 B + -0 is B for every B, -0 included. From the left a * -0 + b is not b where a is
// infinite, NaN or negative with b = -0, so the combine selects the right operand where the left one is (1, -0), bit by
// bit. Level: element. Associates within the bound (integers wrap and are exact).
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <type_traits>

#include "regroup/monoids/arithmetic.hpp"

namespace regroup {

/// The map x -> a x + b: element and state of `affine`.
template <number T>
struct affine_map {
  T a;
  T b;
  constexpr T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>) {
      return math::fma(a, x, b);
    } else {
      return plus<T>{}(multiplies<T>{}(a, x), b);
    }
  }
};

/// The composition of elements `affine_map`, first element first: (A, B) then (a, b) is (a A, fma(a, B, b)). No elements give
/// the map (1, 0); an answer's b is never -0. Error of b after n maps with |a| <= 1: about n u sum |b|. Floats must not leave
/// the range in any run of maps: one that overflows makes NaN with an a of 0, though from the left, one by one, it may not.
template <number T>
struct affine {
  static constexpr bool is_exact = std::is_integral_v<T>;
  constexpr affine_map<T> identity() const { return {T{1}, plus<T>{}.identity()}; }
  template <class X>
  requires(std::is_integral_v<X> || std::is_floating_point_v<T>)
  constexpr affine_map<T> lift(const affine_map<X>& x) const { return {static_cast<T>(x.a), static_cast<T>(x.b)}; }
  constexpr affine_map<T> operator()(affine_map<T> left, affine_map<T> right) const {
    const T a = multiplies<T>{}(right.a, left.a);
    const T b = right(left.b);
    if constexpr (std::is_floating_point_v<T>) {
      const bool nothing = (left.a == T{1}) & is_minus_zero(left.b);
      return {math::select(nothing, right.a, a), math::select(nothing, right.b, b)};
    } else {
      return {a, b};
    }
  }
  constexpr affine_map<T> lower(affine_map<T> s) const { return {s.a, plus<T>{}.lower(s.b)}; }

 private:
  static constexpr bool is_minus_zero(T x) {
    if constexpr (sizeof(T) == sizeof(std::uint32_t)) {
      return std::bit_cast<std::uint32_t>(x) == std::uint32_t{1} << 31;
    } else if constexpr (sizeof(T) == sizeof(std::uint64_t)) {
      return std::bit_cast<std::uint64_t>(x) == std::uint64_t{1} << 63;
    } else {
      return x == T{0} && std::signbit(x);
    }
  }
};

}  // namespace regroup
