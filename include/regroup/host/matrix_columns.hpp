// SPDX-License-Identifier: Apache-2.0
// The leaves of columns that stand side by side, some groups of them at once, a lane after another, so that memory is read a
// page at a time. Where a matrix has few columns several of its rows are read as one. Level: lane. Law: as host/lanes.hpp.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "regroup/executor.hpp"
#include "regroup/host/beside.hpp"
#include "regroup/host/lanes.hpp"

namespace regroup::host {

/// The states of a group of rows, member by member.
template <class State>
using pack = columns<State, abreast>;

/// Packs of a group that the tree of a tile's lanes has in hand at once, at most, when they come in its order.
inline constexpr index packs_in_hand = std::bit_width(static_cast<std::uint64_t>(lanes));
/// Columns that are folded together where they stand side by side, at least and at most: two lines of floats; and as many as
/// 64 KiB hold those packs of, or 1024, by measurement of sums (Zen 2: 64 to 2048 columns); of states of a byte 512 (Zen 4:
/// up to seven times as fast as 1024).
inline constexpr index fewest_columns = 32;
template <class State>
inline constexpr index most_columns =
    std::min<index>((index{1} << 16) / (packs_in_hand * index{sizeof(State)}), sizeof(State) == 1 ? 512 : 1024) / abreast *
    abreast;

/// An element without its position.
struct as_it_is {
  template <class X>
  constexpr auto operator()(const X& x, index /*position*/) const {
    return regroup::widen(x);
  }
};

/// The number of groups that hold `rows` rows.
constexpr index groups_of(index rows) { return (rows + abreast - 1) / abreast; }

// As in host/lanes.hpp.
#if defined(__clang__)
#pragma clang attribute push([[gnu::always_inline]], apply_to = function)
#pragma clang attribute push([[gnu::flatten]], apply_to = function)
#elif defined(__GNUC__)
#pragma GCC diagnostic push  // as in host/columns.hpp
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

/// Where group p of so many columns side by side begins: the last one goes over the columns of the one before it.
constexpr index first_of_group(index p, index columns) {
  return std::min(p * abreast, std::max<index>(columns - abreast, 0));
}

/// The states of a tile of columns that stand side by side, a group of them at least: lane after lane, each joined with another
/// as soon as the tree has both, so that `room` holds no more than `packs_in_hand` of a group; the states, in the end. Memory
/// does not foresee the rows of a lane, and is asked for four of them, from `ahead` on, if it `asks`. Rows of a striped lane
/// are `apart`; `rest` columns have one element more than the others. Element i of a column is seen(x, i).
template <class M, class X, class Seen>
constexpr void leaf_of_columns(const M& m, const grid<const X>& g, const Seen& seen, pack<state_of<M>>* room, bool asks,
                               index apart = lanes, index rest = 0) {
  constexpr bool striped = is_commutative<M>;
  const index groups = groups_of(g.rows), step = striped ? apart : 1;
  const index count = striped ? std::min(g.length, apart) : pieces_of(g.length);
  const auto places = static_cast<index>(std::bit_ceil(static_cast<std::uint64_t>(count)));
  auto* top = room;
  const auto row = [x = g.first, stride = g.stride](index i) { return x + i * stride; };
  const auto rows_ahead = [&](index i) { return asks ? row(i) : nullptr; };
  const auto each = [columns = g.rows, apart = step * g.stride](pack<state_of<M>>* to, const X* ahead,
                                                                const auto& state_at) {
    const auto group = [&](index p, index first) {
      for (index r = 0; ahead != nullptr && r < 4; ++r) {
        regroup::fetch_lines(ahead + r * apart + first, abreast * sizeof(X), false);
      }
      pack<state_of<M>> s;  // elements are no aliases of it
      const auto set = [&](index k) { s.set(k, state_at(p, k, first + k)); };
      if constexpr (std::is_arithmetic_v<state_of<M>>) {
#if defined(__clang__)  // which makes fewer packs of 16 steps than of a loop
#pragma clang loop unroll(disable)
#endif
        for (index k = 0; k < abreast; ++k) set(k);
      } else {
        for (index k = 0; k < abreast; ++k) set(k);
      }
      for (index k = 0; k < abreast; ++k) to[p].set(k, s.get(k));
    };
    const index whole = columns / abreast;
    for (index p = 0; p < whole; ++p) group(p, p * abreast);
    if (columns % abreast > 0) group(whole, first_of_group(whole, columns));
  };
  const auto lane = [&](index j) {
    const index first = striped ? j : j * piece_elements;
    const index last = striped ? g.length : std::min(g.length, first + piece_elements);
    const auto at = [row, seen](index i, index column) { return seen(row(i)[column], i); };
    each(top, rows_ahead(first + step), [&](index, index, index c) { return regroup::lift(m, at(first, c)); });
    index i = first + step, folded = 1;
    constexpr bool by_four = std::is_same_v<Seen, as_it_is>;  // or else g++ would make no packs of the longer loop
    for (; by_four && i + 3 * step < last; i += 4 * step, folded += 4) {  // states are loaded and stored once for four
      each(top, rows_ahead(i + 4 * step), [&](index p, index k, index c) {
        auto s = top[p].get(k);
        const auto add = [&](index r) { s = regroup::append(m, folded + r, s, at(i + r * step, c)); };
        add(0), add(1), add(2), add(3);  // a loop would not be unrolled where a combine is long, and none of packs
        return s;
      });
    }
    for (; i < last; i += step, ++folded) {
      each(top, by_four ? nullptr : rows_ahead(i + step),
           [&](index p, index k, index c) { return regroup::append(m, folded, top[p].get(k), at(i, c)); });
    }
    for (index p = 0; i == g.length && p < groups_of(rest); ++p) {
      for (index k = 0, c = first_of_group(p, g.rows); k < abreast && c < rest; ++k, ++c) {
        top[p].set(k, regroup::append(m, folded, top[p].get(k), at(i, c)));
      }
    }
    top += groups;
  };
  const auto join = [&] {
    top -= groups;
    for (index p = 0; p < groups; ++p) {
      auto& to = top[p - groups];
      const pack<state_of<M>> left = to, right = top[p];  // without aliases
      for (index k = 0; k < abreast; ++k) to.set(k, m(left.get(k), right.get(k)));
    }
  };
  for (index j = 0;;) {  // in the tree's order: striped, bits of j run backward
    if (j < count) lane(j);
    index h = striped ? places / 2 : 1;
    for (; (j & h) != 0; j -= h, h = striped ? h / 2 : 2 * h) {
      if (j < count) join();  // j: the first lane of the right half
    }
    if (h == 0 || h == places) return;
    j += h;
  }
}

/// The same for few columns, which are all of a matrix: `together` of its rows, a power of two, are taken for one of as many
/// lanes side by side; what the tree joins last are neighbours in memory.
template <class M, class X>
constexpr void leaf_of_few_columns(const M& m, const grid<const X>& g, index together, pack<state_of<M>>* room, bool asks) {
  const index c = g.rows, wide = together * c;
  host::leaf_of_columns(m, grid<const X>{g.first, wide, g.length / together, wide, 1}, as_it_is{}, room, asks, lanes / together,
                  g.length % together * c);
  columns<state_of<M>, static_cast<std::size_t>(most_columns<state_of<M>>)> lane;  // all columns of the first, the second, ...
  for (index p = 0; p < groups_of(wide); ++p) {
    for (index k = 0; k < abreast; ++k) lane.set(first_of_group(p, wide) + k, room[p].get(k));
  }
  for (index half = wide / 2; half >= c; half /= 2) {
    const auto join = [&](index first, const index count) {
      pack<state_of<M>> left, right;  // no aliases
      for (index k = 0; k < count; ++k) left.set(k, lane.get(first + k)), right.set(k, lane.get(half + first + k));
      for (index k = 0; k < count; ++k) lane.set(first + k, m(left.get(k), right.get(k)));
    };
    index first = 0;
    for (; first + abreast <= half; first += abreast) join(first, abreast);
    if (first < half) join(first, half - first);
  }
  for (index p = 0; p < groups_of(c); ++p) {
    for (index k = 0; k < std::min(abreast, c); ++k) room[p].set(k, lane.get(first_of_group(p, c) + k));
  }
}

#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute pop
#elif defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

}  // namespace regroup::host
