// SPDX-License-Identifier: Apache-2.0
// Attention's tile where lanes are queries: S^T = K Q^T and O^T += V^T P^T, with K and V broadcast as they lie in
// memory. R rows by V packs of lanes stay in registers. A group of 16 lanes leaves out the keys that none of it sees, which
// trims the causal diagonal. Local to each instruction set's file. Level: block.
#pragma once

#include <algorithm>

#include "attention_products.hpp"
#include "attention_weights.hpp"
#include "rows_ahead.hpp"

namespace regroup::tiles {
namespace {

/// How a processor's registers and caches are used.
struct query_shape {
  int full_r, full_v;    // rows by packs of lanes that are computed at once where all lanes see all keys
  int group_r, group_v;  // the same elsewhere, for a group of lanes and its keys
  /// Lanes of a panel, as many as a block takes, or 0 for one panel of all lanes. Rows of 64 lanes are a power of two apart and
  /// compete for a few places of the first cache; rows of a panel are consecutive.
  int panel = 0;
  index first_cache = 0;  // in bytes; values of a tile that would fill it are added in halves, each for all panels
  bool fetches = true;    // where a tile follows, prefetches the values with the scores, and its keys with the values
};

/// How many of `steps` run before the next row is prefetched.
template <class T>
index steps_a_row(const rows_ahead<T>& ahead, index steps) {
  return ahead.is_empty() ? steps : 8;
}

/// Computes rows of s, for the keys [row, row + R), in V packs of lanes.
template <class Products, class Lanes, int R, int V>
inline void score_block(const tile<typename Products::T>& t, index row, index lane,
                        rows_ahead<typename Products::T>& ahead) {
  using Pack = typename Products::Pack;
  [&]<int... I>(std::integer_sequence<int, I...>) {
    const index lanes = Lanes::of(t), d = t.d;
    const auto* const* const k = t.k + row;
    const auto* q = t.q + Lanes::place(lane, d);
    packs<Pack, R* V> acc = {};
    const index together = steps_a_row(ahead, d) * Products::at_once;
    for (index c = 0; c < d;) {
      ahead.fetch_row();
      for (const index end = std::min(c + together, d); c < end; c += Products::at_once, q += lanes) {
        ((acc[I] = Products::add(acc[I], Products::all(k[I / V] + c), Pack::load(q + I % V * Pack::width))), ...);
      }
    }
    auto* const s = t.s + Lanes::place(lane, tile_keys) + row * lanes;
    (Products::score(acc[I], t).store(s + I / V * lanes + I % V * Pack::width), ...);
  }
  (std::make_integer_sequence<int, R * V>{});
}

/// Adds to rows of o, the columns [row, row + R) of v, in V packs of lanes, the keys of the steps [from, to).
template <class Products, class Lanes, int R, int V, class Real>
inline void value_block(const tile<typename Products::T>& t, const Real* const* v, index row, index lane, index from,
                        index to, bool grows, rows_ahead<typename Products::T>& ahead) {
  using Pack = typename Products::Pack;
  [&]<int... I>(std::integer_sequence<int, I...>) {
    const index lanes = Lanes::of(t), step = Products::at_once * lanes;
    Real* const o = t.o + Lanes::place(lane, t.dv) + row * lanes;
    packs<Pack, R* V> acc = {Pack::load(o + I / V * lanes + I % V * Pack::width)...};
    if (grows) ((acc[I] = Pack::product(acc[I], Pack::load(t.factor + lane + I % V * Pack::width))), ...);
    const Real* p = t.s + Lanes::place(lane, tile_keys) + from * step;
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

/// Calls block(a compile-time number of rows, first row) over [from, to), R rows at a time. Blocks of R - 1 are mixed in where
/// then no rows are left over, since a block of few rows has few chains, whose latency shows; else the rest is one block.
template <int R, class Block>
inline void in_blocks(index from, index to, const Block& block) {
  if constexpr (R > 2) {
    const index fewer = (R - (to - from) % R) % R * (R - 1);
    for (const index end = from + fewer; end <= to && from < end; from += R - 1) {
      block(std::integral_constant<int, R - 1>{}, from);
    }
  }
  for (; from + R <= to; from += R) block(std::integral_constant<int, R>{}, from);
  [&]<int... I>(std::integer_sequence<int, I...>) {
    ((to - from == I + 1 ? block(std::integral_constant<int, I + 1>{}, from) : void()), ...);
  }
  (std::make_integer_sequence<int, R <= 2 ? R - 1 : R - 2>{});
}

/// The distance from a row to the next, and where the rows of a lane begin, if a panel has `rows` rows.
template <index Panel>
struct lanes_in_panels {
  static constexpr index of(const auto& /*tile*/) { return Panel; }
  static constexpr index place(index lane, index rows) { return lane / Panel * Panel * rows + lane % Panel; }
};
template <>
struct lanes_in_panels<0> {
  static constexpr index of(const auto& tile) { return tile.queries; }
  static constexpr index place(index lane, index /*rows*/) { return lane; }
};

/// The three steps of `kernels`, with these products.
template <class Products, query_shape Shape>
struct with_query_lanes {
  using Pack = typename Products::Pack;
  using T = typename Products::T;
  using Real = typename Products::Real;
  using Lanes = lanes_in_panels<Shape.panel>;
  static constexpr index panel = Shape.panel;
  static constexpr int FullR = Shape.full_r, FullV = Shape.full_v, GroupR = Shape.group_r, GroupV = Shape.group_v;
  static_assert(panel == 0 || (panel == FullV * Pack::width && panel == GroupV * Pack::width && group_lanes % panel == 0));

  [[gnu::flatten]] static void scores(const tile<T>& t) {
    rows_ahead<T> values({t.v, fetches(t) ? t.n : 0, t.dv});
    index lane = 0;
    for (; t.is_whole && lane + FullV * Pack::width <= t.queries; lane += FullV * Pack::width) {
      in_blocks<FullR>(0, t.n, [&]<int R>(std::integral_constant<int, R>, index row) {
        score_block<Products, Lanes, R, FullV>(t, row, lane, values);
      });
    }
    for (; lane < t.queries; lane += GroupV * Pack::width) {
      const index g = lane / group_lanes;
      in_blocks<GroupR>(t.group_first[g], t.group_last[g], [&]<int R>(std::integral_constant<int, R>, index row) {
        score_block<Products, Lanes, R, GroupV>(t, row, lane, values);
      });
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
    rows_ahead<T> keys({t.next_k, fetches(t) ? tile_keys : 0, t.d});
    const bool grows = std::any_of(t.grows, t.grows + t.queries / group_lanes, [](bool g) { return g; });
    const index bytes = tile_keys * t.dv * index{sizeof(Real)};
    const index together = bytes <= Shape.first_cache && bytes > Shape.first_cache * 3 / 4 ? tile_keys / 2 : tile_keys;
    index lane = 0;
    for (index from = 0, to = 0; t.is_whole && from < steps(t.n); from = to) {
      to = std::min(from + together, steps(t.n));
      for (lane = 0; lane + FullV * Pack::width <= t.queries; lane += FullV * Pack::width) {
        in_blocks<FullR>(0, t.dv, [&]<int R>(std::integral_constant<int, R>, index row) {
          value_block<Products, Lanes, R, FullV>(t, v, row, lane, from, to, grows && from == 0, keys);
        });
      }
    }
    for (; lane < t.queries; lane += GroupV * Pack::width) {
      const index g = lane / group_lanes;
      if (t.group_first[g] >= t.group_last[g]) continue;
      in_blocks<GroupR>(0, t.dv, [&]<int R>(std::integral_constant<int, R>, index row) {
        value_block<Products, Lanes, R, GroupV>(t, v, row, lane, t.group_first[g] / Products::at_once,
                                                steps(t.group_last[g]), t.grows[g], keys);
      });
    }
  }

 private:
  static bool fetches(const tile<T>& t) { return Shape.fetches && t.next_k != t.k; }
  static constexpr index steps(index keys) { return (keys + Products::at_once - 1) / Products::at_once; }

  /// Weights of one pack of lanes, over the keys [from, to).
  static void weigh(const tile<T>& t, index lane, index from, index to, bool& grows) {
    using vector = typename Pack::vector;
    const index lanes = Lanes::of(t);
    Real* const s = t.s + Lanes::place(lane, tile_keys);
    if (!t.is_whole) hide<Pack>(s, lanes, from, to, t.first + lane, t.last + lane);
    // A key outside the range that shares a step with one inside counts as hidden.
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
};

}  // namespace
}  // namespace regroup::tiles
