// SPDX-License-Identifier: Apache-2.0
// The ordered scan as kernels: y = (carry P[j - 1]) (prefix within the piece), lanes being contiguous pieces for every
// monoid. Of segments it takes two passes (of what has no gaps one: scan_chain.hpp). The first folds every tile to its
// total; the totals become a Fenwick tree, whose nodes are the contract's: the carry into tile t, perfect(totals before
// it), is one combine for each bit of t.
// y may be exactly x: a tile is read before its answers are written, and the answer that belongs to the next tile's first
// place, where the scan is exclusive, is kept for a last kernel. Level: lane to device.
#pragma once

#include <type_traits>

#include "regroup/cuda/batch.hpp"
#include "regroup/cuda/team.hpp"

namespace regroup::cuda {

/// perfect() of the first t >= 1 totals of a row: `nodes[e - 1]` is the node that ends after e tiles.
template <class M>
constexpr state_of<M> carry_into(const M& m, const state_of<M>* nodes, index t) {
  state_of<M> s = nodes[t - 1];
  for (t &= t - 1; t > 0; t &= t - 1) s = m(nodes[t - 1], s);
  return s;
}

/// Where the totals of a row's tiles begin; rows of one tile have none.
template <class Batch>
constexpr index first_total(const Batch& rows, index row) {
  return rows.slot_of(row, tile_elements, tile_elements);
}

/// The fold of this thread's piece of a tile; unspecified if the piece has no element.
template <class M, class Team, class Source>
constexpr state_of<M> piece_total(const M& m, Team& of, const Source& source, index first, int n) {
  using element = std::remove_cvref_t<widened<element_of<Source>>>;
  state_of<M> s = m.identity();
  of.template each_of_piece<element>(
      n, [&](int i) -> element { return regroup::widen(source[first + i]); },
      [&](int i, const element& x) {
        const state_of<M> one = regroup::lift(m, x);
        s = i == 0 ? one : m(s, one);
      });
  return s;
}

/// Whether a thread keeps the prefixes within its piece, and the block its tile in shared memory: if states are small, and a
/// tile and its answers fit 34 KiB.
template <class M, class Element, class Place>
inline constexpr bool scan_is_held =
    sizeof(state_of<M>) <= 8 &&
    (sizeof(Element) + (std::is_same_v<Element, Place> ? 0 : sizeof(Place))) * block_threads * 33 < 34 << 10;

/// Blocks for each multiprocessor: as many as leave registers for the prefixes.
template <class M, scan_kind Kind, class In>
inline constexpr int scan_blocks = sizeof(state_of<M>) > 8                                                         ? 3
                                   : sizeof(state_of<M>) > 4 || Kind == scan_kind::exclusive || requires { &In::outer; } ? 4
                                                                                                                    : 5;

/// The answers of one tile that is held: elements are read once, and combined twice. No thread treats the end of the tile
/// specially: places past it repeat the last element, and are not written.
template <class M, scan_kind Kind, class Team, class Source, class Out, class Before>
constexpr state_of<M> scan_held_tile(const M& m, Team& of, const Source& source, const Out& out, index first, int n,
                                     const Before& before_of) {
  using element = std::remove_cvref_t<widened<element_of<Source>>>;
  using place = place_of<Out>;
  constexpr int c = Team::steps, width = Team::width;
  auto& b = of.block();
  auto in = b.template shared<element, block_threads*(c + 1)>();
  auto answers = b.template shared<place, block_threads*(c + 1)>();
  const int own = b.thread();
  const int group = of.rank() / width * width;
  const int j = of.rank() - group;
  const auto each_place = [&](const auto& body) {  // body(place, position, position - position of k = 0): what a thread moves
    unrolled<c>([&](int k) {
      const int piece = width == c ? k : (j + width * k) / c;
      const int i = width == c ? j : (j + width * k) % c;
      body(k, (own - j + piece) * (c + 1) + i, (group + piece) * c + i, piece * c + i - j);
    });
  };
  const bool is_whole = n == tile_elements;
  const auto from = contiguous_from(source, first + group * c + j);
  constexpr int at_once = width == c && sizeof(element) <= 4 ? c : 8;  // more spill
  slots<element, at_once> x;
  unrolled<c / at_once>([&](int part) {
    const auto of_part = [&](const auto& body) {
      each_place([&](int k, int at, int position, int far) {
        if (k / at_once == part) body(x[k % at_once].value, at, position, far);
      });
    };
    if (is_whole && from != nullptr) {
      if constexpr (!std::is_null_pointer_v<std::remove_const_t<decltype(from)>>) {
        of_part([&](element& to, int, int, int far) { to = regroup::widen(from[far]); });
      }
    } else {
      of_part([&](element& to, int, int position, int) { to = regroup::widen(source[first + smaller(position, n - 1)]); });
    }
    of_part([&](const element& one, int to, int, int) { in.set(to, one); });
  });
  b.template group_barrier<width>();
  slots<state_of<M>, c> within;
  unrolled<c>([&](int i) {
    const state_of<M> one = regroup::lift(m, in.get(own * (c + 1) + i));
    within[i].value = i == 0 ? one : m(within[i - 1].value, one);
  });
  const state_of<M> before = before_of(within[c - 1].value);
  const state_of<M> last = m(before, within[c - 1].value);
  state_of<M> previous = last;
  if constexpr (Kind == scan_kind::exclusive) {
    previous = of.from_before(last, 1);
    if (of.rank() == 0) previous = m.identity();
  }
  unrolled<c>([&](int i) {
    const state_of<M> now = i == c - 1 ? last : m(before, within[i].value);
    const state_of<M> s = Kind == scan_kind::inclusive ? now : previous;
    answers.set(own * (c + 1) + i, static_cast<place>(regroup::lower(m, s)));
    previous = now;
  });
  b.template group_barrier<width>();  // and before the next tile's elements come
  const bool is_elsewhere = Kind == scan_kind::exclusive && first > 0;  // the first place's answer
  const auto to = contiguous_from(out, first + group * c + j);
  if (is_whole && !is_elsewhere && to != nullptr) {
    if constexpr (!std::is_null_pointer_v<std::remove_const_t<decltype(to)>>) {
      each_place([&](int, int at, int, int far) { to[far] = answers.get(at); });
    }
  } else {
    each_place([&](int, int at, int position, int) {
      if (position < n && !(is_elsewhere && position == 0)) out[first + position] = answers.get(at);
    });
  }
  return last;
}

/// Writes the answers of one tile; before_of(the total of this thread's piece) is what comes before the piece in its row.
/// Returns the state of the last answer, valid in the thread of the last piece.
template <class M, scan_kind Kind, class Team, class Source, class Out, class Before>
constexpr state_of<M> scan_tile(const M& m, Team& of, const Source& source, const Out& out, index first, int n,
                                const Before& before_of) {
  using element = std::remove_cvref_t<widened<element_of<Source>>>;
  using place = place_of<Out>;
  static_assert(std::is_trivially_copyable_v<place>,
                "regroup: on a device the answers of a scan travel as bytes, so they must be trivially copyable");
  if constexpr (scan_is_held<M, element, place>) {
    return scan_held_tile<M, Kind>(m, of, source, out, first, n, before_of);
  } else {
    const auto answer = [&m](const state_of<M>& s) { return static_cast<place>(regroup::lower(m, s)); };
    const state_of<M> total = piece_total(m, of, source, first, n);
    const state_of<M> before = before_of(total);
    const state_of<M> last = m(before, total);
    state_of<M> previous = last;
    if constexpr (Kind == scan_kind::exclusive) {
      previous = of.from_before(last, 1);
      if (of.rank() == 0) previous = m.identity();
    }
    state_of<M> within = before;
    of.template map_pieces<element, place>(
        n, [&](int i) -> element { return regroup::widen(source[first + i]); },
        [&](int i, const element& x) {
          const state_of<M> one = regroup::lift(m, x);
          within = i == 0 ? one : m(within, one);
          const state_of<M> now = m(before, within);
          if constexpr (Kind == scan_kind::inclusive) return answer(now);
          const place y = answer(previous);
          previous = now;
          return y;
        },
        [&](int i, const place& y) {  // the exclusive answer at a later tile's first place is the tile's before
          if (Kind == scan_kind::inclusive || i > 0 || first == 0) out[first + i] = y;
        });
    return last;
  }
}

/// Rows of at most `Threads` pieces, one team each; longer rows are skipped.
template <int Threads, scan_kind Kind, class M, class In, class Out>
struct scan_short_rows {
  static constexpr bool is_simple = requires(const source_in<In>& x) { x.contiguous(); } &&
                                    (Threads == warp_threads || sizeof(state_of<M>) <= 4);
  static constexpr int resident_blocks = !is_simple ? 2 : Threads == warp_threads ? scan_blocks<M, Kind, In> : 3;
  M m;
  In rows;
  Out answers;

