// SPDX-License-Identifier: Apache-2.0
// The prefixes of many rows across a vector (host/abreast.hpp), tile by tile, in the order and with the bits of
// host/prefixes.hpp. Level: lane. Law: associativity.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
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
/// The number of packs between two steps of memory traffic.
inline constexpr index packs_at_once = 8;
/// How many rows may go together, so that packs are loaded and stored once for all.
inline constexpr index rows_at_once = 4;

/// The prefixes of a tile of columns that stand side by side, row by row: put(y, p, states) of group p of row i, whose answers
/// begin at answers_of(i), which may be where its elements do; those of rows that go together are `step` apart. `carry`: of the
/// tiles before, if any; `room` ends as the tile's totals. `aside`, where answers overwrite elements: room for those of a group
/// in `rows_at_once` rows, which go together if they `go_together`.
template <class M, class X, class AnswersOf, class Place, class Put, class Meanwhile>
constexpr void prefixes_of_columns(const M& m, const grid<const X>& g, const pack<state_of<M>>* carry,
                                   pack<state_of<M>>* room, const AnswersOf& answers_of, index step, Place* aside,
                                   const Put& put, const Meanwhile& meanwhile, bool go_together) {
  using states = pack<state_of<M>>;
  const index groups = groups_of(g.rows), whole = g.rows / abreast, rest = g.rows % abreast;
  states* const total = room;  // P
  states* const before = room + groups;
  states* const within = room + 2 * groups;
  for (index p = 0; p < groups; ++p) {
    for (index k = 0; k < abreast; ++k) before[p].set(k, carry != nullptr ? carry[p].get(k) : m.identity());
  }
  const auto join = [&](const states& left, const states& right, states& to) {
    states both;
    for (index k = 0; k < abreast; ++k) both.set(k, m(left.get(k), right.get(k)));
    to = both;
  };
  for (index j = 0, first = 0; first < g.length; ++j, first += piece_elements) {
    const auto rows = [&]<index Count>(std::integral_constant<index, Count>, index i, const auto begins) {
      constexpr auto count_of = static_cast<std::size_t>(Count);
      const auto each = [](const auto& body) {
        [&]<index... R>(std::integer_sequence<index, R...>) {
          (body(std::integral_constant<index, R>{}), ...);
        }(std::make_integer_sequence<index, Count>{});
      };
      const X* const x = g.first + i * g.stride;
      Place* const y = answers_of(i);
      const auto group = [&](index p, index column, const auto& answers) {
        states joined[count_of];
        states s;
        each([&](const auto r) {
          const X* const at = x + r * g.stride + column;
          for (index k = 0; k < abreast; ++k) {
            const auto& e = regroup::widen(at[k]);
            const auto& before_r = r == 0 ? within[p] : s;
            s.set(k, begins && r == 0 ? regroup::lift(m, e) : regroup::append(m, i + r - first, before_r.get(k), e));
          }
          for (index k = 0; k < abreast; ++k) joined[r].set(k, m(before[p].get(k), s.get(k)));
        });
        within[p] = s;
        each([&](const auto r) { put(answers(r), p, joined[r]); });
      };
      // A last group shares columns with the one before, so it goes first, and where these overwrite elements is written last.
      for (index p = whole; p < groups; ++p) {  // one at most, in terms of p since g++ makes packs of no other loop
        const index at = (p - whole) * abreast;
        if (aside != nullptr) {
          group(p, g.rows - abreast + at, [&](index r) { return aside + r * abreast + at; });
        } else {
          group(p, g.rows - abreast + at, [&](index r) { return y + r * step + g.rows - abreast + at; });
        }
      }
      constexpr index groups_at_once = packs_at_once / Count;
      for (index begin = 0; begin < whole; begin += groups_at_once) {
        for (index p = begin; p < std::min(begin + groups_at_once, whole); ++p) {
          group(p, p * abreast, [&](index r) { return y + r * step + p * abreast; });
        }
        meanwhile();
      }
      if (rest > 0) {
        if (aside != nullptr) {
          each([&](const auto r) {
            std::memcpy(y + r * step + g.rows - abreast, aside + r * abreast, sizeof(Place) * std::size_t{abreast});
          });
        }
        meanwhile();
      }
    };
    constexpr std::integral_constant<index, 1> one;
    constexpr std::integral_constant<index, rows_at_once> some;
    const index end = std::min(g.length, first + piece_elements);
    index i = first;
    if (go_together && i + some <= end) {
      rows(some, i, std::true_type{});
      for (i += some; i + some <= end; i += some) rows(some, i, std::false_type{});
    } else {
      rows(one, i++, std::true_type{});
    }
    for (; i < end; ++i) rows(one, i, std::false_type{});

    for (index p = 0; p < groups; ++p) total[p] = within[p];
    for (index d = 1; d < pieces_of(g.length); d *= 2) {
      states* const before_d = room + (2 + d + (j & (d - 1))) * groups;  // behind those of 1 + 2 + ... + d/2
      for (index p = 0; p < groups; ++p) {
        const states right = total[p];
        if (j >= d) join(before_d[p], right, total[p]);
        before_d[p] = right;
      }
    }
    for (index p = 0; p < groups; ++p) {
      if (carry != nullptr) {
        join(carry[p], total[p], before[p]);
      } else {
        before[p] = total[p];
      }
    }
  }
}

