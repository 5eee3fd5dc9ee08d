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

/// Packs of a group that the prefixes of a tile need: the fold of a piece so far, what precedes the piece, P[j], and of every
/// d = 1, 2, ... the last d of what P[j] was before it was joined with P[j - d].
inline constexpr index packs_of_prefixes = 3 + lanes - 1;

/// The prefixes of a tile of columns, whole groups of them that stand side by side, row by row: put(i, p, states) of row i of
/// group p, which may go over the elements. `carry`: of the tiles before, if any; `room` ends as the tile's totals.
template <class M, class X, class Put>
constexpr void prefixes_of_columns(const M& m, const grid<const X>& g, const pack<state_of<M>>* carry,
                                   pack<state_of<M>>* room, const Put& put) {
  using states = pack<state_of<M>>;
  const index groups = g.rows / abreast, pieces = pieces_of(g.length);
  states* const total = room;  // P
  states* const before = room + groups;
  states* const within = room + 2 * groups;
  const auto each = [groups](states* to, const auto& state_at) {
    for (index p = 0; p < groups; ++p) {
      states s;
      for (index k = 0; k < abreast; ++k) s.set(k, state_at(p, k));
      to[p] = s;
    }
  };
  for (index j = 0; j < pieces; ++j) {
    if (carry != nullptr) {
      each(before, [&](index p, index k) { return j == 0 ? carry[p].get(k) : m(carry[p].get(k), total[p].get(k)); });
    } else {
      each(before, [&](index p, index k) { return j == 0 ? m.identity() : total[p].get(k); });
    }
    const index first = j * piece_elements, last = std::min(g.length, first + piece_elements);
    const auto row = [&](index i, const auto begins) {
      for (index p = 0; p < groups; ++p) {
        const X* const x = g.first + i * g.stride + p * abreast;
        states s, y;
        for (index k = 0; k < abreast; ++k) {
          s.set(k, begins ? regroup::lift(m, widen(x[k])) : regroup::append(m, i - first, within[p].get(k), widen(x[k])));
        }
        within[p] = s;
        for (index k = 0; k < abreast; ++k) y.set(k, m(before[p].get(k), s.get(k)));
        put(i, p, y);
      }
    };
    row(first, std::true_type{});
    for (index i = first + 1; i < last; ++i) row(i, std::false_type{});
    states* of_level = room + 3 * groups;
    for (index p = 0; p < groups; ++p) total[p] = within[p];
    for (index d = 1; d < pieces; of_level += d * groups, d *= 2) {
      states* const before_d = of_level + j % d * groups;
      for (index p = 0; p < groups; ++p) {
        const states right = total[p];
        if (j >= d) {
          const states left = before_d[p];
          for (index k = 0; k < abreast; ++k) total[p].set(k, m(left.get(k), right.get(k)));
        }
        before_d[p] = right;
      }
    }
  }
}

/// Scans rows by groups. A row of columns is read before any of its answers is put, so the answers may go over the source.
template <class M, class X, class Place, class Answer>
class group_scan {
  using state = state_of<M>;

 public:
  /// The longest row worth turning when its elements stand side by side.
  static constexpr index longest = 4 * lanes;
  /// Columns that are scanned together, at most: as many as 1 MiB holds the packs of, by measurement of sums (Zen 2: 256 to
  /// 2048 columns).
  static constexpr index columns_together = (index{1} << 20) / (packs_of_prefixes * index{sizeof(state)}) / abreast * abreast;

  group_scan(const M& m, scan_kind kind, const Answer& answer)
      : m_(m), is_exclusive_(kind == scan_kind::exclusive), answer_(answer) {}

  /// The rows [first, last).
  template <gridded Batch, gridded Out>
  void operator()(const Batch& b, const Out& out, index first, index last) {
    while (first < last) {
      grid<const X> from = b.grid_at(first, std::min(last - first, columns_together));
      grid<Place> to = out.grid_at(first, from.rows);
      const bool are_columns = from.pitch == 1 && to.pitch == 1 && to.rows >= abreast;
      from.rows = to.rows = are_columns ? to.rows / abreast * abreast : std::min(to.rows, abreast);
      scan(from, to);
      first += to.rows;
    }
  }

 private:
  /// Rows of a group, or groups of columns side by side.
  void scan(const grid<const X>& g, const grid<Place>& out) {
    const index groups = (g.rows + abreast - 1) / abreast, packs = groups * abreast;
    std::vector<forest<state>> totals(static_cast<std::size_t>(g.length > tile_elements ? packs : 0));
    pack<state>* const room = room_.of(groups * packs_of_prefixes);
    pack<state>* const carry = carry_.of(groups);
    pack<state>* const preceding = preceding_.of(groups);
    for (index c = 0; c < packs; ++c) preceding[c / abreast].set(c % abreast, m_.identity());
    for (index t = 0; t < tiles_of(g.length); ++t) {
      const index n = std::min(tile_elements, g.length - t * tile_elements);
      for (index c = 0; t > 0 && c < packs; ++c) {
        forest<state>& of_row = totals[static_cast<std::size_t>(c)];
        of_row.push(m_, {0, t - 1, room[c / abreast].get(c % abreast)});
        carry[c / abreast].set(c % abreast, *of_row.value(m_));
      }
      scan_tile(g.part(t * tile_elements, n), out.part(t * tile_elements, n), t > 0 ? carry : nullptr, room, preceding);
    }
  }
  void scan_tile(const grid<const X>& g, const grid<Place>& out, const pack<state>* carry, pack<state>* room,
                 pack<state>* preceding) {
    const bool are_columns = g.pitch == 1 && g.rows % abreast == 0;
    const grid<const X> from = are_columns ? g : beside(g, elements_);
    const bool puts_packs = out.pitch == 1 && out.rows % abreast == 0;
    Place* const to = puts_packs ? out.first : places_.of(g.length * abreast);
    const index to_step = puts_packs ? out.stride : abreast;
    dispatch([&] {
      if (is_exclusive_) {
        prefixes_of_columns(m_, from, carry, room, [&](index i, index p, const pack<state>& states) {
          const pack<state> s = preceding[p];
          preceding[p] = states;
          Place* const row = to + i * to_step + p * abreast;
          for (index k = 0; k < abreast; ++k) row[k] = answer_(s.get(k));
        });
      } else {
        prefixes_of_columns(m_, from, carry, room, [&](index i, index p, const pack<state>& states) {
          Place* const row = to + i * to_step + p * abreast;
          for (index k = 0; k < abreast; ++k) row[k] = answer_(states.get(k));
        });
      }
    });
    if (!puts_packs) unpack_rows(to, out);
  }

  const M& m_;
  bool is_exclusive_;
  const Answer& answer_;
  scratch<pack<state>> room_, carry_, preceding_;
  scratch<X> elements_;  // side by side
  scratch<Place> places_;
};

#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute pop
#endif

/// Whether rows of a batch may be scanned abreast.
template <class M, batch Batch, batch Out>
constexpr bool scans_abreast() {
  using place = place_of<std::remove_cvref_t<decltype(std::declval<const Out&>()[0])>>;
  return goes_abreast<M, Batch>() && !has_members<M> && gridded<Out> && is_movable<place>;
}

}  // namespace regroup::host
