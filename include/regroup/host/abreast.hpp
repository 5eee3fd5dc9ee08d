// SPDX-License-Identifier: Apache-2.0
// Many rows across a vector: row k of a group in lane k of a pack, so that a short row costs little more than its elements,
// and the columns of a matrix are read in memory order. Every row keeps the contract's tree, hence its bits.
//   pack        the states of a group, member by member
//   leaf        one tile of every row at once, the loops of host/lanes.hpp with a pack for a state; of columns that stand
//               side by side, some groups of them, a lane after another, so that memory is read a page at a time
// Level: lane. Law: as host/lanes.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "regroup/executor.hpp"
#include "regroup/host/beside.hpp"
#include "regroup/host/lanes.hpp"

namespace regroup::host {

template <class State>
using pack = columns<State, abreast>;

/// Packs of a group that the tree of a tile's lanes has in hand at once, at most, when they come in its order.
inline constexpr index packs_in_hand = std::bit_width(static_cast<std::uint64_t>(lanes));
/// Columns that are folded together where they stand side by side, at least and at most: two lines of floats; and as many as
/// 64 KiB hold those packs of, or 1024, by measurement of sums (Zen 2: 64 to 2048 columns).
inline constexpr index fewest_columns = 32;
template <class State>
inline constexpr index most_columns =
    std::min<index>((index{1} << 16) / (packs_in_hand * index{sizeof(State)}), 1024) / abreast * abreast;

/// A batch whose rows, or groups of them, are one stride apart.
template <class Batch>
concept gridded = batch<Batch> && requires(const Batch& b) { b.grid_at(index{}, index{}); };

/// Whether lanes of a monoid's states, and of each member's, are packs.
template <class M>
constexpr bool has_packs() {
  if constexpr (has_members<M>) {
    return []<class... Member>(std::type_identity<std::tuple<Member...>>) {
      return (has_packs<Member>() && ...);
    }(std::type_identity<std::remove_cvref_t<decltype(std::declval<const M&>().members())>>{});
  } else {
    return std::is_arithmetic_v<state_of<M>> || is_split<state_of<M>>();
  }
}
/// Whether rows of a batch may go abreast: elements are small and can be copied as bytes, lanes are packs, and the lanes of a
/// group's tile fit on the stack.
template <class M, batch Batch>
constexpr bool goes_abreast() {
  using element = element_in<Batch>;
  return gridded<Batch> && is_plain<state_of<M>, element> && is_movable<element> && sizeof(element) <= 32 &&
         sizeof(state_of<M>) <= 32 && has_packs<M>();
}
/// The number of rows that are swept at once, of inputs and outputs alike: `abreast`, or 1 if too few are one stride apart,
/// or if rows are contiguous and longer than `longest`.
template <gridded In, gridded Out>
index group_rows(const In& in, const Out& out, index longest) {
  if (in.size() == 0) return 1;
  const auto x = in.grid_at(0, abreast);
  const auto y = out.grid_at(0, abreast);
  const bool lie_apart = x.stride != 1 || y.stride != 1;
  return std::min(x.rows, y.rows) >= abreast / 2 && x.length > 0 && (lie_apart || x.length <= longest) ? abreast : 1;
}
/// The number of groups that hold `rows` rows.
constexpr index groups_of(index rows) { return (rows + abreast - 1) / abreast; }
/// The rows of an equal share of n rows, in whole groups: each of `workers` gets equally many shares, of at most `most` rows.
constexpr index equal_share(index n, index workers, index most) {
  const auto divided = [](index a, index b) { return (a + b - 1) / b; };
  const index shares = workers * divided(n, workers * most);
  return std::min(groups_of(divided(n, shares)) * abreast, most);
}
/// Chunks of a batch for some workers hold a multiple of this many rows: a group; of columns side by side, equal shares of
/// them all that are no larger than what is swept together.
template <gridded Batch>
index rows_of_chunk(const Batch& b, index columns_together, index workers) {
  const auto g = b.grid_at(0, b.size());
  const index most = std::min(g.rows, columns_together);
  if (g.pitch != 1 || most <= abreast) return abreast;
  return equal_share(b.size(), std::max<index>(workers, 1), most);
}

/// Whether there are enough rows of `length` elements for all of an executor's threads when rows go in groups, which is
/// several times as fast. For short rows always true.
template <class Executor>
bool are_enough(const Executor& ex, index rows, index length) {
  return length <= lanes || 4 * rows >= abreast * concurrency_of(ex);
}

/// Whether a monoid, and each member of it, folds element by element; a `lift_tile` needs the elements of one row.
template <class M, class X>
constexpr bool folds_elements() {
  if constexpr (has_members<M>) {
    return []<class... Member>(std::type_identity<std::tuple<Member...>>) {
      return (folds_elements<Member, X>() && ...);
    }(std::type_identity<std::remove_cvref_t<decltype(std::declval<const M&>().members())>>{});
  } else {
    return !has_lift_tile<M, tile<load_from<X>>>;
  }
}

// As in host/lanes.hpp.
#if defined(__clang__)
#pragma clang attribute push([[gnu::always_inline]], apply_to = function)
#pragma clang attribute push([[gnu::flatten]], apply_to = function)
#elif defined(__GNUC__)
#pragma GCC diagnostic push  // as in host/columns.hpp
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

/// The states of a tile of n >= 1 elements of every row of a group: element i of row k is at(i, k).
template <class M, class At>
constexpr void leaf_abreast(const M& m, index n, const At& at, pack<state_of<M>>& out) {
  if constexpr (has_members<M>) {  // each member by its own rule
    with_members(m, [&](const auto&... member) {
      std::tuple<pack<state_of<std::remove_cvref_t<decltype(member)>>>...> parts;
      [&]<std::size_t... K>(std::index_sequence<K...>) {
        (leaf_abreast(member, n, at, std::get<K>(parts)), ...);
        for (index k = 0; k < abreast; ++k) out.set(k, m.from_parts(std::get<K>(parts).get(k)...));
      }(std::index_sequence_for<decltype(member)...>{});
    });
  } else {
    std::array<pack<state_of<M>>, lanes> lane;
    const auto lift = [&](index j, index i) {
      auto& s = lane[static_cast<std::size_t>(j)];
      for (index k = 0; k < abreast; ++k) s.set(k, regroup::lift(m, at(i, k)));
    };
    const auto lift_two = [&](index j, index left, index right) {
      auto& s = lane[static_cast<std::size_t>(j)];
      for (index k = 0; k < abreast; ++k) s.set(k, m(regroup::lift(m, at(left, k)), regroup::lift(m, at(right, k))));
    };
    const auto add = [&](index j, index i, index folded) {
      auto& s = lane[static_cast<std::size_t>(j)];
      for (index k = 0; k < abreast; ++k) s.set(k, regroup::append(m, folded, s.get(k), at(i, k)));
    };
    const auto combine = [&](index j, index left, index right) {
      const auto& a = lane[static_cast<std::size_t>(left)];
      const auto& b = lane[static_cast<std::size_t>(right)];
      auto& s = lane[static_cast<std::size_t>(j)];
      for (index k = 0; k < abreast; ++k) s.set(k, m(a.get(k), b.get(k)));
    };
    if constexpr (is_commutative<M>) {
      index count = std::min(n, lanes);
      const auto half_of = [](index some) { return static_cast<index>(std::bit_ceil(static_cast<std::uint64_t>(some))) / 2; };
      if (n > lanes || n == 1) {
        for (index j = 0; j < count; ++j) lift(j, j);
        for (index i = count; i < n; i += lanes) {
          for (index j = 0; j < std::min(lanes, n - i); ++j) add(j, i + j, i / lanes);
        }
      } else {  // halved for the first time as elements are lifted
        const index half = half_of(n);
        for (index j = 0; j + half < n; ++j) lift_two(j, j, j + half);
        for (index j = n - half; j < half; ++j) lift(j, j);
        count = half;
      }
      while (count > 1) {
        const index half = half_of(count);
        for (index j = 0; j + half < count; ++j) combine(j, j, j + half);
        count = half;
      }
    } else {
      for (index j = 0; j < pieces_of(n); ++j) {
        lift(j, j * piece_elements);
        const index first = j * piece_elements;
        for (index i = 1; i < std::min(n - first, piece_elements); ++i) add(j, first + i, i);
      }
      for (index count = pieces_of(n); count > 1; count = (count + 1) / 2) {  // perfect(lanes)
        for (index j = 0; j < count / 2; ++j) combine(j, 2 * j, 2 * j + 1);
        if (count % 2 == 1) lane[static_cast<std::size_t>(count / 2)] = lane[static_cast<std::size_t>(count - 1)];
      }
    }
    out = lane[0];
  }
}

/// Where group p of so many columns side by side begins: the last one goes over the columns of the one before it.
constexpr index first_of_group(index p, index columns) {
  return std::min(p * abreast, std::max<index>(columns - abreast, 0));
}

/// The states of a tile of columns that stand side by side, a group of them at least: lane after lane, each joined with another
/// as soon as the tree has both, so that `room` holds no more than `packs_in_hand` of a group; the states, in the end.
template <class M, class X>
constexpr void leaf_of_columns(const M& m, const grid<const X>& g, pack<state_of<M>>* room) {
  constexpr bool striped = is_commutative<M>;
  const index groups = groups_of(g.rows), step = striped ? lanes : 1;
  const index count = striped ? std::min(g.length, lanes) : pieces_of(g.length);
  const auto places = static_cast<index>(std::bit_ceil(static_cast<std::uint64_t>(count)));
  auto* top = room;
  const auto row = [x = g.first, stride = g.stride](index i) { return x + i * stride; };
  // Memory does not foresee the rows of a lane, and is asked for four of them, from `ahead` on, unless a cache has them all.
  const bool asks = g.length * g.rows * index{sizeof(X)} > index{1} << 20;
  const auto rows_ahead = [&](index i) { return asks ? row(i) : nullptr; };
  const auto each = [columns = g.rows, apart = step * g.stride](pack<state_of<M>>* to, const X* ahead,
                                                                const auto& state_at) {
    const auto group = [&](index p, index first) {
      for (index r = 0; ahead != nullptr && r < 4; ++r) fetch_lines(ahead + r * apart + first, abreast * sizeof(X));
      pack<state_of<M>> s;  // elements are no aliases of it
      for (index k = 0; k < abreast; ++k) s.set(k, state_at(p, k, first + k));
      for (index k = 0; k < abreast; ++k) to[p].set(k, s.get(k));
    };
    const index whole = columns / abreast;
    for (index p = 0; p < whole; ++p) group(p, p * abreast);
    if (columns % abreast > 0) group(whole, first_of_group(whole, columns));
  };
  const auto lane = [&](index j) {
    const index first = striped ? j : j * piece_elements;
    const index last = striped ? g.length : std::min(g.length, first + piece_elements);
    const auto at = [row](index i, index column) { return regroup::widen(row(i)[column]); };
    each(top, rows_ahead(first + step), [&](index, index, index c) { return regroup::lift(m, at(first, c)); });
    index i = first + step, folded = 1;
    for (; i + 3 * step < last; i += 4 * step, folded += 4) {  // states are loaded and stored once for four
      each(top, rows_ahead(i + 4 * step), [&](index p, index k, index c) {
        auto s = top[p].get(k);
        const auto add = [&](index r) { s = regroup::append(m, folded + r, s, at(i + r * step, c)); };
        add(0), add(1), add(2), add(3);  // a loop would not be unrolled where a combine is long, and none of packs
        return s;
      });
    }
    for (; i < last; i += step, ++folded) {
      each(top, nullptr,
           [&](index p, index k, index c) { return regroup::append(m, folded, top[p].get(k), at(i, c)); });
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

#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute pop
#elif defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/// Folds rows by groups.
template <class M, class X>
class group_fold {
  using state = state_of<M>;
  static constexpr bool by_elements = folds_elements<M, X>();

 public:
  /// The longest row worth transposing when its elements stand side by side: none where each is folded alone after all.
  static constexpr index longest = by_elements ? lanes : 0;
  /// Columns that are folded together, at most.
  static constexpr index columns_together = by_elements && !has_members<M> ? most_columns<state> : abreast;

  explicit group_fold(const M& m) : m_(m) {}

  /// sink(row, state) for the rows [first, last): in whole groups, some at once, and in others where a row alone is dear.
  template <gridded Batch, class Sink>
  void operator()(const Batch& b, index first, index last, const Sink& sink) {
    while (first < last) {
      grid<const X> g = b.grid_at(first, std::min(last - first, columns_together));
      const auto to = [&](index k, const state& s) { sink(first + k, s); };
      if (g.pitch != 1 || fewest_columns > g.rows) g.rows = std::min(g.rows, abreast);
      if (g.rows >= abreast || (g.stride != 1 && g.rows >= abreast / 2)) {
        fold(g, to);
      } else {
        fold_rows(b, first, first + g.rows, m_, sink);
      }
      first += g.rows;
    }
  }

 private:
  /// sink(k, state) for every row k of a grid of a group or part of it, or of some groups of columns, of at least one element.
  template <class Sink>
  void fold(const grid<const X>& g, const Sink& sink) {
    const auto leaf_of_row = [&](const pack<state>* leaves, index k) {
      return leaves[k / abreast].get(k - first_of_group(k / abreast, g.rows));
    };
    if (g.length <= tile_elements) {
      const auto* const leaves = fold_tile(g);
      for (index k = 0; k < g.rows; ++k) sink(k, leaf_of_row(leaves, k));
      return;
    }
    std::vector<forest<state>> nodes(static_cast<std::size_t>(g.rows));
    for (index t = 0; t < tiles_of(g.length); ++t) {
      const auto* const leaves = fold_tile(g.part(t * tile_elements, std::min(tile_elements, g.length - t * tile_elements)));
      for (index k = 0; k < g.rows; ++k) nodes[static_cast<std::size_t>(k)].push(m_, {0, t, leaf_of_row(leaves, k)});
    }
    for (index k = 0; k < g.rows; ++k) sink(k, *nodes[static_cast<std::size_t>(k)].value(m_));
  }
  /// The states of a tile, until the next.
  const pack<state>* fold_tile(const grid<const X>& g) {
    pack<state>* const leaves = g.rows > abreast ? leaves_.of(groups_of(g.rows) * packs_in_hand) : &leaf_;
    if constexpr (by_elements) {
      if constexpr (columns_together > abreast) {
        if (g.rows > abreast) {
          dispatch([&] { leaf_of_columns(m_, g, leaves); });
          return leaves;
        }
      }
      const auto at = [from = beside(g, copy_)](index i, index k) -> decltype(auto) {
        return regroup::widen(from.first[i * from.stride + k]);
      };
      dispatch([&] { leaf_abreast(m_, g.length, at, *leaves); });
    } else {
      const index step = step_apart<X>(g.length);
      X* const copy = copy_.of(abreast * step);
      set_apart(g, copy, step);
      for (index k = 0; k < g.rows; ++k) leaves->set(k, leaf_of(m_, copy + k * step, g.length));
    }
    return leaves;
  }

  const M& m_;
  scratch<X> copy_;
  pack<state> leaf_;
  scratch<pack<state>> leaves_;
};

}  // namespace regroup::host
