// SPDX-License-Identifier: Apache-2.0
// The prefixes of many rows across a vector (host/abreast.hpp), tile by tile, in the order and with the bits of
// host/prefixes.hpp. Level: lane. Law: associativity.
#pragma once

#include <algorithm>
#include <type_traits>
#include <vector>

#include "regroup/host/abreast.hpp"
#include "regroup/memory.hpp"

namespace regroup::host {

// As in host/lanes.hpp.
#if defined(__clang__)
#pragma clang attribute push([[gnu::always_inline]], apply_to = function)
#pragma clang attribute push([[gnu::flatten]], apply_to = function)
#endif

/// Packs of a group that the prefixes of a tile need: the fold of a piece so far, what precedes the piece, P[j], and of every
/// d = 1, 2, ... the last d of what P[j] was before it was joined with P[j - d].
inline constexpr index packs_of_prefixes = 3 + lanes - 1;
/// The number of groups between two steps of memory traffic.
inline constexpr index groups_at_once = 8;

/// The prefixes of a tile of columns that stand side by side, row by row: put(y, p, states) of group p of row i, whose answers
/// begin at answers_of(i), which may be where its elements do. `carry`: of the tiles before, if any; `room` ends as the tile's
/// totals.
template <class M, class X, class AnswersOf, class Put, class Meanwhile>
constexpr void prefixes_of_columns(const M& m, const grid<const X>& g, const pack<state_of<M>>* carry,
                                   pack<state_of<M>>* room, const AnswersOf& answers_of, const Put& put,
                                   const Meanwhile& meanwhile) {
  using states = pack<state_of<M>>;
  const index groups = groups_of(g.rows), whole = g.rows / abreast, rest = g.rows % abreast;
  states* const total = room;  // P
  states* const before = room + groups;
  states* const within = room + 2 * groups;
  for (index p = 0; p < groups; ++p) {
    for (index k = 0; k < abreast; ++k) before[p].set(k, carry != nullptr ? carry[p].get(k) : m.identity());
  }
  for (index j = 0, first = 0; first < g.length; ++j, first += piece_elements) {
    const auto row = [&](index i, const auto begins) {
      const X* const x = g.first + i * g.stride;
      auto* const y = answers_of(i);
      const auto group = [&](index p, const X* elements, auto* answers) {
        states s, joined;
        for (index k = 0; k < abreast; ++k) {
          const auto& e = regroup::widen(elements[k]);
          s.set(k, begins ? regroup::lift(m, e) : regroup::append(m, i - first, within[p].get(k), e));
        }
        within[p] = s;
        for (index k = 0; k < abreast; ++k) joined.set(k, m(before[p].get(k), s.get(k)));
        put(answers, p, joined);
      };
      // A last group shares columns with the one before, so it goes first and its answers are written last.
      alignas(64) std::remove_pointer_t<decltype(y)> answers[abreast];
      for (index p = whole; p < groups; ++p) {  // one at most, in terms of p since g++ makes packs of no other loop
        const index at = (p - whole) * abreast;
        group(p, x + g.rows - abreast + at, answers + at);
      }
      for (index begin = 0; begin < whole; begin += groups_at_once) {
        for (index p = begin; p < std::min(begin + groups_at_once, whole); ++p) group(p, x + p * abreast, y + p * abreast);
        meanwhile();
      }
      if (rest > 0) std::copy_n(answers, abreast, y + g.rows - abreast);
    };
    row(first, std::true_type{});
    for (index i = first + 1; i < std::min(g.length, first + piece_elements); ++i) row(i, std::false_type{});
    for (index p = 0; p < groups; ++p) {
      states sum = within[p];
      for (index d = 1; d < pieces_of(g.length); d *= 2) {
        states& before_d = room[(2 + d + j % d) * groups + p];  // behind those of 1 + 2 + ... + d/2
        const states right = sum;
        if (j >= d) {
          const states left = before_d;
          for (index k = 0; k < abreast; ++k) sum.set(k, m(left.get(k), right.get(k)));
        }
        before_d = right;
      }
      total[p] = sum;
      if (carry != nullptr) {
        const states left = carry[p];
        for (index k = 0; k < abreast; ++k) sum.set(k, m(left.get(k), sum.get(k)));
      }
      before[p] = sum;
    }
  }
}

/// Scans rows by groups. A row across columns is read before any of its answers is written, so the answers may overwrite the
/// source. Non-temporal stores write it while the next row is computed.
template <class M, class X, class Place, class Answer>
class group_scan {
  using state = state_of<M>;

