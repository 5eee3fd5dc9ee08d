// SPDX-License-Identifier: Apache-2.0
// The k largest elements with their positions: two sorted lists merge, and the first k of the union need only the first
// k of each. A total order (NaN, then larger values, then lower positions) makes it a monoid, commutative and exact.
// Level: element; in a tile only the elements that may be among its k are sorted.
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

/// The K largest of elements `indexed<X>`, largest first: NaN above +inf, -0 equals +0 (each keeps its sign), the lowest
/// position first among equals. `top_k<float, 5>{}` has a trivially copyable state, an array in which places without an
/// element hold (-inf or the type's lowest, position -1 in the answer); the state of `top_k<float>{5}` is a vector of at most
/// 5. Exact. A combine costs K steps; a tile costs less than one step an element if they are in random order, and sorting its
/// K. `top_k<T>{k}` throws argument_error where k < 0.
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
  /// On a host only. Device threads that share a tile fold it instead, to the same state.
  template <class Tile>
    requires(!requires(const Tile& tile) { tile.elements(); })
  constexpr state lift_tile(const Tile& tile) const {
    constexpr index together = 16;  // elements that are passed over at once, where none comes in
    constexpr bool ascends = requires { tile.load().numbered; };
    const std::size_t kept = std::min(k_, static_cast<std::size_t>(tile.size()));
    state s = room(kept);
    if (kept == 0) return s;
    const auto value = [&](index i) { return static_cast<T>(widen(tile[i].value)); };
    std::vector<indexed<T>> best;  // the first `kept` of all so far are among them
    best.reserve(std::min(2 * kept + together, static_cast<std::size_t>(tile.size())));
    const auto order = [](const auto& a, const auto& b) { return before(a, b); };  // to be inlined, as a function is not
    const auto select = [&] {
      std::nth_element(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(kept - 1), best.end(), order);
      best.resize(kept);
    };
    const indexed<T>* last = nullptr;  // of those, after which nobody comes in
    for (index i = 0; i < tile.size(); i += together) {
      const index end = std::min(i + together, tile.size());
      if (last != nullptr && end - i == together) {
        bool none = true;  // of equal values the later ones do not, where positions ascend
        for (index j = 0; j < together; ++j) none &= ascends ? value(i + j) <= last->value : value(i + j) < last->value;
        if (none) continue;
      }
      for (index j = i; j < end; ++j) {
        const indexed<T> x{value(j), tile[j].position};
        if (last == nullptr || before(x, *last)) best.push_back(x);
      }
      if (best.size() >= 2 * kept) {
        select();
        last = &best[kept - 1];
      }
    }
    select();
    std::sort(best.begin(), best.end(), order);
    std::copy(best.begin(), best.end(), s.begin());
    return s;
  }

 private:
  // A strict total order but for NaN payloads: even a position given twice, with zeros of both signs, has one answer.
  static constexpr bool before(const indexed<T>& a, const indexed<T>& b) {
    if (b.value < a.value) return true;
    if (a.value < b.value) return false;
    if (detail::precedes<-1>(a.value, b.value)) return true;  // NaN
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
