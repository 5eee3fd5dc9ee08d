// SPDX-License-Identifier: Apache-2.0
// The prefixes of many rows across a vector (host/abreast.hpp), tile by tile, in the order of host/prefixes.hpp and with
// its bits. Level: lane. Law: associativity.
#pragma once

#include <algorithm>
#include <vector>

#include "regroup/host/abreast.hpp"

namespace regroup::host {

// As in host/lanes.hpp.
#if defined(__clang__)
#pragma clang attribute push([[gnu::always_inline]], apply_to = function)
#pragma clang attribute push([[gnu::flatten]], apply_to = function)
#endif

/// Of n >= 1 elements of every row, element i of row k being at(i, k): within[i] = the fold of its piece up to i, and
/// total[j] = P[j].
template <class M, class At>
constexpr void prefixes_abreast(const M& m, index n, const At& at, pack<state_of<M>>* within, pack<state_of<M>>* total) {
  const auto combine = [&](pack<state_of<M>>& to, const pack<state_of<M>>& a, const pack<state_of<M>>& b) {
    for (index k = 0; k < abreast; ++k) to.set(k, m(a.get(k), b.get(k)));
  };
  const index pieces = pieces_of(n);
  for (index j = 0; j < pieces; ++j) {
    const index first = j * piece_elements, last = std::min(n, first + piece_elements) - 1;
    for (index k = 0; k < abreast; ++k) within[first].set(k, regroup::lift(m, at(first, k)));
    for (index i = first + 1; i <= last; ++i) {
      for (index k = 0; k < abreast; ++k) within[i].set(k, m(within[i - 1].get(k), regroup::lift(m, at(i, k))));
    }
    total[j] = within[last];
  }
  for (index d = 1; d < pieces; d *= 2) {
    for (index j = pieces - 1; j >= d; --j) combine(total[j], total[j - d], total[j]);
  }
}

/// within[i] = the prefix up to i: what precedes a piece, and what is within it. `carry`: of the tiles before, if any.
template <class M>
constexpr void join_abreast(const M& m, index n, const pack<state_of<M>>* carry, const pack<state_of<M>>* total,
                            pack<state_of<M>>* within) {
  for (index j = 0; j < pieces_of(n); ++j) {
    pack<state_of<M>> before;
    for (index k = 0; k < abreast; ++k) {
      if (j == 0) {
        before.set(k, carry != nullptr ? carry->get(k) : m.identity());
      } else {
        before.set(k, carry != nullptr ? m(carry->get(k), total[j - 1].get(k)) : total[j - 1].get(k));
      }
    }
    for (index i = j * piece_elements; i < std::min(n, (j + 1) * piece_elements); ++i) {
      for (index k = 0; k < abreast; ++k) within[i].set(k, m(before.get(k), within[i].get(k)));
    }
  }
}

#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute pop
#endif

/// Scans rows by groups. A tile is read before any of its answers is put, so the answers may go over the source.
template <class M, class X, class Place, class Answer>
class group_scan {
  using state = state_of<M>;

 public:
  /// The longest row worth turning when its elements stand side by side.
  static constexpr index longest = 4 * lanes;

  group_scan(const M& m, scan_kind kind, const Answer& answer)
      : m_(m), is_exclusive_(kind == scan_kind::exclusive), answer_(answer) {}

  /// The rows [first, last).
  template <gridded Batch, gridded Out>
  void operator()(const Batch& b, const Out& out, index first, index last) {
    while (first < last) {
      grid<const X> from = b.grid_at(first, std::min(last - first, abreast));
      const grid<Place> to = out.grid_at(first, from.rows);
      from.rows = to.rows;
      scan(from, to);
      first += to.rows;
    }
  }

 private:
  void scan(const grid<const X>& g, const grid<Place>& out) {
    std::vector<forest<state>> totals(g.length > tile_elements ? abreast : 0);
    pack<state> carry, preceding;
    for (index k = 0; k < abreast; ++k) preceding.set(k, m_.identity());
    for (index t = 0; t < tiles_of(g.length); ++t) {
      const index n = std::min(tile_elements, g.length - t * tile_elements);
      for (index k = 0; t > 0 && k < abreast; ++k) {
        forest<state>& of_row = totals[static_cast<std::size_t>(k)];
        of_row.push(m_, {0, t - 1, total_.of(lanes)[lanes - 1].get(k)});
        carry.set(k, *of_row.value(m_));
      }
      scan_tile(g.part(t * tile_elements, n), out.part(t * tile_elements, n), t > 0 ? &carry : nullptr, preceding);
    }
  }
  void scan_tile(const grid<const X>& g, const grid<Place>& out, const pack<state>* carry, pack<state>& preceding) {
    const index n = g.length;
    const grid<const X> from = beside(g, elements_);
    const bool puts_packs = out.pitch == 1 && out.rows == abreast;
    Place* const to = puts_packs ? out.first : places_.of(n * abreast);
    const index to_step = puts_packs ? out.stride : abreast;
    pack<state>* const total = total_.of(lanes);
    pack<state>* const within = within_.of(n);
    const auto at = [from](index i, index k) -> decltype(auto) { return widen(from.first[i * from.stride + k]); };
    dispatch([&] {
      prefixes_abreast(m_, n, at, within, total);
      join_abreast(m_, n, carry, total, within);
      const auto answer = [&](index i, const pack<state>& states) {
        const pack<state> s = states;  // which no answer overwrites
        for (index k = 0; k < abreast; ++k) to[i * to_step + k] = answer_(s.get(k));
      };
      if (is_exclusive_) answer(0, preceding);
      const index shift = is_exclusive_ ? 1 : 0;
      for (index i = shift; i < n; ++i) answer(i, within[i - shift]);
    });
    preceding = within[n - 1];
    if (!puts_packs) unpack_rows(to, out);
  }

  const M& m_;
  bool is_exclusive_;
  const Answer& answer_;
  scratch<pack<state>> total_;   // P
  scratch<pack<state>> within_;  // the prefixes within pieces, then all
  scratch<X> elements_;          // side by side
  scratch<Place> places_;
};

/// Whether rows of a batch may be scanned abreast.
template <class M, batch Batch, batch Out>
constexpr bool scans_abreast() {
  using place = place_of<std::remove_cvref_t<decltype(std::declval<const Out&>()[0])>>;
  return goes_abreast<M, Batch>() && !has_members<M> && gridded<Out> && is_movable<place>;
}

}  // namespace regroup::host
