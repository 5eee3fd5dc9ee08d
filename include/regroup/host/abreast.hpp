// SPDX-License-Identifier: Apache-2.0
// Many rows across a vector: row k of a group in lane k of a pack, so that a short row costs little more than its elements,
// and the columns of a matrix are read in memory order. Every row keeps the contract's tree, hence its bits.
// A leaf is one tile of every row at once, by the loops of host/lanes.hpp with a pack for a state; columns that stand side by
// side have those of host/matrix_columns.hpp.
// Level: lane. Law: as host/lanes.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "regroup/executor.hpp"
#include "regroup/host/beside.hpp"
#include "regroup/host/folds.hpp"
#include "regroup/host/lanes.hpp"
#include "regroup/host/matrix_columns.hpp"
#include "regroup/host/ragged.hpp"

namespace regroup::host {

/// A batch whose rows, or groups of them, are one stride apart.
template <class Batch>
concept gridded = batch<Batch> && requires(const Batch& b) { b.grid_at(index{}, index{}); };

/// Whether rows of a batch may go abreast.
template <class M, batch Batch>
constexpr bool goes_abreast() {
  return gridded<Batch> && goes_in_packs<M, element_in<Batch>>();
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
/// Whether the rows of a batch, enough of them for a group, stand side by side, or are contiguous and short: of at most
/// `longest`, and, unless they are as short as a piece, not many fewer than whole groups have.
template <gridded Batch>
bool are_columns_or_short(const Batch& b, index longest) {
  if (group_rows(b, b, longest) <= 1) return false;
  const auto g = b.grid_at(0, abreast);
  const index missing = groups_of(b.size()) * abreast - b.size();
  return g.stride != 1 ? g.pitch == 1 : g.length <= piece_elements || 3 * missing <= b.size();
}
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

/// Whether there are enough rows of `length` elements for all threads when rows go in groups, which is several times as fast.
/// For short rows always true.
constexpr bool are_enough(index threads, index rows, index length) {
  return length <= lanes || 4 * rows >= abreast * threads;
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
    host::with_members(m, [&](const auto&... member) {
      std::tuple<pack<state_of<std::remove_cvref_t<decltype(member)>>>...> parts;
      [&]<std::size_t... K>(std::index_sequence<K...>) {
        (host::leaf_abreast(member, n, at, std::get<K>(parts)), ...);
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

#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute pop
#elif defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/// Folds rows by groups. Element i of a row is seen(x, i).
template <class M, class X, class Seen = as_it_is>
class group_fold {
  using state = state_of<M>;
  using element = std::remove_cvref_t<std::invoke_result_t<const Seen&, const X&, index>>;
  static constexpr bool by_elements = folds_elements<M, element>();
  static constexpr bool goes_by_columns = by_elements && !has_members<M>;
  static constexpr bool has_positions = !std::is_same_v<Seen, as_it_is>;  // then no row is copied whole, nor folded alone
  static_assert(by_elements || !has_positions);
  /// Columns that are folded group after group. Seen with positions, up to three lines of floats are faster so (Zen 4: 1.4 to
  /// 3.3 times).
  static constexpr index most_by_groups = has_positions ? 3 * abreast : abreast;

 public:
  /// The longest row of a batch worth transposing when its elements stand side by side: none where each is folded alone after
  /// all, and less where that is quick (host/short_leaf.hpp).
  template <gridded Batch>
  static index longest(const Batch& b) {
    if constexpr (!has_positions && goes_short<M, element>()) {
      if (b.size() == 0) return 0;
      const auto g = b.grid_at(0, b.size());
      if (g.stride == 1 && g.pitch == g.length) return piece_elements;
    }
    return by_elements ? lanes : 0;
  }
  /// Columns that are folded together, at most.
  static constexpr index columns_together = has_members<M> ? abreast : by_elements ? most_columns<state> : 4 * abreast;

  /// How many rows of a matrix are folded as one, if these are all of its columns: as many as have `columns_together` elements,
  /// a power of two. Two as one gain nothing, nor does a group whose combine is quick, which needs no copy.
  static index rows_together(const grid<const X>& g) {
    if (has_positions || !goes_by_columns || !is_commutative<M> || !is_matrix(g)) return 1;
    if ((is_quick<M> && g.rows == abreast) || 4 * g.rows > columns_together) return 1;
    return std::min(lanes, static_cast<index>(std::bit_floor(static_cast<std::uint64_t>(columns_together / g.rows))));
  }
  /// Whether these are all columns of a matrix, and so few that it is worth reading in the order of memory, tile by tile.
  static bool is_narrow(const grid<const X>& g) {
    if (has_positions || !is_matrix(g)) return false;
    return by_elements ? g.rows <= abreast || rows_together(g) > 1 : g.rows <= columns_together;
  }

  explicit group_fold(const M& m, const Seen& seen = {}) : m_(m), seen_(seen) {}

  /// The columns of the matrices that a batch has, if `workers` had better share out their tiles than the columns; else 0.
  template <gridded Batch>
  static index columns_to_cut(const Batch& b, index workers) {
    if (b.size() == 0) return 0;
    const grid<const X> g = b.grid_at(0, b.size());
    const index tiles = b.size() / g.rows * tiles_of(g.length);
    const bool go_together = goes_by_columns && g.pitch == 1 && g.stride != 1 && g.rows <= columns_together &&
                             (g.rows >= fewest_columns || has_positions);
    return (is_narrow(g) && tiles >= workers) || (go_together && workers > 1 && tiles >= 4 * workers) ? g.rows : 0;
  }

  /// sink(row, state) for the rows [first, last): in whole groups, some at once, and in others where a row alone is dear.
  template <gridded Batch, class Sink>
  void operator()(const Batch& b, index first, index last, const Sink& sink) {
    while (first < last) {
      grid<const X> g = b.grid_at(first, std::min(last - first, columns_together));
      const bool has_all = is_matrix(g);
      if (!has_all && (!goes_by_columns || g.pitch != 1 || fewest_columns > g.rows)) g.rows = std::min(g.rows, abreast);
      if constexpr (has_positions) {
        fold(g, first, sink);
      } else if (has_all || g.rows >= abreast || (g.stride != 1 && g.rows >= abreast / 2)) {
        fold(g, first, sink);
      } else {
        fold_rows(b, first, first + g.rows, m_, sink);
      }
      first += g.rows;
    }
  }

  /// The state of row k of a grid of at most a tile is (k).
  [[nodiscard]] auto leaves_of(const grid<const X>& g) {
    return [leaves = fold_tile(g, 0, false), rows = g.rows](index k) { return leaf_of_row(leaves, k, rows); };
  }
  /// The forests of the tiles [first, last) of every row of a grid.
  std::vector<forest<state>> fold_tiles(const grid<const X>& g, index first, index last) {
    std::vector<forest<state>> nodes(static_cast<std::size_t>(g.rows));
    for (index t = first; t < last; ++t) {
      const index n = std::min(tile_elements, g.length - t * tile_elements);
      const auto* const leaves = fold_tile(g.part(t * tile_elements, n), t * tile_elements, asks(g));
      for (index k = 0; k < g.rows; ++k) nodes[static_cast<std::size_t>(k)].push(m_, {0, t, leaf_of_row(leaves, k, g.rows)});
    }
    return nodes;
  }

 private:
  /// sink(row + k, state) for every row k of a grid of a group or part of it, or of some groups of columns, of at least one
  /// element.
  template <class Sink>
  void fold(const grid<const X>& g, index row, const Sink& sink) {
    if (g.length <= tile_elements) {
      const auto* const leaves = fold_tile(g, 0, asks(g));
      for (index p = 0; p < groups_of(g.rows); ++p) {
        const index k = p * abreast, shared = k - first_of_group(p, g.rows);
        host::sink_some(sink, row + k, std::min(abreast, g.rows - k), [&](index i) { return leaves[p].get(shared + i); });
      }
      return;
    }
    const auto nodes = fold_tiles(g, 0, tiles_of(g.length));
    for (index k = 0; k < g.rows; ++k) sink(row + k, *nodes[static_cast<std::size_t>(k)].value(m_));
  }
  /// Whether rows are to be prefetched: not where a cache has them all, or on a Zen 5, which foresees them.
  static bool asks(const grid<const X>& g) {
    return g.length * g.rows * index{sizeof(X)} > index{1} << 20 && !regroup::asks_first_cache();
  }
  static state leaf_of_row(const pack<state>* leaves, index k, index rows) {
    return leaves[k / abreast].get(k - first_of_group(k / abreast, rows));
  }
  /// The states of a tile that begins at a position, until the next; its rows are prefetched if it `asks`.
  const pack<state>* fold_tile(const grid<const X>& g, index position, bool asks) {
    const auto seen = [&] {
      if constexpr (has_positions) {
        return [seen = seen_, position](const X& x, index i) { return std::invoke(seen, x, position + i); };
      } else {
        return seen_;
      }
    }();
    const index together = rows_together(g);
    pack<state>* const leaves =
        together * g.rows > abreast ? leaves_.of(groups_of(together * g.rows) * packs_in_hand) : &leaf_;
    if constexpr (by_elements) {
      if constexpr (goes_by_columns) {
        if constexpr (!has_positions) {
          if (together > 1) {
            dispatch([&] { leaf_of_few_columns(m_, g, together, leaves, asks); });
            return leaves;
          }
        }
        if (g.rows > most_by_groups) {
          dispatch([&] { host::leaf_of_columns(m_, g, seen, leaves, asks); });
          return leaves;
        }
      }
      if (g.rows == abreast || has_positions || !is_narrow(g)) {
        for (index p = 0; p < groups_of(g.rows); ++p) {
          const grid<const X> group{std::addressof(g(0, first_of_group(p, g.rows))), std::min(g.rows, abreast), g.length,
                                    g.stride, g.pitch};
          const auto at = [from = host::beside(group, copy_), seen](index i, index k) -> decltype(auto) {
            return seen(from.first[i * from.stride + k], i);
          };
          dispatch([&] { host::leaf_abreast(m_, g.length, at, leaves[p]); });
        }
        return leaves;
      }
    }
    if constexpr (!has_positions) {
      const index step = step_apart<X>(g.length);
      X* const copy = copy_.of(g.rows * step);
      host::set_apart(g, copy, step);
      for (index k = 0; k < g.rows; ++k) {
        leaves[k / abreast].set(k - first_of_group(k / abreast, g.rows), host::leaf_of(m_, copy + k * step, g.length));
      }
    }
    return leaves;
  }
  static bool is_matrix(const grid<const X>& g) {
    return g.pitch == 1 && g.stride == g.rows && g.rows > 1 && g.length >= lanes;
  }

  const M& m_;
  Seen seen_;
  scratch<X> copy_;
  pack<state> leaf_;
  scratch<pack<state>> leaves_;
};

}  // namespace regroup::host
