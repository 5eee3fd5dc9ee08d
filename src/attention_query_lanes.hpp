// SPDX-License-Identifier: Apache-2.0
// Attention's tile where lanes are queries: S^T = K Q^T and O^T += V^T P^T, with K and V broadcast as they lie in
// memory. R rows by V packs of lanes stay in registers. A group of 16 lanes leaves out the keys that none of it sees, which
// trims the causal diagonal. Where a tile follows, values are fetched with the scores, and its keys with the values. Local to
// each instruction set's file. Level: block.
#pragma once

#include <algorithm>

#include "attention_products.hpp"
#include "rows_ahead.hpp"

namespace regroup::tiles {
namespace {

/// How many of `steps` follow each other before the next row is fetched.
template <class T>
index steps_a_row(const rows_ahead<T>& ahead, index steps) {
  return ahead.is_empty() ? steps : 8;
}

/// Rows of s, the keys [row, row + R), in V packs of lanes.
template <class Products, int R, int V>
inline void score_block(const tile<typename Products::T>& t, index row, index lane,
                        rows_ahead<typename Products::T>& ahead) {
  using Pack = typename Products::Pack;
  [&]<int... I>(std::integer_sequence<int, I...>) {
    const index lanes = t.queries, d = t.d;
    const auto* const* const k = t.k + row;
    const auto* q = t.q + lane;
    packs<Pack, R* V> acc = {};
    const index together = steps_a_row(ahead, d) * Products::at_once;
    for (index c = 0; c < d;) {
      ahead.fetch_row();
      for (const index end = std::min(c + together, d); c < end; c += Products::at_once, q += lanes) {
        ((acc[I] = Products::add(acc[I], Products::all(k[I / V] + c), Pack::load(q + I % V * Pack::width))), ...);
      }
    }
    auto* const s = t.s + row * lanes + lane;
    (Products::score(acc[I], t).store(s + I / V * lanes + I % V * Pack::width), ...);
  }
  (std::make_integer_sequence<int, R * V>{});
}

/// Rows of o, the columns [row, row + R) of v, in V packs of lanes, over the keys of the steps [from, to).
template <class Products, int R, int V, class Real>
inline void value_block(const tile<typename Products::T>& t, const Real* const* v, index row, index lane, index from,
                        index to, bool grows, rows_ahead<typename Products::T>& ahead) {
  using Pack = typename Products::Pack;
  [&]<int... I>(std::integer_sequence<int, I...>) {
    const index lanes = t.queries, step = Products::at_once * lanes;
    Real* const o = t.o + row * lanes + lane;
    packs<Pack, R* V> acc = {Pack::load(o + I / V * lanes + I % V * Pack::width)...};
    if (grows) ((acc[I] = Pack::product(acc[I], Pack::load(t.factor + lane + I % V * Pack::width))), ...);
    const Real* p = t.s + from * step + lane;
    const index together = steps_a_row(ahead, to - from);
    for (index j = from; j < to;) {
      ahead.fetch_row();
      for (const index end = std::min(j + together, to); j < end; ++j, p += step) {
        const Real* const a = v[j] + row;
        ((acc[I] = Products::add(acc[I], Products::all_of(a + I / V), Pack::load(p + I % V * Pack::width))), ...);
      }
    }
    (acc[I].store(o + I / V * lanes + I % V * Pack::width), ...);
  }
  (std::make_integer_sequence<int, R * V>{});
}

/// block(rows of a compile-time count, first row) over [from, to): R at a time, then what is left at once.
template <int R, class Block>
inline void in_blocks(index from, index to, const Block& block) {
  for (; from + R <= to; from += R) block(std::integral_constant<int, R>{}, from);
  [&]<int... I>(std::integer_sequence<int, I...>) {
    ((to - from == I + 1 ? block(std::integral_constant<int, I + 1>{}, from) : void()), ...);
  }
  (std::make_integer_sequence<int, R - 1>{});
}

/// Panels of FullR x FullV where all lanes see all keys; elsewhere GroupR x GroupV, for a group of lanes and its keys.
template <class Products, int FullR, int FullV, int GroupR, int GroupV>
struct with_query_lanes {
  using Pack = typename Products::Pack;
  using T = typename Products::T;
  using Real = typename Products::Real;

  [[gnu::flatten]] static void scores(const tile<T>& t) {
    rows_ahead<T> values({t.v, t.next_k == t.k ? 0 : t.n, t.dv});
    index lane = 0;
    for (; t.is_whole && lane + FullV * Pack::width <= t.queries; lane += FullV * Pack::width) {
      in_blocks<FullR>(0, t.n, [&]<int R>(std::integral_constant<int, R>, index row) {
        score_block<Products, R, FullV>(t, row, lane, values);
      });
    }
    for (; lane < t.queries; lane += GroupV * Pack::width) {
      in_blocks<GroupR>(
          t.group_first[lane / group_lanes], t.group_last[lane / group_lanes],
          [&]<int R>(std::integral_constant<int, R>, index row) { score_block<Products, R, GroupV>(t, row, lane, values); });
    }
  }

