// SPDX-License-Identifier: Apache-2.0
// The k largest elements with their positions: two sorted lists merge, and the first k of the union need only the first
// k of each. A total order (NaN, then larger values, then lower positions) makes it a monoid, commutative and exact.
// Level: element; a tile is lifted by one partial sort.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

#include "regroup/error.hpp"
#include "regroup/monoids/extremum.hpp"

namespace regroup {

/// The K largest of elements `indexed<X>`, largest first: NaN above +inf, -0 equals +0 (each keeps its sign), the
/// lowest position first among equals. `top_k<float, 5>{}` has a trivially copyable state, an array in which places
/// without an element hold (-inf or the type's lowest, position -1 in the answer); `top_k<float>{5}` a vector of at
/// most 5. Exact. A combine costs K steps, a tile about one step an element; `top_k<T>{k}` throws argument_error
/// where k < 0.
template <number T, index K = -1>
class top_k {
  static constexpr bool is_fixed = K >= 0;

 public:
  using element = indexed<T>;
  using state = std::conditional_t<is_fixed, std::array<indexed<T>, static_cast<std::size_t>(is_fixed ? K : 0)>,
                                   std::vector<indexed<T>>>;
  static constexpr bool is_commutative = true;
  static constexpr bool is_exact = true;

  constexpr top_k() requires is_fixed : k_(static_cast<std::size_t>(K)) {}
  constexpr explicit top_k(index k) requires(!is_fixed) : k_(static_cast<std::size_t>(k)) {
    if (k < 0) throw_argument("top_k needs a k of 0 or more; got " + std::to_string(k));
  }

  constexpr state identity() const { return room(0); }
  template <class X>
  requires std::convertible_to<widened<X>, T>
  constexpr state lift(const indexed<X>& x) const {
    state s = room(1);
    if (k_ > 0) s[0] = {static_cast<T>(widen(x.value)), x.position};
    return s;
  }
  constexpr state operator()(const state& a, const state& b) const {
    state merged = room(a.size() + b.size());
    std::size_t i = 0;
    std::size_t j = 0;
    for (indexed<T>& place : merged) {
      const bool from_a = j == b.size() || (i < a.size() && before(a[i], b[j]));
      place = from_a ? a[i++] : b[j++];
    }
    return merged;
  }
  constexpr state lower(state s) const {
    for (indexed<T>& place : s) place.position = place.position == detail::no_position ? -1 : place.position;
    return s;
  }
  /// On a host. Threads that hold a tile between them fold it: the same state.
  template <class Tile>
    requires(!requires(const Tile& tile) { tile.elements(); })
  constexpr state lift_tile(const Tile& tile) const {
    std::vector<indexed<T>> all;
    all.reserve(static_cast<std::size_t>(tile.size()));
    for (index i = 0; i < tile.size(); ++i) {
      const auto& x = tile[i];
      all.push_back({static_cast<T>(widen(x.value)), x.position});
    }
    const std::size_t kept = std::min(k_, all.size());
    std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(kept), all.end(), before);
    state s = room(kept);
    std::copy_n(all.begin(), kept, s.begin());
    return s;
  }

 private:
  // A strict total order but for NaN payloads: even a position given twice, with zeros of both signs, has one answer.
  static constexpr bool before(const indexed<T>& a, const indexed<T>& b) {
    if (detail::precedes<-1>(a.value, b.value)) return true;
    if (detail::precedes<-1>(b.value, a.value)) return false;
    if (a.position != b.position) return a.position < b.position;
    if constexpr (std::is_floating_point_v<T>) {
      return a.value == b.value && std::signbit(b.value) && !std::signbit(a.value);
    } else {
      return false;
    }
  }
  /// A state with places for `count` elements, at most k.
  constexpr state room(std::size_t count) const {
    state s{};
    if constexpr (is_fixed) {
      s.fill({detail::least<T>, detail::no_position});
    } else {
      s.resize(std::min(count, k_));
    }
    return s;
  }

  std::size_t k_;
};

}  // namespace regroup
