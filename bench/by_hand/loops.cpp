// SPDX-License-Identifier: Apache-2.0
// The loops of loops.hpp in packs of one width, compiled once for AVX2 (32 bytes) and once for AVX-512 (64 bytes).
// What is left to right is folded by a tree of neighbours: the even places combine with the odd ones.
#include "loops.hpp"

#include <immintrin.h>

#include <cstring>
#include <initializer_list>
#include <limits>
#include <utility>

#include "peak.hpp"

namespace bench {
namespace {

constexpr int bytes = REGROUP_BENCH_BYTES;
using f32 [[gnu::vector_size(bytes)]] = float;
using i32 [[gnu::vector_size(bytes)]] = std::int32_t;
using f64 [[gnu::vector_size(bytes)]] = double;
using i64 [[gnu::vector_size(bytes)]] = std::int64_t;
constexpr int lanes = bytes / 4;
constexpr std::ptrdiff_t tile = 4096;
constexpr float infinity = std::numeric_limits<float>::infinity();

template <class Pack, class X>
Pack load(const X* p) {
  Pack v;
  std::memcpy(&v, p, bytes);
  return v;
}
#if REGROUP_BENCH_BYTES == 64
f32 max(f32 a, f32 b) { return f32(_mm512_max_ps(__m512(a), __m512(b))); }
f32 min(f32 a, f32 b) { return f32(_mm512_min_ps(__m512(a), __m512(b))); }
f64 min(f64 a, f64 b) { return f64(_mm512_min_pd(__m512d(a), __m512d(b))); }
i64 max(i64 a, i64 b) { return i64(_mm512_max_epi64(__m512i(a), __m512i(b))); }
f32 fma(f32 a, f32 b, f32 c) { return f32(_mm512_fmadd_ps(__m512(a), __m512(b), __m512(c))); }
void stream(void* p, f32 v) { _mm512_stream_ps(static_cast<float*>(p), __m512(v)); }
#else
f32 max(f32 a, f32 b) { return f32(_mm256_max_ps(__m256(a), __m256(b))); }
f32 min(f32 a, f32 b) { return f32(_mm256_min_ps(__m256(a), __m256(b))); }
f64 min(f64 a, f64 b) { return f64(_mm256_min_pd(__m256d(a), __m256d(b))); }
i64 max(i64 a, i64 b) { return a > b ? a : b; }
f32 fma(f32 a, f32 b, f32 c) { return f32(_mm256_fmadd_ps(__m256(a), __m256(b), __m256(c))); }
void stream(void* p, f32 v) { _mm256_stream_ps(static_cast<float*>(p), __m256(v)); }
#endif
f32 all(float x) { return f32{} + x; }

/// exp(x) for x <= 0, 0 below -87: rounds x log2 e to n, a polynomial of degree 5 in the rest, 2^n last.
f32 exp(f32 x) {
  const f32 rounder = all(0x1.8p23f);
  const f32 shifted = fma(x, all(0x1.715476p+0f), rounder);
  const f32 n = shifted - rounder;
  const f32 r = fma(n, all(0x1.05c61p-29f), fma(n, all(-0x1.62e43p-1f), x));
  f32 p = all(0x1.123984p-7f);
  for (const float c : {0x1.5558aep-5f, 0x1.555492p-3f, 0x1.fffffcp-2f, 1.0f, 1.0f}) p = fma(p, r, all(c));
  const i32 scale = i32(shifted) << 23;
  return x < all(-87.0f) ? f32{} : f32(i32(p) + scale);
}

template <class Pack, class F>
auto fold_lanes(const Pack& v, F f) {
  auto x = v[0];
  for (std::size_t j = 1; j < sizeof(v) / sizeof(x); ++j) x = f(x, v[j]);
  return x;
}
float sum_of(const f32& v) {
  return fold_lanes(v, [](float a, float b) { return a + b; });
}
float max_of(const f32& v) {
  return fold_lanes(v, [](float a, float b) { return a > b ? a : b; });
}
float min_of(const f32& v) {
  return fold_lanes(v, [](float a, float b) { return a < b ? a : b; });
}

/// acc[k] = f(acc[k], load) over a tile with four accumulators, then one.
template <class F, class Join>
f32 fold_tile(const float* x, f32 first, F f, Join join) {
  f32 acc[4] = {first, first, first, first};
  for (std::ptrdiff_t i = 0; i < tile; i += 4 * lanes) {
    for (int k = 0; k < 4; ++k) acc[k] = f(acc[k], load<f32>(x + i + k * lanes));
  }
  return join(join(acc[0], acc[1]), join(acc[2], acc[3]));
}
/// The next tile's lines, and where the pages lie that come later.
void prefetch_tile(const float* x) {
  for (std::ptrdiff_t i = 0; i < tile; i += 16) _mm_prefetch(x + i, _MM_HINT_T1);
  for (std::ptrdiff_t i = 0; i < tile; i += 1024) _mm_prefetch(x + 32768 + i, _MM_HINT_T0);
}
constexpr auto sum = [](f32 a, f32 b) { return a + b; };
constexpr auto larger = [](f32 a, f32 b) { return max(a, b); };
constexpr auto smaller = [](f32 a, f32 b) { return min(a, b); };

by_hand::log_sum log_sum_exp(const float* x, std::ptrdiff_t n) {
  f32 m = all(-infinity), s = f32{};
  for (std::ptrdiff_t t = 0; t < n; t += tile) {
    prefetch_tile(x + t + tile);
    const float top = max_of(fold_tile(x + t, all(-infinity), larger, larger));
    const f32 higher = max(m, all(top));
    const f32 weights = fold_tile(
        x + t, f32{}, [&](f32 acc, f32 v) { return acc + exp(v - higher); }, sum);
    s = fma(s, exp(m - higher), weights);
    m = higher;
  }
  return {m[0], sum_of(s)};
}

template <bool Deviations, bool Extremes>
by_hand::spread spread_of(const float* x, std::ptrdiff_t n) {
  by_hand::spread r{0, 0, infinity, -infinity};
  float count = 0;
  f32 low = all(infinity), high = all(-infinity);
  for (std::ptrdiff_t t = 0; t < n; t += tile) {
    prefetch_tile(x + t + tile);
    if constexpr (Deviations) {
      const float mean = sum_of(fold_tile(x + t, f32{}, sum, sum)) / tile;
      const f32 square = fold_tile(
          x + t, f32{}, [&](f32 acc, f32 v) { return fma(v - mean, v - mean, acc); }, sum);
      const float apart = mean - r.mean, both = count + tile;
      r.mean += apart * (tile / both);
      r.deviation += sum_of(square) + apart * apart * count * (tile / both);
      count = both;
    }
    if constexpr (Extremes) {
      low = min(low, fold_tile(x + t, all(infinity), smaller, smaller));
      high = max(high, fold_tile(x + t, all(-infinity), larger, larger));
    }
  }
  r.min = min_of(low), r.max = max_of(high);
  return r;
}

by_hand::place argmax(const float* x, std::ptrdiff_t n) {
  by_hand::place best{-infinity, 0};
  std::ptrdiff_t where = 0;  // the tile of the maximum; its place inside is looked up once
  for (std::ptrdiff_t t = 0; t < n; t += tile) {
    prefetch_tile(x + t + tile);
    const float top = max_of(fold_tile(x + t, all(-infinity), larger, larger));
    if (top > best.value) best.value = top, where = t;
  }
  for (best.position = where; x[best.position] != best.value;) ++best.position;
  return best;
}

/// Elements 0, 2, 4, ... and 1, 3, 5, ... of two packs one after another.
template <class Pack, std::size_t... k>
Pack every_second(const Pack& a, const Pack& b, int odd, std::index_sequence<k...>) {
  return odd == 0 ? __builtin_shufflevector(a, b, (2 * k)...) : __builtin_shufflevector(a, b, (2 * k + 1)...);
}
template <class Pack>
Pack even(const Pack& a, const Pack& b) {
  return every_second(a, b, 0, std::make_index_sequence<bytes / sizeof(a[0])>{});
}
template <class Pack>
Pack odd(const Pack& a, const Pack& b) {
  return every_second(a, b, 1, std::make_index_sequence<bytes / sizeof(a[0])>{});
}

/// The states of `2^Level` neighbours in each lane, in order, by the tree of neighbours. An algebra has `packs` (one a
/// member), load(p) -> packs of consecutive elements, combine(packs, packs), and the scalar `state`.
template <class A, int Level, class X>
typename A::packs tree(const X* p) {
  if constexpr (Level == 0) {
    return A::load(p);
  } else {
    const auto a = tree<A, Level - 1>(p), b = tree<A, Level - 1>(p + (A::width << (Level - 1)));
    typename A::packs left, right;
    for (int m = 0; m < A::members; ++m) left.v[m] = even(a.v[m], b.v[m]), right.v[m] = odd(a.v[m], b.v[m]);
    return A::combine(left, right);
  }
}
template <class A, class X>
typename A::state fold_in_order(const X* x, std::ptrdiff_t n, typename A::state total) {
  constexpr int level = 6;
  for (std::ptrdiff_t i = 0; i < n; i += A::width << level) {
    const auto packs = tree<A, level>(x + i);
    for (int j = 0; j < A::width; ++j) total = A::combine(total, A::lane(packs, j));
  }
  return total;
}

struct affine_algebra {
  static constexpr int width = lanes, members = 2;
  struct packs {
    f32 v[2];
  };
  using state = map_f32;
  static packs load(const map_f32* p) {
    const f32 x = bench::load<f32>(p), y = bench::load<f32>(p + lanes / 2);
    return {{even(x, y), odd(x, y)}};
  }
  static packs combine(const packs& l, const packs& r) { return {{r.v[0] * l.v[0], fma(r.v[0], l.v[1], r.v[1])}}; }
  static state combine(state l, state r) { return {r.a * l.a, r.a * l.b + r.b}; }
  static state lane(const packs& p, int j) { return {p.v[0][j], p.v[1][j]}; }
};

struct longest_run_algebra {
  static constexpr int width = bytes / 8, members = 4;
  struct packs {
    i64 v[4];
  };
  using state = run_state;
  static packs load(const unsigned char* p) {
    i64 bit;
    for (int j = 0; j < width; ++j) bit[j] = p[j];
    return {{bit, bit, bit, i64{} + 1}};
  }
  static packs combine(const packs& l, const packs& r) {
    return {{l.v[0] == l.v[3] ? l.v[3] + r.v[0] : l.v[0], r.v[1] == r.v[3] ? r.v[3] + l.v[1] : r.v[1],
             max(max(l.v[2], r.v[2]), l.v[1] + r.v[0]), l.v[3] + r.v[3]}};
  }
  static state combine(state l, state r) {
    const std::int64_t across = l.suffix + r.prefix, best = l.best < r.best ? r.best : l.best;
    return {l.prefix == l.length ? l.length + r.prefix : l.prefix,
            r.suffix == r.length ? r.length + l.suffix : r.suffix, best < across ? across : best, l.length + r.length};
  }
  static state lane(const packs& p, int j) { return {p.v[0][j], p.v[1][j], p.v[2][j], p.v[3][j]}; }
};

struct min_plus_algebra {
  static constexpr int width = bytes / 8, members = 4;
  struct packs {
    f64 v[4];
  };
  using state = min_plus_state;
  static packs load(const min_plus_state* p) {
    f64 x[4];
    for (int k = 0; k < 4; ++k) x[k] = bench::load<f64>(p + k * (width / 4));
    const f64 a = even(x[0], x[1]), b = odd(x[0], x[1]), c = even(x[2], x[3]), d = odd(x[2], x[3]);
    return {{even(a, c), even(b, d), odd(a, c), odd(b, d)}};
  }
  static packs combine(const packs& l, const packs& r) {
    const f64 aa = min(l.v[0] + r.v[0], l.v[1] + r.v[2]), ab = min(l.v[0] + r.v[1], l.v[1] + r.v[3]);
    const f64 ba = min(l.v[2] + r.v[0], l.v[3] + r.v[2]), bb = min(l.v[2] + r.v[1], l.v[3] + r.v[3]);
    return {{aa, ab, ba, bb}};
  }
  static state combine(state l, state r) {
    const auto less = [](double a, double b) { return a < b ? a : b; };
    return {less(l.aa + r.aa, l.ab + r.ba), less(l.aa + r.ab, l.ab + r.bb),  //
            less(l.ba + r.aa, l.bb + r.ba), less(l.ba + r.ab, l.bb + r.bb)};
  }
  static state lane(const packs& p, int j) { return {p.v[0][j], p.v[1][j], p.v[2][j], p.v[3][j]}; }
};

/// 4 KiB ahead; and 128 KiB ahead, where pages lie.
template <bool Prefetch>
int read(const void* from, std::size_t n) {
  const auto* p = static_cast<const char*>(from);
  i32 acc[8] = {};
  for (std::size_t i = 0; i + 8 * bytes <= n; i += 8 * bytes) {
    if (Prefetch && i % 4096 == 0) _mm_prefetch(p + i + 131072, _MM_HINT_T0);
    for (int k = 0; Prefetch && k < 8 * bytes / 64; ++k) _mm_prefetch(p + i + 4096 + 64 * k, _MM_HINT_T1);
    for (int k = 0; k < 8; ++k) acc[k] |= load<i32>(p + i + static_cast<std::size_t>(k * bytes));
  }
  for (int k = 1; k < 8; ++k) acc[0] |= acc[k];
  return fold_lanes(acc[0], [](int a, int b) { return a | b; });
}

template <bool Prefetch>
void copy(void* to, const void* from, std::size_t n) {
  auto* q = static_cast<char*>(to);
  const auto* p = static_cast<const char*>(from);
  for (; n > 0 && reinterpret_cast<std::uintptr_t>(q) % 64 != 0; --n) *q++ = *p++;
  std::size_t i = 0;
  for (; i + 256 <= n; i += 256) {
    if (Prefetch && i % 4096 == 0) _mm_prefetch(p + i + 131072, _MM_HINT_T0), _mm_prefetch(q + i + 131072, _MM_HINT_T0);
    for (int k = 0; Prefetch && k < 4; ++k) _mm_prefetch(p + i + 4096 + 64 * k, _MM_HINT_T1);
    for (std::size_t k = 0; k < 256; k += bytes) stream(q + i + k, load<f32>(p + i + k));
  }
  std::memcpy(q + i, p + i, n - i);
  _mm_sfence();
}

void fma_fp32() {
  std::int64_t turns = (std::int64_t{1} << 30) / (12 * lanes * 2);
#if REGROUP_BENCH_BYTES == 64
  REGROUP_PEAK("vfmadd231ps", "zmm", turns);
#else
  REGROUP_PEAK("vfmadd231ps", "ymm", turns);
#endif
}

}  // namespace

extern const by_hand REGROUP_BENCH_LOOPS;
const by_hand REGROUP_BENCH_LOOPS = {
    log_sum_exp,
    spread_of<true, false>,
    spread_of<true, true>,
    spread_of<false, true>,
    argmax,
    [](const map_f32* x, std::ptrdiff_t n) {
      return fold_in_order<affine_algebra>(x, n, {1, 0});
    },
    [](const unsigned char* x, std::ptrdiff_t n) { return fold_in_order<longest_run_algebra>(x, n, {}); },
    [](const min_plus_state* x, std::ptrdiff_t n) {
      constexpr double never = std::numeric_limits<double>::infinity();
      return fold_in_order<min_plus_algebra>(x, n, {0, never, never, 0});
    },
    read<false>,
    read<true>,
    copy<false>,
    copy<true>,
    fma_fp32,
};

}  // namespace bench