 public:
  /// The longest contiguous row worth transposing.
  static constexpr index longest = 4 * lanes;
  /// The most columns that are scanned together: those whose packs fit 4 KiB, so that what a row needs fits the first-level
  /// cache and memory is read a page at a time.
  static constexpr index columns_together = 4096 / index{sizeof(pack<state>)} * abreast;

  group_scan(const M& m, scan_kind kind, const Answer& answer, bool past_caches)
      : m_(m), is_exclusive_(kind == scan_kind::exclusive), answer_(answer), past_caches_(past_caches) {}
  group_scan(const group_scan&) = delete;
  group_scan& operator=(const group_scan&) = delete;
  ~group_scan() {
    if (past_caches_) finish_past_caches();
  }

  /// The rows [first, last).
  template <gridded Batch, gridded Out>
  void operator()(const Batch& b, const Out& out, index first, index last) {
    while (first < last) {
      grid<const X> from = b.grid_at(first, std::min(last - first, equal_share(last - first, 1, columns_together)));
      grid<Place> to = out.grid_at(first, from.rows);
      if (from.pitch != 1 || to.pitch != 1) to.rows = std::min(to.rows, abreast);
      from.rows = to.rows;
      scan(from, to);
      first += to.rows;
    }
  }

 private:
  /// Rows of a group, or groups of columns side by side.
  void scan(const grid<const X>& g, const grid<Place>& out) {
    const index groups = groups_of(g.rows), packs = groups * abreast;
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
    const bool are_columns = g.pitch == 1 && g.rows >= abreast;
    const grid<const X> from = are_columns ? g : beside(g, elements_);
    const bool puts_packs = out.pitch == 1 && out.rows >= abreast;
    Place* const to = puts_packs ? out.first : places_.of(g.length * abreast);
    const index to_step = puts_packs ? out.stride : abreast;
    const bool keeps_rows =
        past_caches_ && puts_packs && are_columns && g.rows * index{sizeof(Place)} >= shortest_past_caches;
    const index width = groups_of(g.rows) * abreast;
    Place* const kept = keeps_rows ? two_rows(width) : nullptr;
    dispatch([&] {
      traffic memory;
      const auto write_row = [&](index i) {
        memory.write(kept + i % 2 * width, to + i * to_step, static_cast<std::size_t>(g.rows) * sizeof(Place));
      };
      const auto answers_of = [&](index i) {
        if (!keeps_rows) return to + i * to_step;
        if (i > 0) write_row(i - 1);
        const std::size_t bytes = static_cast<std::size_t>(g.rows) * sizeof(X);
        memory.fetch(from.first + (i + rows_ahead) * from.stride, bytes);
        find_pages(from.first + (i + 2 * rows_ahead) * from.stride, bytes);
        return kept + i % 2 * width;
      };
      const auto put = [&](Place* y, index, const pack<state>& states) {
        for (index k = 0; k < abreast; ++k) y[k] = answer_(states.get(k));
      };
      const auto meanwhile = [&] { memory.step<groups_at_once * lines_of_group>(copy_lines_past_caches); };
      if (is_exclusive_) {
        prefixes_of_columns(
            m_, from, carry, room, answers_of,
            [&](Place* y, index p, const pack<state>& states) {
              const pack<state> s = preceding[p];
              preceding[p] = states;
              put(y, p, s);
            },
            meanwhile);
      } else {
        prefixes_of_columns(m_, from, carry, room, answers_of, put, meanwhile);
      }
      if (keeps_rows) write_row(g.length - 1);
      memory.finish();
    });
    if (!puts_packs) unpack_rows(to, out);
  }

  /// Room for the answers of a row, and of the one before, which begin lines if they can.
  Place* two_rows(index width) {
    constexpr index places_of_line = (index{cache_line} + index{sizeof(Place)} - 1) / index{sizeof(Place)};
    Place* const room = places_.of(2 * width + places_of_line);
    return room + bytes_to_line(room) / sizeof(Place);
  }

  /// The shortest part of a row worth non-temporal stores, in bytes: eight lines, some of which neighbouring rows may share.
  static constexpr index shortest_past_caches = 8 * index{cache_line};
  /// How many rows ahead lines are prefetched, and the cache lines of a group's elements or answers.
  static constexpr index rows_ahead = 8;
  static constexpr std::size_t lines_of_group =
      std::max<std::size_t>(abreast * std::max(sizeof(X), sizeof(Place)) / cache_line, 1);

  const M& m_;
  bool is_exclusive_;
  const Answer& answer_;
  bool past_caches_;
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
  using place = place_of<source_in<Out>>;
  return goes_abreast<M, Batch>() && !has_members<M> && gridded<Out> && is_movable<place>;
}

}  // namespace regroup::host
