// SPDX-License-Identifier: Apache-2.0
// Attention's tile for few queries, as in decoding: lanes are keys for the scores (K is transposed in registers, 16 x
// 16 with AVX-512, so that a score stays one chain over d) and columns of V for O. Memory sets the pace: the next tile is
// fetched meanwhile, and all queries share each key and value read. Local to each instruction set's file. Level: block.
#pragma once

#include <algorithm>

#include "attention_products.hpp"

namespace regroup::tiles {
namespace {

/// Forced inline, and called from loops rather than lambdas: g++ drops a call to a function that only prefetches.
[[gnu::always_inline]] inline void fetch(const void* line) { __builtin_prefetch(line, 0, 2); }

inline constexpr index rows_ahead = 16;  // 4 to 8 KiB at 128 columns, in the order of a sequential read

/// Rows to be fetched in the order of memory, some lines at a time, while others are computed with.
template <class T>
struct fetcher {
  const T* const* rows;
  index row_bytes;
  index lines;  // left
  index row = 0, at = 0;

  [[gnu::always_inline]] void operator()(int count) {
    for (; count > 0 && lines > 0; --count, --lines) {
      fetch(reinterpret_cast<const char*>(rows[row]) + at);
      at += 64;
      if (at >= row_bytes) {
        at = 0;
        ++row;
      }
    }
  }
};
template <class T>
inline fetcher<T> fetcher_of(const T* const* rows, index n, index width, bool fetches) {
  const index bytes = width * static_cast<index>(sizeof(T));
  return {rows, bytes, fetches ? n * ((bytes + 63) / 64) : 0};
}

/// Q queries from `query` on: their scores.
template <class Products, int Q>
inline void score_keys(const tile<typename Products::T>& t, index query, bool fetches) {
  using Pack = typename Products::Pack;
  using T = typename Products::T;
  constexpr int w = Pack::width, n = Products::at_once;
  const index d = (t.d + n - 1) / n;  // steps
  const auto* const q = t.q + query * d;
  for (index j = 0; j < t.n; j += w) {
    const bool is_last = j + w >= t.n;
    fetcher<T> ahead =
        fetcher_of(is_last ? t.v : t.k + j + w, w, is_last ? t.dv : t.d, fetches);  // the next to be read
    packs<Pack, Q> acc = {};
    index c = 0;
    for (; c + w <= d; c += w) {
      packs<Pack, w> x;
      unrolled<w>([&](int i) { x[i] = Products::load(t.k[j + i] + c * n); });
      ahead(w * static_cast<int>(sizeof(T)) * w * n / 64);
      transpose(x);
      [&]<int... I>(std::integer_sequence<int, I...>) {
        ((acc[I % Q] = Products::add(acc[I % Q], x[I / Q], Products::all_of(q + I % Q * d + c + I / Q))), ...);
      }
      (std::make_integer_sequence<int, w * Q>{});
    }
    if (c < d) {
      packs<Pack, w> x;
      unrolled<w>([&](int i) { x[i] = Products::load_some(t.k[j + i] + c * n, t.d - c * n); });
      transpose(x);
      unrolled<w - 1>([&](int i) {
        if (c + i >= d) return;
        unrolled<Q>([&](int a) { acc[a] = Products::add(acc[a], x[i], Products::all_of(q + a * d + c + i)); });
      });
    }
    unrolled<Q>([&](int a) { Products::score(acc[a], t).store(t.s + (query + a) * tile_keys + j); });
  }
}

/// Q queries from `query` on: V packs of columns of O from `column` on, the last of them `count` wide.
template <class Products, int Q, int V>
inline void add_values(const tile<typename Products::T>& t, index query, index column, index count, bool fetches) {
  using Pack = typename Products::Pack;
  using T = typename Products::T;
  using Real = typename Products::Real;
  constexpr int w = Pack::width;
  const index n = t.n;
  const Real* const s = t.s + query * tile_keys;
  Real* const o = t.o + query * t.dv + column;
  const bool is_part = count < w;
  fetcher<T> ahead = fetcher_of(t.v + std::min(n, rows_ahead), std::max<index>(n - rows_ahead, 0), t.dv, fetches);
  fetcher<T> next = fetcher_of(t.next_k, rows_ahead, t.d, fetches);
  const int lines = static_cast<int>((ahead.row_bytes + 63) / 64);
  const int next_lines = static_cast<int>((next.row_bytes + 63) / 64);
  [&]<int... I>(std::integer_sequence<int, I...>) {
    const auto load = [&](const Real* from, int v) {
      return is_part && v == V - 1 ? Pack::load_some(from + v * w, count) : Pack::load(from + v * w);
    };
    packs<Pack, Q* V> acc = {load(o + I / V * t.dv, I % V)...};
    ((acc[I] = Pack::product(acc[I], Pack::all(t.factor[query + I / V]))), ...);
    const auto add = [&](index j, const packs<Pack, V>& x) {
      ((acc[I] = Products::add(acc[I], Products::all_of(s + I / V * tile_keys + j / Products::at_once), x[I % V])),
       ...);
    };
    for (index j = 0; j < n; j += Products::at_once) {
      const T* const* const v = t.v + j;
      ahead(lines * Products::at_once);
      if (j + rows_ahead >= n) next(next_lines * Products::at_once);
      [&]<int... C>(std::integer_sequence<int, C...>) {
        const auto load_rows = [&](int i) {
          return is_part && i == V - 1 ? Products::load_rows_some(v, column + i * w, count)
                                       : Products::load_rows(v, column + i * w);
        };
        if (is_part) return add(j, {load_rows(C)...});
        add(j, {Products::load_rows(v, column + C * w)...});
      }
      (std::make_integer_sequence<int, V>{});
    }
    const auto store = [&](int a, int v) {
      if (is_part && v == V - 1) return acc[a * V + v].store_some(o + a * t.dv + v * w, count);
      acc[a * V + v].store(o + a * t.dv + v * w);
    };
    (store(I / V, I % V), ...);
  }
  (std::make_integer_sequence<int, Q * V>{});
}

/// body(a compile-time number of queries, the first of them): at most Most at a time, in passes of about equal size.
template <int Most, class Body>
inline void in_passes(index queries, const Body& body) {
  const index passes = (queries + Most - 1) / Most;
  for (index pass = 0; pass < passes; ++pass) {
    const index first = queries * pass / passes;
    const index count = queries * (pass + 1) / passes - first;
    [&]<int... I>(std::integer_sequence<int, I...>) {
      ((count == I + 1 ? body(std::integral_constant<int, I + 1>{}, first) : void()), ...);
    }
    (std::make_integer_sequence<int, Most>{});
  }
}

/// Most queries in one pass over the keys; Registers for accumulators of O.
template <class Products, int Most, int Registers>
struct with_key_lanes {
  using Pack = typename Products::Pack;
  using T = typename Products::T;
  using Real = typename Products::Real;