  template <block Block>
  constexpr void operator()(Block& b) const {
    each_row<Threads>(b, rows, [&](auto& of, index row) {
      const auto source = rows[row];
      const index n = source.size();
      if (n == 0 || n > Threads * of.steps) return;
      const int pieces = (static_cast<int>(n) - 1) / of.steps + 1;
      scan_tile<M, Kind>(m, of, source, answers[row], 0, static_cast<int>(n),
                         [&](const state_of<M>& total) { return of.prefix_before(m, total, pieces); });
    });
  }
};

/// First pass: the total of every tile that another one follows.
template <class M, class In>
struct scan_totals {
  static constexpr int resident_blocks = In::has_gaps ? 3 : 4;  // of segments 128 registers spill
  M m;
  In rows;
  state_of<M>* totals;

  template <block Block>
  constexpr void operator()(Block& b) const {
    each_node(b, rows, tile_elements, tile_elements, [&](auto& of, index row, index position) {
      const auto source = rows[row];
      const index first = position * tile_elements;
      if (first + tile_elements >= source.size()) return;
      const state_of<M> piece = piece_total(m, of, source, first, static_cast<int>(tile_elements));
      const state_of<M> total = of.perfect(m, piece, block_threads);
      if (of.rank() == 0) totals[first_total(rows, row) + position] = total;
    });
  }
};

/// Joins L neighbours, `stride` tiles apart, to nodes of the Fenwick tree: once for every power L^k that a row reaches.
template <class M, class In>
struct scan_nodes {
  M m;
  In rows;
  index stride;
  state_of<M>* nodes;

