// SPDX-License-Identifier: Apache-2.0
// The k largest elements with their positions: two sorted lists merge, and the first k of the union need only the first
// k of each. A total order (NaN, then larger values, then lower positions) makes it a monoid, commutative and exact.
// Level: element; of tiles only the elements that may be among the k are kept and sorted.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "regroup/error.hpp"
#include "regroup/monoids/extremum.hpp"

namespace regroup {

/// The K largest of elements `indexed<X>`, largest first: NaN above +inf, -0 equals +0 (each keeps its sign), the lowest
/// position first among equals. `top_k<float, 5>{}` has a trivially copyable state, an array in which places without an
/// element hold (-inf or the type's lowest, position -1 in the answer); the state of `top_k<float>{5}` is a vector of at most
/// 5. Exact. A combine costs K steps. A tile costs one comparison in packs for an element that does not come in; of elements
/// in random order few come in once a tile before has K. `top_k<T>{k}` throws argument_error where k < 0.
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
    if (k_ > 0) s[0] = {static_cast<T>(regroup::widen(x.value)), x.position};
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
    return lift_tiles([&](const auto& body) { body(tile); });
  }
  template <class Tiles>
  constexpr state lift_tiles(const Tiles& each) const {
    if (k_ == 0) return room(0);
    candidates largest(k_);
    each([&](const auto& tile) { largest.take(tile); });
    return std::move(largest).sorted([&](std::size_t count) { return room(count); });
  }

 private:
  /// The k largest elements so far, and others: where there are 2k or more, all but the k largest are dropped.
  class candidates {
   public:
    constexpr explicit candidates(std::size_t k) : k_(k) {}

    template <class Tile>
    [[gnu::always_inline]] constexpr void take(const Tile& tile) {
      constexpr index many = 128, some = 32;  // elements that are passed over at once, where none comes in
      const index n = tile.size();
      // (After other tiles few elements come in, or, where values rise, nearly all; then the floor is worth its price.)
      has_floor_ = !has_last_;
      if (has_floor_) raise(floor_of(tile, k_));
      for (index i = 0; i < n;) {
        if (i + many <= n) {
          if constexpr (requires { tile.load().template meanwhile<top_k>(i); }) tile.load().template meanwhile<top_k>(i);
          if (are_out(tile, i, std::integral_constant<index, many>{})) {
            i += many;
            continue;
          }
        }
        for (const index end = std::min(i + many, n); i < end; i += some) {
          if (i + some > end || !are_out(tile, i, std::integral_constant<index, some>{})) {
            take(tile, i, std::min(i + some, end));
          }
        }
      }
      if (!has_last_ && count_ >= k_) drop();
    }
    /// The k largest, in a state that room(count) makes.
    template <class Room>
    constexpr state sorted(const Room& room) && {
      if (count_ > k_) select(best_, k_, count_);
      sort(best_, count_);
      state s = room(count_);
      std::copy_n(best_.begin(), count_, s.begin());
      return s;
    }

   private:
    template <class Tile>
    static constexpr T value(const Tile& tile, index i) {
      return static_cast<T>(regroup::widen(tile[i].value));
    }
    template <class Tile, class Length>
    [[gnu::always_inline]] constexpr bool are_out(const Tile& tile, index first, const Length& length) const {
      constexpr bool ascends = requires { tile.load().numbered; };
      const auto all = [&](const auto& stays_out) {
        int out = 0;
        for (index i = 0; i < length; ++i) out += stays_out(value(tile, first + i)) ? 1 : 0;
        return out == length;
      };
      // Of equal values the later ones stay out too, where positions ascend.
      const bool is_later = ascends && has_last_ && last_.position < tile[first].position;
      return is_later ? all([&](T x) { return x <= least_; }) : all([&](T x) { return x < least_; });
    }
    template <class Tile>
    [[gnu::always_inline]] constexpr void take(const Tile& tile, index first, index end) {
      if (count_ + static_cast<std::size_t>(end - first) > best_.size()) best_.resize(2 * count_ + 64);
      for (index i = first; i < end; ++i) {
        const T x = value(tile, i);
        if (x < least_) continue;
        best_[count_] = {x, tile[i].position};
        if (!has_last_ || before(best_[count_], last_)) ++count_;
      }
      if (count_ < 2 * k_) return;
      drop();
      if (!std::exchange(has_floor_, true)) raise(floor_of(tile, k_));
    }
    /// All but the k largest.
    constexpr void drop() {
      select(best_, k_, count_);
      last_ = best_[k_ - 1];
      least_ = last_.value;
      has_last_ = true;
    }
    /// No smaller value comes in; one that equals it may.
    constexpr void raise(T floor) {
      if (!(least_ < floor)) return;
      least_ = floor;
      has_last_ = false;
    }

    std::size_t k_;
    std::vector<indexed<T>> best_;  // of which the first `count_` are
    std::size_t count_ = 0;
    indexed<T> last_{};  // what does not come before it does not come in, if `has_last_`
    bool has_last_ = false;
    bool has_floor_ = false;
    T least_ = detail::least<T>;
  };
  /// Puts the first `kept` of the first `count` before the others. Not inlined, nor is `sort`: loops around them are compiled
  /// for several instruction sets.
  [[gnu::noinline]] static constexpr void select(std::vector<indexed<T>>& xs, std::size_t kept, std::size_t& count) {
    std::nth_element(xs.begin(), xs.begin() + static_cast<std::ptrdiff_t>(kept - 1),
                     xs.begin() + static_cast<std::ptrdiff_t>(count), in_order{});
    count = kept;
  }
  [[gnu::noinline]] static constexpr void sort(std::vector<indexed<T>>& xs, std::size_t count) {
    std::sort(xs.begin(), xs.begin() + static_cast<std::ptrdiff_t>(count), in_order{});
  }
  struct in_order {  // to be inlined, as a pointer to a function is not
    constexpr bool operator()(const indexed<T>& a, const indexed<T>& b) const { return before(a, b); }
  };
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
  /// A value that at least k of a tile's elements reach, if so many are no NaN: the k-th of the maxima of strided groups, at
  /// least twice as many. The lowest of all where groups would be small.
  template <class Tile>
  [[gnu::always_inline]] static constexpr T floor_of(const Tile& tile, std::size_t k) {
    constexpr std::size_t most = 512;
    const std::size_t groups = k > most ? k : std::bit_ceil(std::max<std::size_t>(2 * k, 64));
    if (groups > most || tile.size() < 4 * static_cast<index>(groups)) return detail::least<T>;
    std::array<T, most> highest;
    std::fill_n(highest.begin(), groups, detail::least<T>);
    const auto stride = static_cast<index>(groups);
    for (index i = 0; i + stride <= tile.size(); i += stride) {
      for (std::size_t g = 0; g < groups; ++g) {
        const auto x = static_cast<T>(regroup::widen(tile[i + static_cast<index>(g)].value));
        highest[g] = highest[g] < x ? x : highest[g];
      }
    }
    const auto end = highest.begin() + static_cast<std::ptrdiff_t>(groups);
    std::nth_element(highest.begin(), highest.begin() + static_cast<std::ptrdiff_t>(k - 1), end, std::greater<T>{});
    return highest[k - 1];
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
