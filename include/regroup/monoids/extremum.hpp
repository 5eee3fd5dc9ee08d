// SPDX-License-Identifier: Apache-2.0
// The extreme element and its position. The state is an element: a value with its position. Ties go to the lowest
// position, so the answer does not depend on the grouping or the order; without that rule argmin is not a monoid.
// Level: element. Exact: commutes and associates bitwise.
#pragma once

#include <concepts>
#include <limits>
#include <type_traits>

#include "regroup/monoids/arithmetic.hpp"

namespace regroup {

/// A value and its position: the elements of argmin, argmax and top_k.
template <class T>
struct indexed {
  T value;
  index position;
};

/// Numbers the elements of an array: the index function i -> {values[i], first + i}; 16-bit floats are widened.
/// `reduce(par, generate(n, enumerate(data)), argmin<float>{})`.
template <class T>
struct enumerate {
  const T* values;
  index first;
  constexpr explicit enumerate(const T* data, index first_position = 0) : values(data), first(first_position) {}
  constexpr indexed<widened<T>> operator()(index i) const { return {regroup::widen(values[i]), first + i}; }
  /// The same from element i on.
  constexpr enumerate from(index i) const { return enumerate(values + i, first + i); }
};

/// A projection that numbers elements by their position in their range, row or segment:
/// `reduce_rows(par, logits, best, argmax<float>{}, with_position{})`.
struct with_position {
  template <class X>
  constexpr indexed<widened<X>> operator()(const X& x, index i) const {
    return {regroup::widen(x), i};
  }
  /// The same for an array whose first element has the given position.
  template <class X>
  constexpr enumerate<X> of(const X* values, index position) const {
    return enumerate<X>(values, position);
  }
};

namespace detail {
/// Compares greater than every position; an answer shows it as -1.
inline constexpr index no_position = std::numeric_limits<index>::max();

/// NaN precedes all numbers, then the smaller (Sign = 1) or larger (-1) value; zeros of either sign are equal.
template <int Sign, number T>
constexpr bool precedes(T a, T b) {
  const bool beyond = Sign > 0 ? a < b : b < a;
  if constexpr (std::is_floating_point_v<T>) {
    return beyond | ((a != a) & (b == b));
  } else {
    return beyond;
  }
}

template <int Sign, number T>
struct extremum {
  using element = indexed<T>;
  static constexpr bool is_commutative = true;
  static constexpr bool is_exact = true;
  constexpr indexed<T> identity() const { return {Sign > 0 ? greatest<T> : least<T>, no_position}; }
  template <class X>
  requires std::convertible_to<widened<X>, T>
  constexpr indexed<T> lift(const indexed<X>& x) const {
    return {static_cast<T>(static_cast<T>(regroup::widen(x.value)) + T{0}), x.position};  // one zero: +0
  }
  constexpr indexed<T> operator()(indexed<T> a, indexed<T> b) const {
    const bool tie = !precedes<Sign>(a.value, b.value) & (b.position < a.position);
    const bool right = precedes<Sign>(b.value, a.value) | tie;
    return {right ? b.value : a.value, right ? b.position : a.position};
  }
  constexpr indexed<T> lower(indexed<T> s) const { return {s.value, s.position == no_position ? -1 : s.position}; }
};

/// The same, a tile at a time if positions ascend: the first place of the tile's extreme value, or of a NaN.
template <int Sign, number T>
struct extremum_of_tiles : extremum<Sign, T> {
  template <class Tile>
    requires requires(const Tile& tile) { tile.load().numbered; }
  constexpr indexed<T> lift_tile(const Tile& tile) const {
    const auto value_of = [](const auto& x) { return static_cast<T>(x.value); };
    constexpr index few = 32;  // are sooner compared one after another
    if (tile.size() <= few) {
      T extreme = value_of(tile[0]);
      index at = 0;
      for (index i = 1; i < tile.size(); ++i) {
        const T value = value_of(tile[i]);
        const bool is_first = precedes<Sign>(value, extreme);
        extreme = is_first ? value : extreme;
        at = is_first ? i : at;
      }
      return this->lift(tile[at]);
    }
    const T extreme = tile.fold(std::conditional_t<(Sign > 0), minimum<T>, maximum<T>>{}, value_of);
    const auto is_there = [&](index i) {
      const T value = value_of(tile[i]);
      return unsigned{value == extreme} | unsigned{value != value};
    };
    constexpr index some = 64;  // looked at together
    index i = 0;
    for (unsigned found = 0; i + some <= tile.size(); i += some) {
      for (index j = 0; j < some; ++j) found |= is_there(i + j);
      if (found != 0) break;
    }
    while (is_there(i) == 0) ++i;
    return this->lift(tile[i]);
  }
};
}  // namespace detail

/// The smallest of elements `indexed<X>` and its position, the lowest among equals (-0 equals +0, and a zero is returned as
/// +0); the first NaN if there is one. Nothing gives (+inf or the type's largest, -1).
template <number T>
struct argmin : detail::extremum_of_tiles<1, T> {};

/// The largest of elements `indexed<X>` and its position, the lowest among equals (-0 equals +0, and a zero is returned as
/// +0); the first NaN if there is one. Nothing gives (-inf or the type's lowest, -1).
template <number T>
struct argmax : detail::extremum_of_tiles<-1, T> {};

}  // namespace regroup