/// Scans rows by groups. The elements of a group, those of the last one first, are read before any of its answers is written,
/// so the answers may overwrite the source. Non-temporal stores write a block of rows while the next is computed.
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
    const grid<const X> from = are_columns ? g : host::beside(g, elements_);
    const bool puts_packs = out.pitch == 1 && out.rows >= abreast;
    Place* const to = puts_packs ? out.first : places_.of(g.length * abreast);
    const index to_step = puts_packs ? out.stride : abreast;
    const index row_bytes = g.rows * index{sizeof(Place)};
    const bool is_wide = row_bytes >= shortest_past_caches;
    const bool is_packed = row_bytes >= shortest_kept && g.stride == g.rows && out.stride == out.rows;
    const bool keeps_rows = past_caches_ && puts_packs && are_columns && (is_wide || is_packed);
    const auto block = static_cast<index>(is_wide ? 1 : std::bit_ceil(static_cast<std::uint64_t>(bytes_kept / row_bytes)));
    const index width = is_wide ? groups_of(g.rows) * abreast : g.rows;
    Place* const kept = keeps_rows ? kept_rows(2 * block * width) : nullptr;
    const index step = keeps_rows ? width : to_step;
    const bool in_place = static_cast<const void*>(to) == static_cast<const void*>(from.first);
    alignas(std::max<std::size_t>(64, alignof(Place))) Place room_aside[rows_at_once * abreast];
    Place* const aside = keeps_rows || !in_place ? nullptr : room_aside;
    dispatch([&] {
      traffic memory;
      const auto write_rows = [&](index first, index n) {
        memory.write(kept + (first & (2 * block - 1)) * width, to + first * to_step, static_cast<std::size_t>(n * row_bytes));
      };
      const auto answers_of = [&](index i) {
        if (!keeps_rows) return to + i * to_step;
        if ((i & (block - 1)) == 0) {
          if (i > 0) write_rows(i - block, block);
          const index ahead = std::max(fewest_ahead, block);
          const std::size_t bytes = static_cast<std::size_t>(block * g.rows) * sizeof(X);
          memory.fetch(from.first + (i + ahead) * from.stride, bytes);
          find_pages(from.first + (i + 2 * ahead) * from.stride, bytes);
        }
        return kept + (i & (2 * block - 1)) * width;
      };
      const auto put = [&](Place* y, index, const pack<state>& states) {
        for (index k = 0; k < abreast; ++k) y[k] = answer_(states.get(k));
      };
      const auto meanwhile = [&] { memory.step<packs_at_once * lines_of_group>(copy_lines_past_caches); };
      if (is_exclusive_) {
        prefixes_of_columns(
            m_, from, carry, room, answers_of, step, aside,
            [&](Place* y, index p, const pack<state>& states) {
              const pack<state> s = preceding[p];
              preceding[p] = states;
              put(y, p, s);
            },
            meanwhile, go_together && !is_wide);
      } else {
        prefixes_of_columns(m_, from, carry, room, answers_of, step, aside, put, meanwhile, go_together && !is_wide);
      }
      if (keeps_rows) {
        const index rest = ((g.length - 1) & (block - 1)) + 1;
        write_rows(g.length - rest, rest);
      }
      memory.finish();
    });
    if (!puts_packs) host::unpack_rows(to, out);
  }

  /// Room for so many answers, which begin a line if they can.
  Place* kept_rows(index answers) {
    constexpr index places_of_line = (index{cache_line} + index{sizeof(Place)} - 1) / index{sizeof(Place)};
    Place* const room = places_.of(answers + places_of_line);
    return room + bytes_to_line(room) / sizeof(Place);
  }

  /// Whether rows that are not wide go together. (clang makes no packs of comparisons in four rows.)
#if defined(__clang__)
  static constexpr bool go_together = !is_exact<M>;
#else
  static constexpr bool go_together = true;
#endif
  /// The shortest part of a row worth non-temporal stores, in bytes: eight lines, some of which neighbouring rows may share.
  static constexpr index shortest_past_caches = 8 * index{cache_line};
  /// Where rows follow one another, the shortest that is written so, in blocks of so many bytes, or up to twice (Zen 4).
  static constexpr index shortest_kept = 2 * index{cache_line}, bytes_kept = 4096;
  /// How many rows ahead lines are prefetched at least, and the cache lines of a group's elements or answers.
  static constexpr index fewest_ahead = 8;
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
