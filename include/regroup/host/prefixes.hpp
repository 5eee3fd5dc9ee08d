// SPDX-License-Identifier: Apache-2.0
// The prefixes of one tile, and the carry from tile to tile. Lanes are contiguous pieces for every monoid:
//   P = lane totals, then P[j] = P[j - d] P[j] for d = 1, 2, ..., L/2 (Kogge and Stone 1973)
//   y = (carry P[j - 1]) (prefix within the piece);  carry of tile t = perfect(totals of the tiles before it)
// so the first k results are the scan of the first k elements, bitwise. Level: lane.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "regroup/host/lanes.hpp"

namespace regroup::host {

/// What a full tile tells the tiles after it: its total, and its last prefix in the two parts that a carry joins.
template <class State>
struct tile_summary {
  State total;                  // P[L - 1]
  std::optional<State> before;  // P[L - 2]
  State last;                   // the fold of the last piece
};

/// What a tile needs of the tiles before it. Absent for the first.
template <class State>
struct tile_carry {
  std::optional<State> carry;      // perfect(totals)
  std::optional<State> preceding;  // the inclusive result just before the tile
};

template <class M>
state_of<M> joined(const M& m, const std::optional<state_of<M>>& left, const state_of<M>& right) {
  return left ? m(*left, right) : right;
}

// An empty optional is copied here, whose value g++ believes to be read.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

/// Walks the tiles of a source in order; the totals so far are a binary counter.
template <class M>
class carry_chain {
 public:
  explicit carry_chain(const M& m) : m_(&m) {}
  /// The carry into the tile of `summary`, which is counted in for the next.
  tile_carry<state_of<M>> next(tile_summary<state_of<M>> summary) {
    tile_carry<state_of<M>> now;
    now.carry = totals_.value(*m_);
    now.preceding = preceding_;
    std::optional<state_of<M>> base = now.carry;
    if (summary.before) base = joined(*m_, now.carry, *summary.before);
    preceding_ = joined(*m_, base, summary.last);
    totals_.push(*m_, {0, tiles_++, std::move(summary.total)});
    return now;
  }

 private:
  const M* m_;
  forest<state_of<M>> totals_;
  std::optional<state_of<M>> preceding_;
  index tiles_ = 0;
};

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

/// Lane j of `lane` becomes P[j].
template <class M>
constexpr void prefix_lanes(const M& m, columns<state_of<M>>& lane, index count) {
  for (index d = 1; d < count; d *= 2) {
    columns<state_of<M>> next;
    for (index j = 0; j < d; ++j) next.set(j, lane.get(j));
    for (index j = d; j < count; ++j) next.set(j, m(lane.get(j - d), lane.get(j)));
    lane = std::move(next);
  }
}

template <class M, class Tile>
constexpr tile_summary<state_of<M>> summarise(const M& m, const Tile& t) {
  const index count = pieces_of(t.size());
  columns<state_of<M>> lane;
  fold_pieces(m, t, lane);
  const state_of<M> last = lane.get(count - 1);
  prefix_lanes(m, lane, count);
  if (count == 1) return {lane.get(0), std::nullopt, last};
  return {lane.get(count - 1), lane.get(count - 2), last};
}

/// put(i, state) for every element i of the tile, counted within it: the state of all positions up to and with it.
template <class M, class Tile, class Put>
constexpr void prefixes(const M& m, const Tile& t, const std::optional<state_of<M>>& carry, const Put& put) {
  const index n = t.size();
  const index count = pieces_of(t.size());
  columns<state_of<M>> base;
  fold_pieces(m, t, base);
  prefix_lanes(m, base, count);
  columns<state_of<M>> before;  // carry P[j - 1] for lane j >= 1; lane 0 has the carry alone
  before.set(0, base.get(0));
  for (index j = 1; j < count; ++j) before.set(j, carry ? m(*carry, base.get(j - 1)) : base.get(j - 1));
  columns<state_of<M>> within;
  for (index i = 0; i < piece_elements; ++i) {
    const index present = i < n - (count - 1) * piece_elements ? count : count - 1;
    for (index j = 0; j < present; ++j) {
      const state_of<M> x = regroup::lift(m, t[j * piece_elements + i]);
      within.set(j, i == 0 ? x : m(within.get(j), x));
    }
    if (present > 0) put(i, joined(m, carry, within.get(0)));
    for (index j = 1; j < present; ++j) put(j * piece_elements + i, m(before.get(j), within.get(j)));
  }
}

/// The prefixes of tile `number` of a source: put(position, state). Elements are read before any result is put, so a
/// sink may write over the source.
template <class M, source Source, class Put>
void scan_tile(const M& m, const Source& s, index number, const tile_carry<state_of<M>>& in, scan_kind kind,
               const Put& put) {
  using element = element_of<Source>;
  const index first = number * tile_elements;
  const index n = std::min(tile_elements, s.size() - first);
  const index shift = kind == scan_kind::exclusive ? 1 : 0;
  const auto place = [&](index i, const state_of<M>& state) {
    if (i + shift < n) put(first + i + shift, state);
  };
  const auto work = [&](const element* data) {
    if (kind == scan_kind::exclusive) put(first, in.preceding ? *in.preceding : m.identity());
    run<is_plain<state_of<M>, element>>([&] { prefixes(m, tile<load_from<element>>{{data}, n}, in.carry, place); });
  };
  with_copy(s, first, n, work);
}

/// The summaries of the tiles [first, last) of a source.
template <class M, source Source>
auto summarise_tiles(const M& m, const Source& s, index first, index last) {
  using element = element_of<Source>;
  std::vector<tile_summary<state_of<M>>> summaries;
  for (index t = first; t < last; ++t) {
    const index n = std::min(tile_elements, s.size() - t * tile_elements);
    with_contiguous(s, t * tile_elements, n, [&](const element* data) {
      std::optional<tile_summary<state_of<M>>> summary;
      run<is_plain<state_of<M>, element>>(
          [&] { summary.emplace(summarise(m, tile<load_from<element>>{{data}, n})); });
      summaries.push_back(*std::move(summary));
    });
  }
  return summaries;
}

/// All prefixes of one source, on one thread.
template <class M, source Source, class Put>
void scan_source(const M& m, const Source& s, scan_kind kind, const Put& put) {
  carry_chain<M> chain(m);
  for (index t = 0; t < tiles_of(s.size()); ++t) {
    auto summary = summarise_tiles(m, s, t, t + 1);
    scan_tile(m, s, t, chain.next(std::move(summary.front())), kind, put);
  }
}

}  // namespace regroup::host
