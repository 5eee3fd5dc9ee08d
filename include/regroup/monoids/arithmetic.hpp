// SPDX-License-Identifier: Apache-2.0
// The monoids whose state is one number: sums, products, extremes, bits, truth, counts. Each identity is exact,
// bitwise, on both sides: -0 for float sums (-0 + x is x for every x, +0 + -0 is not), the infinities for minimum and
// maximum. Over integers all are associative bitwise; over floats minimum and maximum are, sums and products within a
// bound. Level: element. All commute bitwise.
#pragma once

#include <limits>
#include <type_traits>

#include "regroup/math.hpp"
#include "regroup/monoid.hpp"

namespace regroup {

/// A number to reduce: of any arithmetic type but bool.
template <class T>
concept number = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

namespace detail {
/// The unsigned type in which T's sums and products wrap without promotion to a signed one.
template <number T>
using wrapping = std::common_type_t<std::make_unsigned_t<T>, unsigned>;

/// An end of T's range: an infinity if T has one.
template <number T>
inline constexpr T least = std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity()
                                                       : std::numeric_limits<T>::lowest();
template <number T>
inline constexpr T greatest = std::is_floating_point_v<T> ? std::numeric_limits<T>::infinity()
                                                          : std::numeric_limits<T>::max();
}  // namespace detail

/// The sum of elements converted to T (`plus<double>` sums floats in double). Integers wrap. Floats: identity -0, and
/// the answer adds +0, so the sum of nothing and of zeros of any sign is +0; |error| <= h u sum |x|, h combines deep.
template <number T>
struct plus {
  static constexpr bool is_commutative = true;
  static constexpr bool is_quick = true;
  static constexpr bool is_exact = std::is_integral_v<T>;
  constexpr T identity() const { return std::is_floating_point_v<T> ? static_cast<T>(-0.0) : T{0}; }
  constexpr T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<detail::wrapping<T>>(a) + static_cast<detail::wrapping<T>>(b));
    } else {
      return a + b;
    }
  }
  constexpr T lower(T s) const { return static_cast<T>(s + T{0}); }
};

/// The product of elements converted to T; 1 for nothing. Integers wrap. Floats: relative error <= h u as long as nothing
/// leaves the normal range.
template <number T>
struct multiplies {
  static constexpr bool is_commutative = true;
  static constexpr bool is_quick = true;
  static constexpr bool is_exact = std::is_integral_v<T>;
  constexpr T identity() const { return T{1}; }
  constexpr T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<detail::wrapping<T>>(a) * static_cast<detail::wrapping<T>>(b));
    } else {
      return a * b;
    }
  }
};

/// The smallest element. Floats: NaN wins, -0 < +0, +inf for nothing; integers: the type's largest for nothing. Exact.
template <number T>
struct minimum {
  using element = T;
  static constexpr bool is_commutative = true;
  static constexpr bool is_exact = true;
  constexpr T identity() const { return detail::greatest<T>; }
  constexpr T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      return math::min(a, b);
    } else {
      return b < a ? b : a;
    }
  }
};

/// The largest element. Floats: NaN wins, -0 < +0, -inf for nothing; integers: the type's lowest for nothing. Exact.
template <number T>
struct maximum {
  using element = T;
  static constexpr bool is_commutative = true;
  static constexpr bool is_exact = true;
  constexpr T identity() const { return detail::least<T>; }
  constexpr T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      return math::max(a, b);
    } else {
      return a < b ? b : a;
    }
  }
};

/// The number of elements of any type, NaN and false too. 64 bits, exact.
struct count {
  static constexpr bool is_commutative = true;
  static constexpr bool is_exact = true;
  constexpr index identity() const { return 0; }
  template <class X>
  constexpr index lift(const X&) const {
    return 1;
  }
  constexpr index operator()(index a, index b) const { return a + b; }
  template <class X>
  constexpr index append(index n, index, const X&) const {
    return n + 1;
  }
};

/// Whether any element is true: not zero of either sign (NaN is true). False for nothing. Exact.
struct any {
  static constexpr bool is_commutative = true;
  static constexpr bool is_exact = true;
  constexpr bool identity() const { return false; }
  template <class X>
  requires std::is_constructible_v<bool, const X&>
  constexpr bool lift(const X& x) const { return static_cast<bool>(x); }
  constexpr bool operator()(bool a, bool b) const { return (a | b) != 0; }
};

/// Whether every element is true: not zero of either sign (NaN is true). True for nothing. Exact.
struct all {
  static constexpr bool is_commutative = true;
  static constexpr bool is_exact = true;
  constexpr bool identity() const { return true; }
  template <class X>
  requires std::is_constructible_v<bool, const X&>
  constexpr bool lift(const X& x) const { return static_cast<bool>(x); }
  constexpr bool operator()(bool a, bool b) const { return (a & b) != 0; }
};

/// Bitwise and of integers; all ones for nothing. Exact.
template <number T>
requires std::is_integral_v<T>
struct bit_and {
  static constexpr bool is_commutative = true;
  static constexpr bool is_exact = true;
  constexpr T identity() const { return static_cast<T>(~T{0}); }
  constexpr T operator()(T a, T b) const { return static_cast<T>(a & b); }
};

/// Bitwise or of integers; 0 for nothing. Exact.
template <number T>
requires std::is_integral_v<T>
struct bit_or {
  static constexpr bool is_commutative = true;
  static constexpr bool is_exact = true;
  constexpr T identity() const { return T{0}; }
  constexpr T operator()(T a, T b) const { return static_cast<T>(a | b); }
};

/// Bitwise exclusive or of integers; 0 for nothing. Exact.
template <number T>
requires std::is_integral_v<T>
struct bit_xor {
  static constexpr bool is_commutative = true;
  static constexpr bool is_exact = true;
  constexpr T identity() const { return T{0}; }
  constexpr T operator()(T a, T b) const { return static_cast<T>(a ^ b); }
};

}  // namespace regroup
