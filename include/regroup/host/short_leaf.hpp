// SPDX-License-Identifier: Apache-2.0
// Short stretches of elements one after another, each element in a lane of its own, by a monoid that commutes and is quick:
// the lanes stand in packs and are halved there. What is read behind a stretch, so that every load is a whole pack, is another
// element; it meets nothing but the identity, and nothing of it is kept. Level: lane. Law: as host/lanes.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <tuple>
#include <type_traits>
#include <utility>

#include "regroup/executor.hpp"
#include "regroup/host/lanes.hpp"
#include "regroup/host/matrix_columns.hpp"
#include "regroup/host/ragged.hpp"

namespace regroup::host {

/// Whether a combine, of each member too, is so quick that half-empty packs cost less than to bring stretches side by side, and
/// elements are states as they are: a `lift` or a projection may take long. Exact operators mostly compare and select. (Lanes
/// of less than 4 bytes would not be halved in packs.)
template <class M, class X>
constexpr bool halves_quickly() {
  if constexpr (has_members<M>) {
    return []<class... Member>(std::type_identity<std::tuple<Member...>>) {
      return (halves_quickly<Member, X>() && ...);
    }(std::type_identity<std::remove_cvref_t<decltype(std::declval<const M&>().members())>>{});
  } else if constexpr (is_commutative<M> && !has_lift<M, X> && has_scalars<state_of<M>>) {
    constexpr bool is_declared = requires { M::is_quick; };
    constexpr bool has_words = widest_scalar<state_of<M>> == 4 || widest_scalar<state_of<M>> == 8;
    return has_words && (is_quick<M> || (is_exact<M> && !is_declared));
  } else {
    return false;
  }
}
/// Whether stretches of elements that may go in groups (host/ragged.hpp) go one by one instead: by g++, which can be told to
/// keep loops so short. (clang 14 makes loops of packs that take as long as stretches side by side.)
template <class M, class X>
constexpr bool goes_short() {
#if defined(__clang__) || defined(__CUDACC__)
  return false;
#else
  return goes_ragged<M, X>() && halves_quickly<M, X>();
#endif
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push  // as in host/columns.hpp
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

/// body(0), ..., body(N - 1) as packs, which g++ would not make of a loop that it has unrolled.
template <index N, class Body>
constexpr void each_lane(const Body& body) {
#if !defined(__clang__) && !defined(__CUDACC__)  // which would warn
#pragma GCC ivdep
#pragma GCC unroll 1
#endif
  for (index j = 0; j < N; ++j) body(j);
}

/// The lanes of the shortest stretches, few of which may be full.
inline constexpr index fewest_lanes = 16;
/// The shortest stretch that is worth copying for want of elements behind it.
inline constexpr index fewest_copied = fewest_lanes / 2;

/// The leaf of the first n elements of a tile of `Lanes`: at least one, and more than half of them unless they are
/// `fewest_lanes`.
template <index Lanes, class M, class Tile>
constexpr state_of<M> halved_leaf(const M& m, index n, const Tile& t) {
  using state = state_of<M>;
  using length = std::make_signed_t<word_of_bytes<widest_scalar<state>>>;  // as wide as lanes are; packs compare signed ones
  constexpr index half = Lanes / 2, width = std::min(half, index{cache_line / widest_scalar<state>});
  const auto has = [size = static_cast<length>(n)](index j) { return static_cast<length>(j) < size; };
  const auto lift = [&](index j) { return regroup::lift(m, t[j]); };
  const auto none = m.identity();
  using some = columns<state, static_cast<std::size_t>(width)>;
  std::array<some, static_cast<std::size_t>(half / width)> lane;
  some right, made;
  // (The combine apart from the choices beside it, for which these would be branches.)
  for (index first = 0; first < half; first += width) {
    auto& left = lane[static_cast<std::size_t>(first / width)];
    host::each_lane<width>([&](index j) {
      right.set(j, none);
      right.set_if(has(half + first + j), j, lift(half + first + j));
    });
    host::each_lane<width>([&](index j) { left.set(j, m(lift(first + j), right.get(j))); });
    host::each_lane<width>([&](index j) { left.set_if(!has(half + first + j), j, lift(first + j)); });
  }
  for (std::size_t h = lane.size() / 2; h > 0; h /= 2) {
    for (std::size_t p = 0; p < h; ++p) {
      host::each_lane<width>([&](index j) { lane[p].set(j, m(lane[p].get(j), lane[p + h].get(j))); });
    }
  }
  auto& left = lane[0];
  const auto halve = [&]<index H>(std::integral_constant<index, H>) {
    if constexpr (H >= width) {  // the first half of these
    } else if constexpr (Lanes > fewest_lanes) {
      host::each_lane<H>([&](index j) { left.set(j, m(left.get(j), left.get(H + j))); });
    } else {
      host::each_lane<H>([&](index j) {
        right.set(j, none);
        right.set_if(has(H + j), j, left.get(H + j));
      });
      host::each_lane<H>([&](index j) { made.set(j, m(left.get(j), right.get(j))); });
      host::each_lane<H>([&](index j) { left.set_if(has(H + j), j, made.get(j)); });
    }
  };
  halve(std::integral_constant<index, 8>{});
  halve(std::integral_constant<index, 4>{});
  halve(std::integral_constant<index, 2>{});
  halve(std::integral_constant<index, 1>{});
  return left.get(0);
}

/// The leaf of n elements, 1 to `lanes`, from `x` on, behind which others lie up to `end`: if too few, `room` holds copies.
template <class M, class X>
constexpr state_of<M> short_leaf(const M& m, const X* x, index n, const X* end, std::array<X, std::size_t{lanes}>& room) {
  if constexpr (has_members<M>) {
    return host::with_members(
        m, [&](const auto&... member) { return m.from_parts(host::short_leaf(member, x, n, end, room)...); });
  } else {
    const auto of = [&]<index Lanes>(std::integral_constant<index, Lanes>) {
      const X* from = x;
      if (end - x < Lanes) {
        std::fill(std::copy_n(x, n, room.begin()), room.begin() + Lanes, *x);
        from = room.data();
      }
      return host::with_widened(tile(load_from<X>{from}, Lanes),
                                [&](const auto& t) { return host::halved_leaf<Lanes>(m, n, t); });
    };
    static_assert(lanes == 8 * fewest_lanes);
    if (n <= fewest_lanes) return of(std::integral_constant<index, fewest_lanes>{});
    if (n <= 2 * fewest_lanes) return of(std::integral_constant<index, 2 * fewest_lanes>{});
    if (n <= 4 * fewest_lanes) return of(std::integral_constant<index, 4 * fewest_lanes>{});
    return of(std::integral_constant<index, lanes>{});
  }
}

/// Whether each stretch begins where the one before ends.
template <class X>
bool are_adjacent(const stretch<X>* from, index n) {
  for (index k = 1; k < n; ++k) {
    if (from[k - 1].first + from[k - 1].size != from[k].first) return false;
  }
  return true;
}
/// fold_leaves of stretches that are read as they lie, `adjacent` or not.
template <class M, class X>
void fold_short(const M& m, const stretch<X>* from, index n, bool adjacent, columns<state_of<M>>& leaves) {
  dispatch([&] {
    std::array<X, std::size_t{lanes}> room;
    for (index k = 0; k < n; ++k) {
      const auto& [first, size] = from[k];
      const X* const end = adjacent ? from[n - 1].first + from[n - 1].size : first + size;
      if (size == 0) {
        leaves.set(k, m.identity());
      } else if (size <= lanes && (size >= fewest_copied || end - first >= fewest_lanes)) {
        leaves.set(k, host::short_leaf(m, first, size, end, room));
      } else {
        leaves.set(k, host::leaf(m, tile(load_from<X>{first}, size)));
      }
    }
  });
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

}  // namespace regroup::host
