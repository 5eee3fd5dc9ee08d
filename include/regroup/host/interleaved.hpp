// SPDX-License-Identifier: Apache-2.0
// Slices of a view along axes that do not join: a slice is a run here and a run there, with those of other slices between. Some
// slices at a time are read in the order of memory: long runs by a loop over lanes, others into copies of a tile of each, which
// are folded as columns of a matrix (host/abreast.hpp) or rows (host/lanes.hpp). Level: lane.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "regroup/host/abreast.hpp"
#include "regroup/host/columns.hpp"
#include "regroup/host/dispatch.hpp"
#include "regroup/host/folds.hpp"
#include "regroup/host/lanes.hpp"
#include "regroup/source.hpp"

namespace regroup::host {

// As in host/lanes.hpp.
#if defined(__clang__)
#pragma clang attribute push([[gnu::always_inline]], apply_to = function)
#pragma clang attribute push([[gnu::flatten]], apply_to = function)
#elif defined(__GNUC__)
#pragma GCC diagnostic push  // as in host/columns.hpp
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

/// A tile of a slice as far as it has been seen: its lanes, and elements that are no whole row of them yet.
template <class M, class X>
struct part_of_tile {
  columns<state_of<M>> lane;
  alignas(std::max<std::size_t>(64, alignof(X))) X rest[static_cast<std::size_t>(lanes)];