  template <block Block>
  constexpr void operator()(Block& b) const {
    const index below = tile_elements * stride;
    each_node(b, rows, below * lanes, below, [&](auto& of, index row, index position) {
      const index full = (rows[row].size() - 1) / tile_elements;  // tiles that another one follows
      if ((position * lanes + 1) * stride > full) return;
      const index end = (position * lanes + of.rank() + 1) * stride;
      const index place = first_total(rows, row) + end - 1;
      const bool is_present = end <= full;
      state_of<M> s = is_present ? nodes[place] : m.identity();
      s = of.join_places(m, s);
      if (is_present) nodes[place] = s;
    });
  }
};

/// Second pass: the answers. In an exclusive scan `preceding` takes what the next tile's first place is to hold.
template <scan_kind Kind, class M, class In, class Out>
struct scan_tiles {
  static constexpr int resident_blocks = 3;
  M m;
  In rows;
  Out answers;
  index shortest;
  const state_of<M>* nodes;
  state_of<M>* preceding;

  template <block Block>
  constexpr void operator()(Block& b) const {
    each_node(b, rows, tile_elements, shortest, [&](auto& of, index row, index position) {
      const auto source = rows[row];
      const index first = position * tile_elements;
      const int n = static_cast<int>(smaller(source.size() - first, tile_elements));
      const state_of<M> carry = position == 0 ? m.identity() : carry_into(m, nodes + first_total(rows, row), position);
      const state_of<M> last = scan_tile<M, Kind>(m, of, source, answers[row], first, n, [&](const state_of<M>& total) {
        const state_of<M> before = of.prefix_before(m, total, (n - 1) / of.steps + 1);
        return position == 0 ? before : of.rank() == 0 ? carry : m(carry, before);
      });
      if (Kind == scan_kind::exclusive && first + n < source.size() && of.rank() == block_threads - 1) {
        preceding[first_total(rows, row) + position + 1] = last;
      }
    });
  }
};

/// Writes the first place of every tile except a row's first, in an exclusive scan.
template <class M, class Out>
struct scan_first_places {
  M m;
  Out answers;
  const state_of<M>* preceding;

  template <block Block>
  constexpr void operator()(Block& b) const {
    const index slots = answers.slots(tile_elements, tile_elements);
    for (index slot = b.block() * block_threads + b.thread(); slot < slots; slot += b.blocks() * block_threads) {
      const auto [row, position] = answers.locate(slot, tile_elements, tile_elements);
      if (row < 0 || position == 0) continue;
      const auto out = answers[row];
      using place = place_of<std::remove_cvref_t<decltype(out)>>;
      out[position * tile_elements] = static_cast<place>(regroup::lower(m, preceding[slot]));
    }
  }
};

}  // namespace regroup::cuda