  [[gnu::flatten]] static void scores(const tile<T>& t) {
    in_passes<Most>(t.queries, [&]<int Q>(std::integral_constant<int, Q>, index first) {
      score_keys<Products, Q>(t, first, first == 0);
    });
  }

  [[gnu::flatten]] static void weights(const tile<T>& t) {
    constexpr int w = Pack::width;
    for (index q = 0; q < t.queries; ++q) {
      Real* const s = t.s + q * tile_keys;
      const index padded = (t.n + w - 1) / w * w;
      std::fill(s, s + t.first[q], -math::detail::infinity<Real>);
      std::fill(s + t.last[q], s + padded, -math::detail::infinity<Real>);
      Pack tops = Pack::load(s);
      for (index j = 0; j < padded; j += w) tops = Pack::larger(Pack::load(s + j), tops);
      const Real before = t.m[q];
      Real top = before;
      for (int i = 0; i < w; ++i) top = tops.x[i] > top ? tops.x[i] : top;
      t.factor[q] = 1;
      if (top > before) {
        t.factor[q] = decay(Pack::all(before - top)).x[0];
        t.m[q] = top;
        t.l[q] = math::fma(t.l[q], t.factor[q], -Real{});
      }
      const auto sweep = [&]<bool IsFinite>(std::bool_constant<IsFinite>) {
        for (index j = 0; j < padded; j += w) {
          packs<Pack, 1> x = {Pack::load(s + j)};
          weigh<IsFinite, Pack, 1>(x, Pack::all(top));
          x[0].store(s + j);
        }
      };
      if (top - top == 0) {
        sweep(std::true_type{});
      } else {
        sweep(std::false_type{});
      }
      t.l[q] = Products::keep(s, t.n, t.l[q]);
    }
  }

  [[gnu::flatten]] static void values(const tile<T>& t) {
    in_passes<Most>(t.queries, [&]<int Q>(std::integral_constant<int, Q>, index first) {
      constexpr int width = Q * 8 <= Registers ? 8 : Q * 4 <= Registers ? 4 : Q * 2 <= Registers ? 2 : 1;
      index column = 0;
      for (; column + width * Pack::width <= t.dv; column += width * Pack::width) {
        add_values<Products, Q, width>(t, first, column, Pack::width, first == 0 && column == 0);
      }
      for (; column < t.dv; column += Pack::width) {
        add_values<Products, Q, 1>(t, first, column, std::min<index>(t.dv - column, Pack::width),
                                   first == 0 && column == 0);
      }
    });
  }
};

}  // namespace
}  // namespace regroup::tiles