  /// Folds whole rows of lanes at the places [begin, end), from x on, while those from `ahead` on are prefetched.
  constexpr void add_rows(const M& m, index begin, index end, const X* x, const X* ahead) {
    columns<state_of<M>> now;  // no alias of the elements
    index i = begin;
    if (i == 0) {
      for (index j = 0; j < lanes; ++j) now.set(j, regroup::lift(m, regroup::widen(x[j])));
      i += lanes;
    } else {
      for (index j = 0; j < lanes; ++j) now.set(j, lane.get(j));  // (now = lane is slow: rep movs)
    }
    const bool asks = !regroup::asks_first_cache();  // a Zen 5 foresees it
    constexpr std::size_t row_bytes = lanes * sizeof(X);
    for (; i < end; i += lanes) {
      const X* const row = x + (i - begin);
      if (asks) regroup::fetch_lines(ahead + (i - begin), row_bytes, false);
      for (index j = 0; j < lanes; ++j) now.set(j, regroup::append(m, i / lanes, now.get(j), regroup::widen(row[j])));
    }
    for (index j = 0; j < lanes; ++j) lane.set(j, now.get(j));
  }
  /// Folds or keeps the elements at places [begin, end).
  constexpr void add(const M& m, index begin, index end, const X* x) {
    const index within = begin % lanes, some = std::min(lanes - within, end - begin);
    if (within > 0) {
      std::copy_n(x, some, rest + within);
      if ((begin + some) % lanes == 0) add_rows(m, begin + some - lanes, begin + some, rest, x + tile_elements);
      x += some;
      begin += some;
    }
    const index whole = begin + (end - begin) / lanes * lanes;
    if (begin < whole) add_rows(m, begin, whole, x, x + tile_elements);
    if (whole < end) std::copy_n(x + (whole - begin), end - whole, rest);
  }
  /// The state of the tile, which ends at `end`.
  constexpr state_of<M> leaf(const M& m, index end) {
    const index whole = end / lanes * lanes;
    for (index j = 0; j < end - whole; ++j) {
      const auto& e = regroup::widen(rest[j]);
      lane.set(j, whole == 0 ? regroup::lift(m, e) : regroup::append(m, whole / lanes, lane.get(j), e));
    }
    return join_halves(m, lane, end);
  }
};

#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute pop
#elif defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/// Whether sources are slices that may be read in the order of memory.
template <class M, class Source>
inline constexpr bool goes_in_order_of_memory = false;
template <class M, class T>
inline constexpr bool goes_in_order_of_memory<M, lattice<T>> =
    is_plain<state_of<M>, std::remove_const_t<T>> && is_movable<std::remove_const_t<T>>;
/// Whether their elements may be folded where they are: one by one, into lanes.
template <class M, class X>
inline constexpr bool folds_runs = std::is_trivially_copyable_v<columns<state_of<M>>> && std::is_default_constructible_v<X> &&
                                   is_commutative<M> && !has_members<M> && folds_elements<M, X>();

/// Whether the elements of a slice stand in runs that are long enough for what each costs, loading and storing the lanes. (Of
/// shorter ones a tile is copied first.)
template <class T>
bool has_runs(const lattice<T>& slice) {
  constexpr index shortest = 6 * lanes;
  const int last = slice.extents->size() - 1;
  return (*slice.strides)[last] == 1 && (*slice.extents)[last] >= shortest;
}

/// Calls sink(row, state) for the slices [first, last) of a batch that has runs: some at a time, whose lanes fit the first
/// cache.
template <class Batch, class M, class Sink>
void fold_runs(const Batch& b, index first, index last, const M& m, const Sink& sink) {
  using state = state_of<M>;
  using element = element_in<Batch>;
  constexpr index bytes = 1 << 15, most = std::max<index>(bytes / index{sizeof(part_of_tile<M, element>)}, 1);
  const index size = b[first].size(), group = std::min(last - first, most);
  const auto room = static_cast<std::size_t>(group);
  const auto parts = std::make_unique_for_overwrite<part_of_tile<M, element>[]>(room);
  std::vector<state> leaves(room, m.identity());
  std::vector<forest<state>> nodes(size > tile_elements ? room : 0);
  for (; first < last; first += group) {
    const auto some = static_cast<std::size_t>(std::min(group, last - first));
    const auto slice = b[first];
    const auto fold = [&](index position, index offset, index n) {  // n elements of a tile
      const index begin = position % tile_elements, end = begin + n;
      const bool is_whole = end == tile_elements || position + n == size;
      dispatch([&] {
        for (std::size_t r = 0; r < some; ++r) {
          const element* const x = b[first + static_cast<index>(r)].first + offset;
          regroup::find_pages_ahead(x, static_cast<std::size_t>(n) * sizeof(element));
          parts[r].add(m, begin, end, x);
          if (is_whole) leaves[r] = parts[r].leaf(m, end);
        }
      });
      if (!is_whole || size <= tile_elements) return;
      for (std::size_t r = 0; r < some; ++r) nodes[r].push(m, {0, position / tile_elements, leaves[r]});
    };
    slice.each_run(0, size, [&](index k, const auto* x, index run, index /*step*/) {
      for (index i = 0, n = 0; i < run; i += n) {
        n = std::min(tile_elements - (k + i) % tile_elements, run - i);
        fold(k + i, x + i - slice.first, n);
      }
    });
    for (std::size_t r = 0; r < nodes.size() && r < some; ++r) {
      leaves[r] = *std::move(nodes[r]).value(m);
      nodes[r] = {};
    }
    host::sink_some(sink, first, static_cast<index>(some), [&](index r) { return leaves[static_cast<std::size_t>(r)]; });
  }
}

/// Copies slices from the one at `first` on, as many as the grid has rows: of each, as many elements from `position` on as a
/// row is long. Slices that begin side by side become columns, others rows.
template <class Batch, class X>
void gather(const Batch& b, index first, index position, const grid<X>& to) {
  const auto slice = b[first];
  dispatch([&] {
    slice.each_run(position, to.length, [&](index k, const X* x, index run, index step) {
      if (to.pitch == 1) {
        X* const row = to.first + k * to.stride;
        const bool is_one_copy = step == to.stride;
        for (index i = 0; i < (is_one_copy ? 1 : run); ++i) {
          for (index c = 0; c < (is_one_copy ? run * to.rows : to.rows); ++c) row[i * to.stride + c] = x[i * step + c];
        }
      } else {
        for (index r = 0; r < to.rows; ++r) {
          const X* const from = b[first + r].first + (x - slice.first);
          X* const row = to.first + r * to.pitch + k;
          if (step == 1) {
            for (index i = 0; i < run; ++i) row[i] = from[i];
          } else {
            for (index i = 0; i < run; ++i) row[i] = from[i * step];
          }
        }
      }
    });
  });
}

/// Calls sink(row, state) for the slices [first, last) of a batch, of which some at a time are copied so that they fit the
/// second-level cache.
template <class Batch, class M, class Sink>
void fold_copies(const Batch& b, index first, index last, const M& m, const Sink& sink) {
  using element = element_in<Batch>;
  constexpr index bytes = 1 << 19;
  constexpr bool may_be_columns = goes_in_packs<M, element>();
  const index size = b[first].size(), tile = std::min(size, tile_elements), step = step_apart<element>(tile);
  const index most = std::clamp<index>(bytes / (tile * index{sizeof(element)}), 1, lanes);
  scratch<element> room;
  element* const copy = room.of(std::min(last - first, most) * step);
  std::array<stretch<element>, lanes> rows;
  columns<state_of<M>> states;
  std::optional<group_fold<M, element>> groups;
  if constexpr (may_be_columns) groups.emplace(m);
  while (first < last) {
    index some = std::min(last - first, most);
    const index side_by_side = std::min(b.side_by_side(first), some);
    const bool are_columns = may_be_columns && side_by_side > 1;
    if (are_columns) some = side_by_side;
    std::vector<forest<state_of<M>>> nodes(static_cast<std::size_t>(size > tile ? some : 0));
    const auto put = [&](index t, const auto& leaf) {
      if (size <= tile) return host::sink_some(sink, first, some, leaf);
      for (index k = 0; k < some; ++k) nodes[static_cast<std::size_t>(k)].push(m, {0, t, leaf(k)});
    };
    for (index t = 0; t < tiles_of(size); ++t) {
      const index n = std::min(tile, size - t * tile);
      const grid<element> tiles = are_columns ? grid<element>{copy, some, n, some, 1} : grid<element>{copy, some, n, 1, step};
      gather(b, first, t * tile, tiles);
      if constexpr (may_be_columns) {
        if (are_columns) {
          put(t, groups->leaves_of(tiles));
          continue;
        }
      }
      for (index k = 0; k < some; ++k) rows[static_cast<std::size_t>(k)] = {copy + k * step, n};
      host::fold_leaves(m, rows.data(), some, states, as_they_lie{});
      put(t, [&](index k) { return states.get(k); });
    }
    for (std::size_t k = 0; k < nodes.size(); ++k) sink(first + static_cast<index>(k), *std::move(nodes[k]).value(m));
    first += some;
  }
}

/// Calls sink(row, state) for the sources [first, last) of a batch.
template <batch Batch, class M, class Sink>
void fold_sources(const Batch& b, index first, index last, const M& m, const Sink& sink) {
  if constexpr (goes_in_order_of_memory<M, source_in<Batch>>) {
    if (first < last && b[first].size() > 0) {
      if constexpr (folds_runs<M, element_in<Batch>>) {
        if (has_runs(b[first])) return fold_runs(b, first, last, m, sink);
      }
      return fold_copies(b, first, last, m, sink);
    }
  }
  fold_rows(b, first, last, m, sink);
}

}  // namespace regroup::host
