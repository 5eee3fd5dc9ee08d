// SPDX-License-Identifier: Apache-2.0
// Slices of a view along axes that do not join: a slice is a run here and a run there, with those of other slices between. They
// are folded in the order of memory, each into lanes of its own, with the bits of host/lanes.hpp. Level: lane.
#pragma once

#include <algorithm>
#include <memory>
#include <type_traits>
#include <vector>

#include "regroup/host/abreast.hpp"
#include "regroup/host/columns.hpp"
#include "regroup/host/dispatch.hpp"
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
  alignas(64) X rest[static_cast<std::size_t>(lanes)];

  /// Folds whole rows of lanes, from x on, which begin at place `begin` of the tile.
  constexpr void add_rows(const M& m, index begin, index end, const X* x) {
    columns<state_of<M>> now;  // no alias of the elements
    index i = begin;
    if (i == 0) {
      for (index j = 0; j < lanes; ++j) now.set(j, regroup::lift(m, regroup::widen(x[j])));
      i += lanes;
    } else {
      for (index j = 0; j < lanes; ++j) now.set(j, lane.get(j));  // (as a whole, by a slow instruction)
    }
    for (; i < end; i += lanes) {
      const X* const row = x + (i - begin);
      fetch_lines(row + tile_elements, static_cast<std::size_t>(lanes) * sizeof(X));
      for (index j = 0; j < lanes; ++j) now.set(j, regroup::append(m, i / lanes, now.get(j), regroup::widen(row[j])));
    }
    for (index j = 0; j < lanes; ++j) lane.set(j, now.get(j));
  }
  /// Folds or keeps the elements at places [begin, end).
  constexpr void add(const M& m, index begin, index end, const X* x) {
    const index within = begin % lanes, some = std::min(lanes - within, end - begin);
    if (within > 0) {
      std::copy_n(x, some, rest + within);
      x += some;
      begin += some;
      if (begin % lanes == 0) add_rows(m, begin - lanes, begin, rest);
    }
    const index whole = begin + (end - begin) / lanes * lanes;
    if (begin < whole) add_rows(m, begin, whole, x);
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

/// Whether slices of a view may be folded in the order of memory: a monoid folds their elements one by one.
template <class M, class Source>
inline constexpr bool folds_runs = false;
template <class M, class T>
inline constexpr bool folds_runs<M, lattice<T>> = [] {
  using element = std::remove_const_t<T>;
  return is_plain<state_of<M>, element> && std::is_trivially_copyable_v<columns<state_of<M>>> &&
         std::is_default_constructible_v<element> && is_commutative<M> && !has_members<M> && folds_elements<M, element>();
}();

/// Whether the elements of a slice stand in runs that are long enough for what each costs, loading and storing the lanes. (Of
/// shorter ones a tile is copied first.)
template <class T>
bool has_runs(const lattice<T>& slice) {
  constexpr index shortest = 6 * lanes;
  const int last = slice.extents->size() - 1;
  return slice.count > 0 && (*slice.strides)[last] == 1 && (*slice.extents)[last] >= shortest;
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
          find_pages_ahead(x, static_cast<std::size_t>(n) * sizeof(element));
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
    for (std::size_t r = 0; r < nodes.size() && r < some; ++r) leaves[r] = *std::move(nodes[r]).value(m), nodes[r] = {};
    sink_some(sink, first, static_cast<index>(some), [&](index r) { return leaves[static_cast<std::size_t>(r)]; });
  }
}

}  // namespace regroup::host
