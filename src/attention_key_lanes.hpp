// SPDX-License-Identifier: Apache-2.0
// Attention's tile for few queries, as in decoding: lanes are keys for the scores (K is transposed in registers, 16 x
// 16 with AVX-512, so that a score stays one chain over d) and columns of V for O. Memory sets the pace: the next tile is
// prefetched meanwhile, and all queries share each key and value read. Local to each instruction set's file. Level: block.
#pragma once

#include <algorithm>

#include "attention_products.hpp"
#include "attention_weights.hpp"
#include "regroup/memory.hpp"
#include "rows_ahead.hpp"

namespace regroup::tiles {
namespace {

/// Whether lines are prefetched in the order in which they are read, rather than in memory's order. On AMD before Zen 5 they
/// are: pages are touched before, and each line is prefetched four times into the second cache. (A Zen 4, fp32: 25 GB/s; twice
/// 22, once 19, and into the first cache 13. A Zen 5 has 28 so, and 32 in memory's order by the first cache.)
inline bool asks_as_read() { return is_amd() && !asks_first_cache(); }
/// In memory's order, whether lines are prefetched into the second cache, which can have more of them in flight. That pays for
/// one query, which waits for memory (an Intel that reads 16.4 GB/s, fp32: 15.0 instead of 13.6), but not on a Zen 5. More
/// queries compute longer and find their rows in the first cache.
template <int Q>
inline bool asks_second_cache() {
  return Q == 1 && !asks_first_cache();
}

/// Has the addresses of pages translated ahead, as `find_pages` does, for `count` rows from `first` on, wherever they lie:
/// rows are numbered through the tile's keys, then its values, then the next tile's keys. Prefetches one line of each row that
/// begins in another page than the row before.
template <class T>
[[gnu::always_inline]] inline void find_pages_of_rows(const tile<T>& t, index first, index count) {
  const T* const* const rows = first < t.n ? t.k : first < 2 * t.n ? t.v : t.next_k;
  const index from = first < t.n ? first : first < 2 * t.n ? first - t.n : std::min(first - 2 * t.n, tile_keys);
  std::uintptr_t before = 0;
  for (index i = from; i < std::min(from + count, tile_keys); ++i) {
    const auto page = reinterpret_cast<std::uintptr_t>(rows[i]) / page_bytes;
    if (page != before) __builtin_prefetch(rows[i], 0, 3);
    before = page;
  }
}
/// Prefetches a row that Q queries need soon. Forced inline, and to be called only beside other work: g++ drops a call to a
/// function that only prefetches.
template <int Q, class T>
[[gnu::always_inline]] inline void fetch(const T* row, index width, bool as_read) {
  const auto bytes = static_cast<std::size_t>(width) * sizeof(T);
  if (as_read) return fetch_lines<4>(row, bytes);
  if (asks_second_cache<Q>()) return fetch_lines<1>(row, bytes);
  for (std::size_t at = 0; at < bytes; at += cache_line) __builtin_prefetch(reinterpret_cast<const char*>(row) + at, 0, 3);
}

/// How many groups of keys (one key a lane) have their scores computed side by side: where a key has few bytes, a single chain
/// over d is slower than memory. The rows of the next groups, 8 KiB at 128 columns, are prefetched meanwhile.
template <class Products, int Q>
inline constexpr int groups = Q < 4 && sizeof(typename Products::T) == 2 ? 2 : 1;

/// The same pointer, hidden from the optimiser in every step: loads through it are not kept in registers, and offsets from it
/// are constants.
template <class T>
[[gnu::always_inline]] inline T* renewed(T* p, index step) {
  asm("" : "+r"(p) : "r"(step));
  return p;
}

/// Scores of Q queries from `query` on by G groups of keys from j on.
template <class Products, int Q, int G>
inline void score_group(const tile<typename Products::T>& t, index query, index j, bool fetches) {
  using Pack = typename Products::Pack;
  using T = typename Products::T;
  constexpr int w = Pack::width, parts = Products::parts, numbers = parts * Products::at_once;  // in a word
  const index steps = (t.d + Products::at_once - 1) / Products::at_once;
  const auto* const q = t.q + query * steps;
  const bool is_last = j + G * w >= t.n, as_read = fetches && asks_as_read(), by_second = asks_second_cache<Q>();
  const T* const* const later = is_last ? t.v : t.k + j + G * w;
  const index width = is_last ? t.dv : t.d;
  rows_ahead<T> ahead({later, fetches && !as_read ? G * w : 0, width});
  if (as_read) find_pages_of_rows(t, j + 2 * G * w, G * w);
  packs<Pack, Q* G> acc = {};
  index c = 0;  // words
  const auto fetch_some = [&](int g, int pair) {
    constexpr int bytes = sizeof(typename Pack::vector), apart = 64 / bytes;
    constexpr int pairs = std::max(w / 2 * std::countr_zero(unsigned{w}), 1), lines = w / apart;
    const int line = pair * lines / pairs;
    if ((pair + 1) * lines / pairs == line) return;
    if (!as_read) return ahead.fetch_line(by_second);
    if (c * numbers >= width) return;
    fetch_lines<4>(later[g * w + line * apart + c / w % apart] + c * numbers, cache_line);
  };
  for (; (c + w) * numbers <= t.d; c += w) {
    unrolled<G>([&](int g) {
      packs<Pack, w> x;
      const T* const* const k = renewed(t.k + j + g * w, c);
      unrolled<w>([&](int i) { x[i] = Products::load_words(k[i] + c * numbers); });
      transpose(x, [&](int pair) { fetch_some(g, pair); });
      [&]<int... I>(std::integer_sequence<int, I...>) {
        // A pointer for each query: an offset that is looked up would cost a load for every product.
        const typename Products::Real* at[static_cast<std::size_t>(Q)];
        unrolled<Q>([&](int a) { at[a] = renewed(q + a * steps + c * parts, c); });
        ((acc[g * Q + I % Q] =
              Products::add(acc[g * Q + I % Q], Products::template part<I / Q % parts>(x[I / Q / parts]),
                            Products::all_of(at[I % Q] + I / Q))),
         ...);
      }
      (std::make_integer_sequence<int, w * parts * Q>{});
    });
  }
  if (const index done = std::min(c * numbers, width); as_read) {
    for (int i = 0; i < G * w; ++i) fetch<Q>(later[i] + done, width - done, true);
  }
  if (c * numbers < t.d) {
    unrolled<G>([&](int g) {
      packs<Pack, w> x;
      unrolled<w>(
          [&](int i) { x[i] = Products::load_words_some(t.k[j + g * w + i] + c * numbers, t.d - c * numbers); });
      transpose(x);
      for (index i = 0; (c + i) * parts < steps; ++i) {  // few, so a loop
        unrolled<parts>([&]<int Part>(std::integral_constant<int, Part>) {
          const index step = (c + i) * parts + Part;
          if (step >= steps) return;
          const Pack k = Products::template part<Part>(x[i]);
          unrolled<Q>([&](int a) {
            acc[g * Q + a] = Products::add(acc[g * Q + a], k, Products::all_of(q + a * steps + step));
          });
        });
      }
    });
  }
  ahead.fetch_rest(by_second);
  unrolled<Q * G>([&](int i) { Products::score(acc[i], t).store(t.s + (query + i % Q) * tile_keys + j + i / Q * w); });
}

/// Scores of Q queries from `query` on.
template <class Products, int Q>
inline void score_keys(const tile<typename Products::T>& t, index query, bool fetches) {
  constexpr int w = Products::Pack::width, G = groups<Products, Q>;
  index j = 0;
  for (; j + (G - 1) * w < t.n; j += G * w) score_group<Products, Q, G>(t, query, j, fetches);
  for (; G > 1 && j < t.n; j += w) score_group<Products, Q, 1>(t, query, j, fetches);
}

/// For Q queries from `query` on, adds values to V packs of columns of O from `column` on; the last pack is `count` wide.
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
  constexpr index ahead = groups<Products, Q> * w;
  const bool as_read = asks_as_read();
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
      const T* rows[Products::at_once];
      for (int i = 0; i < Products::at_once; ++i) rows[i] = renewed(t.v[j + i] + column, j);
      if (fetches && as_read && j % 8 == 0) find_pages_of_rows(t, n + j + 2 * ahead, 8);
      for (index i = j + ahead; fetches && i < j + ahead + Products::at_once; ++i) {
        i < n ? fetch<Q>(t.v[i], t.dv, as_read) : fetch<Q>(t.next_k[i - n], t.d, as_read);
      }
      [&]<int... C>(std::integer_sequence<int, C...>) {
        const auto load_rows = [&](int i) {
          return is_part && i == V - 1 ? Products::load_rows_some(rows, i * w, count)
                                       : Products::load_rows(rows, i * w);
        };
        if (is_part) return add(j, {load_rows(C)...});
        add(j, {Products::load_rows(rows, C * w)...});
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

/// Calls body(a compile-time number of queries, the first of them) for all queries, at most Most at a time, in passes of about
/// equal size.
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

/// Most is the largest number of queries in one pass over the keys, Registers the number of accumulators for O.
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
        t.l[q] = math::product(t.l[q], t.factor[q]);
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
    }
    in_passes<Most>(t.queries, [&]<int Q>(std::integral_constant<int, Q>, index first) {
      Products::template keep<Q>(t.s + first * tile_keys, t.n, t.l + first);
    });
  }

  [[gnu::flatten]] static void values(const tile<T>& t) {
    in_passes<Most>(t.queries, [&]<int Q>(std::integral_constant<int, Q>, index first) {
      index column = 0;
      const auto add_packs = [&]<int V>(std::integral_constant<int, V>) {
        if constexpr (Q * V <= Registers) {
          for (; column + V * Pack::width <= t.dv; column += V * Pack::width) {
            add_values<Products, Q, V>(t, first, column, Pack::width, first == 0 && column == 0);
          }
        }
      };
      add_packs(std::integral_constant<int, 8>{});
      add_packs(std::integral_constant<int, 4>{});  // a head of 64 by packs of 16
      add_packs(std::integral_constant<int, 2>{});
      for (; column < t.dv; column += Pack::width) {
        add_values<Products, Q, 1>(t, first, column, std::min<index>(t.dv - column, Pack::width),
                                   first == 0 && column == 0);
      }
    });
  }
};

}  // namespace
}  // namespace regroup::tiles