  [[gnu::flatten]] static void weights(const tile<T>& t) {
    for (index g = 0; g < t.queries / group_lanes; ++g) t.grows[g] = false;
    for (index lane = 0; lane < t.queries; lane += Pack::width) {
      const index g = lane / group_lanes;
      if (t.group_first[g] < t.group_last[g]) weigh(t, lane, t.group_first[g], t.group_last[g], t.grows[g]);
    }
  }

  [[gnu::flatten]] static void values(const tile<T>& t) {
    const Real* storage[static_cast<std::size_t>(tile_keys)];
    const Real* const* const v = Products::value_rows(t, storage);
    rows_ahead<T> keys({t.next_k, t.next_k == t.k ? 0 : tile_keys, t.d});
    const bool grows = std::any_of(t.grows, t.grows + t.queries / group_lanes, [](bool g) { return g; });
    index lane = 0;
    for (; t.is_whole && lane + FullV * Pack::width <= t.queries; lane += FullV * Pack::width) {
      in_blocks<FullR>(0, t.dv, [&]<int R>(std::integral_constant<int, R>, index row) {
        value_block<Products, R, FullV>(t, v, row, lane, 0, steps(t.n), grows, keys);
      });
    }
    for (; lane < t.queries; lane += GroupV * Pack::width) {
      const index g = lane / group_lanes;
      if (t.group_first[g] >= t.group_last[g]) continue;
      in_blocks<GroupR>(0, t.dv, [&]<int R>(std::integral_constant<int, R>, index row) {
        value_block<Products, R, GroupV>(t, v, row, lane, t.group_first[g] / Products::at_once, steps(t.group_last[g]),
                                         t.grows[g], keys);
      });
    }
  }

  [[gnu::flatten]] static void transpose(const matrices<Real>& x) {
    constexpr int w = Pack::width;
    const index rows = x.rows / w * w, columns = x.columns / w * w;
    for (index r = 0; r < rows; r += w) {
      for (index c = 0; c < columns; c += w) {
        packs<Pack, w> block;
        unrolled<w>([&](int i) { block[i] = Pack::load(x.from + (r + i) * x.from_step + c); });
        tiles::transpose(block);
        unrolled<w>([&](int i) { block[i].store(x.to + (c + i) * x.to_step + r); });
      }
    }
    for (index r = 0; r < x.rows; ++r) {
      for (index c = r < rows ? columns : 0; c < x.columns; ++c) x.to[c * x.to_step + r] = x.from[r * x.from_step + c];
    }
  }

 private:
  static constexpr index steps(index keys) { return (keys + Products::at_once - 1) / Products::at_once; }

  /// One pack of lanes over the keys [from, to).
  static void weigh(const tile<T>& t, index lane, index from, index to, bool& grows) {
    using vector = typename Pack::vector;
    const index lanes = t.queries;
    Real* const s = t.s + lane;
    if (!t.is_whole) hide(t, lane, from, to);
    // Those that share a step with keys that are seen.
    const Pack hidden = Pack::all(-math::detail::infinity<Real>);
    if (from % Products::at_once != 0) hidden.store(s + --from * lanes);
    if (to % Products::at_once != 0) hidden.store(s + to++ * lanes);
    const Pack before = Pack::load(t.m + lane);
    Pack top = before, other = before;
    index j = from;
    for (; j + 2 <= to; j += 2) {
      top = Pack::larger(Pack::load(s + j * lanes), top);
      other = Pack::larger(Pack::load(s + (j + 1) * lanes), other);
    }
    if (j < to) top = Pack::larger(Pack::load(s + j * lanes), top);
    top = Pack::larger(other, top);
    Pack l = Pack::load(t.l + lane);
    if (grow(t.m + lane, top, l, t.factor + lane)) grows = true;
    const auto sweep = [&]<bool IsFinite>(std::bool_constant<IsFinite>) {
      constexpr int n = Products::at_once;
      in_blocks<4 / n>(from / n, to / n, [&]<int R>(std::integral_constant<int, R>, index step) {
        constexpr int keys = R * n;
        Real* const first = s + step * n * lanes;
        packs<Pack, keys> w;
        unrolled<keys>([&](int i) { w[i] = Pack::load(first + i * lanes); });
        tiles::weigh<IsFinite, Pack, keys>(w, top);
        Products::template keep<keys>(w, first, lanes, l);
      });
    };
    if (Pack::any(top.x - top.x != vector{})) {
      sweep(std::false_type{});
    } else {
      sweep(std::true_type{});
    }
    l.store(t.l + lane);
  }

  static void hide(const tile<T>& t, index lane, index from, index to) {
    using integers = typename Pack::integers;
    integers first{}, last{};
    for (int i = 0; i < Pack::width; ++i) {
      first[i] = t.first[lane + i];
      last[i] = t.last[lane + i];
    }
    for (index j = from; j < to; ++j) {
      Real* const s = t.s + j * t.queries + lane;
      const auto key = static_cast<typename Pack::word>(j) - integers{};
      const auto seen = (key >= first) & (key < last);
      Pack{seen ? Pack::load(s).x : Pack::all(-math::detail::infinity<Real>).x}.store(s);
    }
  }
};

}  // namespace
}  // namespace regroup::tiles
