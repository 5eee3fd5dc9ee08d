// SPDX-License-Identifier: Apache-2.0
// Attention's kernels of 16-bit inputs in fixed point, for AVX-512 with vpdpwssd: S^T = K Q^T and O^T += V^T P^T in sums
// of integers, two products of 16 bits a step and lane, which are exact and so the same in any order. Every row of Q, K
// and V has a scale of its own, and so have a query's weights in every tile. Lanes are queries. Level: block.
#if defined(__x86_64__)
#include <algorithm>
#include <cmath>

#include "attention_packs.hpp"
#include "attention_tile.hpp"

namespace regroup::tiles {
namespace {

using Pack = pack<float, 64>;
using words = Pack::integers;
constexpr index width = Pack::width;

/// A row is rounded to a norm of 32,766 or a little more, so that no sum of products of two of them leaves 32 bits
/// (Cauchy-Schwarz); values to 16,383 at most, and the weights of a tile to 32,766 at most and 131,000 together.
constexpr float most_norm = 32766, most_value = 16383, most_weight = 32766, most_weights = 131000;
/// Where a row's size is not between these its squares, or its products with weights, may leave a float.
constexpr float least_size = 0x1p-45f, most_size = 0x1p+45f;

words load(const std::int32_t* from) {
  words x;
  std::memcpy(&x, from, sizeof x);
  return x;
}
words all(std::int32_t x) { return x - words{}; }
words add(const words& sum, const words& a, const words& b) {
  return words(_mm512_dpwssd_epi32(__m512i(sum), __m512i(a), __m512i(b)));
}
words rounded(const Pack& x) { return words(_mm512_maskz_cvtps_epi32(0xffff, __m512(x.x))); }
Pack as_floats(const words& x) { return {__builtin_convertvector(x, Pack::vector)}; }

/// The numbers of a row of n from c on, then zeros.
template <class T>
[[gnu::always_inline]] inline Pack load_from(const T* row, index c, index n) {
  return n - c >= width ? Pack::load(row + c) : Pack::load_some(row + c, n - c);
}

/// Of 16 rows: what makes integers of numbers, and numbers of those again; NaN where a row has none, and a zero first.
struct row_scales {
  Pack of_numbers, of_integers;
  std::uint64_t none;
};

/// Rows of these sizes get `most`. `is_zero(i)` looks at the row itself.
template <class IsZero>
[[gnu::always_inline]] inline row_scales scales_of(const Pack& size, float most, const IsZero& is_zero) {
  const Pack top = Pack::all(most), none = Pack::all(std::numeric_limits<float>::quiet_NaN());
  const auto fits = (size.x >= Pack::all(least_size).x) & (size.x <= Pack::all(most_size).x);
  row_scales all = {{fits ? top.x / size.x : Pack::vector{}}, {fits ? size.x / top.x : none.x}, 0};
  for (index i = 0; i < width && Pack::any(~fits); ++i) {
    if (fits[i]) continue;
    if (is_zero(i)) {
      all.of_integers.x[i] = 0;
    } else {
      all.none |= std::uint64_t{1} << i;
    }
  }
  return all;
}

/// The Euclidean norms of 16 rows of n.
template <class T>
[[gnu::always_inline]] inline Pack norms_of(const T* const* rows, index n) {
  packs<Pack, width> squares;
  for (index i = 0; i < width; ++i) {
    Pack sum = {};
    for (index c = 0; c < n; c += width) {
      const Pack x = load_from(rows[i], c, n);
      sum = Pack::fma(x, x, sum);
    }
    squares[i] = sum;
  }
  transpose(squares);
  unrolled<8>([&](int i) { squares[i].x += squares[i + 8].x; });
  unrolled<4>([&](int i) { squares[i].x += squares[i + 4].x; });
  unrolled<2>([&](int i) { squares[i].x += squares[i + 2].x; });
  squares[0].x += squares[1].x;
  return {Pack::vector(_mm512_maskz_sqrt_ps(0xffff, __m512(squares[0].x)))};
}

/// The largest magnitudes of 16 rows: of their bits as integers, so that NaN counts as more than infinity.
template <class T>
[[gnu::always_inline]] inline Pack largest_of(const T* const* rows, index n) {
  packs<Pack, width> tops;
  const auto larger = [](const words& a, const words& b) {
    return words(_mm512_maskz_max_epi32(0xffff, __m512i(a), __m512i(b)));
  };
  for (index i = 0; i < width; ++i) {
    words top = {};
    for (index c = 0; c < n; c += 2 * width) {
      const auto mask = n - c >= 2 * width ? ~0u : (1u << (n - c)) - 1;
      const auto x = words(_mm512_maskz_loadu_epi16(mask, rows[i] + c)) & 0x7fff7fff;
      top = larger(top, larger(x & 0xffff, x >> 16));
    }
    tops[i].x = reinterpret_cast<Pack::vector>(top);
  }
  transpose(tops);
  words top = {};
  unrolled<width>([&](int i) { top = larger(top, reinterpret_cast<words>(tops[i].x)); });
  return Pack::part<T, 0>({reinterpret_cast<Pack::vector>(top)});
}

template <class T>
bool is_zero(const T* row, index n) {
  return std::all_of(row, row + n, [](T x) { return widen(x) == 0; });
}

/// 16 numbers of a row from c on, times its scale.
template <class T>
[[gnu::always_inline]] inline words round_from(const T* row, index c, index n, float scale) {
  return rounded(Pack::product(load_from(row, c, n), Pack::all(scale)));
}
/// 32 of them, two in a word.
template <class T>
[[gnu::always_inline]] inline Pack pairs_from(const T* row, index c, index n, float scale) {
  const auto narrow = [&](index from) {
    return from < n ? _mm512_maskz_cvtepi32_epi16(0xffff, __m512i(round_from(row, from, n, scale))) : __m256i{};
  };
  return {
      reinterpret_cast<Pack::vector>(__builtin_shufflevector(narrow(c), narrow(c + width), 0, 1, 2, 3, 4, 5, 6, 7))};
}

/// 16 rows of n numbers as words of two, (n / 2, 16); their scales.
template <class T>
[[gnu::always_inline]] inline row_scales round_rows(const T* const* rows, index n, std::int32_t* to) {
  const row_scales scales = scales_of(norms_of(rows, n), most_norm, [&](index i) { return is_zero(rows[i], n); });
  const index steps = (n + 1) / 2;
  for (index step = 0; step < steps; step += width) {
    packs<Pack, width> x;
    unrolled<width>([&](int i) { x[i] = pairs_from(rows[i], 2 * step, n, scales.of_numbers.x[i]); });
    transpose(x);
    const index count = std::min(steps - step, width);
    for (index i = 0; i < count; ++i) x[i].store(reinterpret_cast<float*>(to) + (step + i) * width);
  }
  return scales;
}

template <class T>
[[gnu::flatten]] void round_queries(const T* const* rows, index d, std::int32_t* to, float* scale) {
  round_rows(rows, d, to).of_integers.store(scale);
}

/// Those of the 16 keys from j on that there are.
template <class T>
std::uint64_t present(const integer_tile<T>& t, index j, std::uint64_t keys) {
  const index count = std::clamp<index>(t.n - j, 0, width);
  return (keys & ((1u << count) - 1)) << j;
}

/// Rows of the next tile on their way to the second cache.
template <class T>
[[gnu::always_inline]] inline void fetch(const T* row, index n) {
  const auto* const first = reinterpret_cast<const char*>(row);
  for (index at = 0; at < n * index{sizeof(T)}; at += 64) __builtin_prefetch(first + at, 0, 2);
}

template <class T>
[[gnu::flatten]] rows_without_scale pack_rows(const integer_tile<T>& t) {
  rows_without_scale without = {0, 0};
  const index steps = (t.d + 1) / 2;
  for (index j = 0; j < whole(t.n, width); j += width) {
    for (index i = j; t.next_k != nullptr && i < j + width; ++i) {
      fetch(t.next_k[i], t.d);
      fetch(t.next_v[i], t.dv);
    }
    const row_scales of_keys = round_rows(t.k + j, t.d, t.k_pairs + j * steps);
    of_keys.of_integers.store(t.k_scale + j);
    without.keys |= present(t, j, of_keys.none);
    row_scales of_values =
        scales_of(largest_of(t.v + j, t.dv), most_value, [&](index i) { return is_zero(t.v[j + i], t.dv); });
    without.values |= present(t, j, of_values.none);
    for (index i = 0; i < width; ++i) {
      const bool is_there = j + i < t.n && (of_values.none >> i & 1) == 0;
      t.v_scale[j + i] = is_there ? of_values.of_integers.x[i] : 0;
      if (!is_there) of_values.of_numbers.x[i] = 0;
    }
    for (index i = 0; i < width; i += 2) {
      for (index c = 0; c < t.dv; c += width) {
        const words even = round_from(t.v[j + i], c, t.dv, of_values.of_numbers.x[i]);
        const words odd = round_from(t.v[j + i + 1], c, t.dv, of_values.of_numbers.x[i + 1]);
        const words pair = (even & 0xffff) | odd << 16;
        std::memcpy(t.v_pairs + c * tile_keys / 2 + (j + i) / 2 * width, &pair, sizeof pair);
      }
    }
  }
  return without;
}

/// Words of K or V that are fetched before they are needed: 32 lines.
constexpr index ahead = 32 * width;

/// R rows of s, keys from `row` on, in V packs of lanes.
template <class T, int R, int V>
inline void score_block(const integer_tile<T>& t, index row, index lane) {
  [&]<int... I>(std::integer_sequence<int, I...>) {
    const index steps = (t.d + 1) / 2;
    const std::int32_t* k = t.k_pairs + row / width * width * steps + row % width;
    const std::int32_t* q = t.q + lane * steps;
    words acc[static_cast<std::size_t>(R * V)] = {};
    for (index c = 0; c < steps; ++c, k += width, q += width) {
      __builtin_prefetch(k + ahead, 0, 3);
      ((acc[I] = add(acc[I], all(k[I / V]), load(q + I % V * steps * width))), ...);
    }
    float* const s = t.s + row * t.lanes + lane;
    (Pack::product(Pack::product(as_floats(acc[I]), Pack::all(t.k_scale[row + I / V])),
                   Pack::load(t.q_scale + lane + I % V * width))
         .store(s + I / V * t.lanes + I % V * width),
     ...);
  }
  (std::make_integer_sequence<int, R * V>{});
}

/// R rows of o, columns of v from `row` on, in V packs of lanes, over the pairs of keys [from, to).
template <class T, int R, int V>
inline void value_block(const integer_tile<T>& t, index row, index lane, index from, index to, bool grows) {
  [&]<int... I>(std::integer_sequence<int, I...>) {
    const std::int32_t* v = t.v_pairs + row / width * width * (tile_keys / 2) + from * width + row % width;
    const std::int32_t* p = t.p + from * t.lanes + lane;
    words acc[static_cast<std::size_t>(R * V)] = {};
    for (index j = from; j < to; ++j, v += width, p += t.lanes) {
      __builtin_prefetch(v + ahead, 0, 3);
      ((acc[I] = add(acc[I], all(v[I / V]), load(p + I % V * width))), ...);
    }
    float* const o = t.o + row * t.lanes + lane;
    const auto before = [&](index i, index group) {
      const Pack x = Pack::load(o + i * t.lanes + group);
      return grows ? Pack::product(x, Pack::load(t.factor + lane + group)) : x;
    };
    (Pack::fma(as_floats(acc[I]), Pack::load(t.p_scale + lane + I % V * width), before(I / V, I % V * width))
         .store(o + I / V * t.lanes + I % V * width),
     ...);
  }
  (std::make_integer_sequence<int, R * V>{});
}

/// Two groups of lanes at once where all lanes see all keys; elsewhere one group and its keys.
template <class T>
[[gnu::flatten]] void scores(const integer_tile<T>& t) {
  if (t.is_whole && t.lanes == 2 * width) {
    for (index j = 0; j < t.n; j += 8) score_block<T, 8, 2>(t, j, 0);
    return;
  }
  for (index g = 0; g < t.lanes / width; ++g) {
    for (index j = t.group_first[g] / width * width; j < t.group_last[g]; j += width) {
      score_block<T, width, 1>(t, j, g * width);
    }
  }
}

template <class T>
[[gnu::flatten]] void values(const integer_tile<T>& t) {
  if (t.is_whole && t.lanes == 2 * width) {
    const bool grows = t.grows[0] || t.grows[1];
    for (index c = 0; c < t.dv; c += 8) value_block<T, 8, 2>(t, c, 0, 0, (t.n + 1) / 2, grows);
    return;
  }
  for (index g = 0; g < t.lanes / width; ++g) {
    if (t.group_first[g] >= t.group_last[g]) continue;
    for (index c = 0; c < t.dv; c += width) {
      value_block<T, width, 1>(t, c, g * width, t.group_first[g] / 2, (t.group_last[g] + 1) / 2, t.grows[g]);
    }
  }
}

/// x = exp(x), x <= 0, within 2^-18.3, and 1 at 0.
template <int N>
[[gnu::always_inline]] inline void exp_of(packs<Pack, N>& x) {
  packs<Pack, N> r, p;
  unrolled<N>([&](int i) { x[i] = Pack::product(x[i], Pack::all(0x1.715476p+0f)); });
  unrolled<N>([&](int i) { r[i].x = Pack::vector(_mm512_maskz_reduce_ps(0xffff, __m512(x[i].x), 0x09)); });
  unrolled<N>([&](int i) { p[i] = Pack::fma(r[i], Pack::all(0x1.b7f74cp-7f), Pack::all(0x1.abf85ep-5f)); });
  unrolled<N>([&](int i) { p[i] = Pack::fma(p[i], r[i], Pack::all(0x1.ee2452p-3f)); });
  unrolled<N>([&](int i) { p[i] = Pack::fma(p[i], r[i], Pack::all(0x1.62d6c6p-1f)); });
  unrolled<N>([&](int i) { p[i] = Pack::fma(p[i], r[i], Pack::all(1)); });
  unrolled<N>([&](int i) { x[i].x = Pack::vector(_mm512_maskz_scalef_ps(0xffff, __m512(p[i].x), __m512(x[i].x))); });
}

/// What weights are rounded to: of_integers times an integer, numbers times of_numbers. The largest is one exactly, so
/// that weights that are all equal are not all rounded the same way.
struct weight_scale {
  Pack of_integers, of_numbers;
};

/// s = weights times their values' scales, of the keys [from, to) and 16 queries; l grows by the weights.
template <bool IsFinite, class T>
[[gnu::always_inline]] inline weight_scale weigh(const integer_tile<T>& t, float* s, index from, index to,
                                                 const Pack& m, Pack& l) {
  const Pack infinity = Pack::all(math::detail::infinity<float>);
  const Pack frame = {m.x == -infinity.x ? Pack::vector{} : m.x};
  packs<Pack, 2> most = {}, sum = {};
  for (index j = from; j < to; j += 4) {
    packs<Pack, 4> w;
    unrolled<4>([&](int i) { w[i].x = Pack::load(s + (j + i) * t.lanes).x - frame.x; });
    exp_of<4>(w);
    unrolled<4>([&](int i) {
      float* const at = s + (j + i) * t.lanes;
      if constexpr (!IsFinite) {
        const Pack x = Pack::load(at);
        w[i].x = m.x == infinity.x ? (x.x == infinity.x ? Pack::all(1).x : x.x != x.x ? x.x : Pack::vector{}) : w[i].x;
      }
      l.x += w[i].x;
      w[i] = Pack::product(w[i], Pack::all(t.v_scale[j + i]));
      most[i % 2] = Pack::larger(most[i % 2], w[i]);
      sum[i % 2].x += w[i].x;
      w[i].store(at);
    });
  }
  const Pack top = Pack::larger(most[0], most[1]);
  const Pack unit = Pack::larger(Pack::product(top, Pack::all(1 / most_weight)),
                                 Pack::product(Pack{sum[0].x + sum[1].x}, Pack::all(1 / most_weights)));
  const Pack units = {Pack::vector(_mm512_maskz_roundscale_ps(0xffff, __m512(top.x / unit.x), 0x09))};
  const Pack exact = {top.x / units.x};
  // Nothing, where weights are so small that the other way may leave a float.
  const auto is_nothing = unit.x <= Pack::all(0x1p-110f).x;
  return {{is_nothing ? Pack::vector{} : exact.x}, {is_nothing ? Pack::vector{} : units.x / top.x}};
}

/// p = the weights as integers times `scale`, two keys a word.
template <class T>
[[gnu::always_inline]] inline void round_weights(const integer_tile<T>& t, index lane, index from, index to,
                                                 const Pack& scale) {
  const Pack high = Pack::product(scale, Pack::all(0x1p+16f)), half = Pack::all(0x1p+15f);
  const words upper = all(static_cast<std::int32_t>(0xffff0000u));
  for (index j = from; j < to; j += 2) {
    const float* const s = t.s + j * t.lanes + lane;
    const words even = rounded(Pack::product(Pack::load(s), scale));
    const words odd = rounded(Pack::fma(Pack::load(s + t.lanes), high, half));
    const words pair = even | (odd & upper);
    std::memcpy(t.p + j / 2 * t.lanes + lane, &pair, sizeof pair);
  }
}

/// One group of lanes over its keys [from, to).
template <class T>
[[gnu::always_inline]] inline void weigh_group(const integer_tile<T>& t, index lane, index from, index to,
                                               bool& grows) {
  float* const s = t.s + lane;
  const Pack hidden = Pack::all(-math::detail::infinity<float>);
  if (!t.is_whole) {
    const words first = load(t.first + lane), last = load(t.last + lane);
    for (index j = from; j < to; ++j) {
      const words key = all(static_cast<std::int32_t>(j));
      const auto seen = (key >= first) & (key < last);
      Pack{seen ? Pack::load(s + j * t.lanes).x : hidden.x}.store(s + j * t.lanes);
    }
  }
  // Up to whole steps of four keys.
  const index whole_from = from / 4 * 4, whole_to = whole(to, 4);
  for (index j = whole_from; j < from; ++j) hidden.store(s + j * t.lanes);
  for (index j = to; j < whole_to; ++j) hidden.store(s + j * t.lanes);
  const Pack before = Pack::load(t.m + lane);
  packs<Pack, 4> tops = {before, before, before, before};
  for (index j = whole_from; j < whole_to; j += 4) {
    unrolled<4>([&](int i) { tops[i] = Pack::larger(Pack::load(s + (j + i) * t.lanes), tops[i]); });
  }
  const Pack top = Pack::larger(Pack::larger(tops[0], tops[1]), Pack::larger(tops[2], tops[3]));
  Pack l = Pack::load(t.l + lane);
  Pack factor = Pack::all(1);
  if (Pack::any(top.x > before.x)) {
    grows = true;
    const Pack corrected = decay(Pack{before.x - top.x});
    factor = {top.x > before.x ? corrected.x : factor.x};
    l = Pack::product(l, factor);
    top.store(t.m + lane);
  }
  factor.store(t.factor + lane);
  const weight_scale scale = Pack::any(top.x == -hidden.x) ? weigh<false>(t, s, whole_from, whole_to, top, l)
                                                           : weigh<true>(t, s, whole_from, whole_to, top, l);
  l.store(t.l + lane);
  scale.of_integers.store(t.p_scale + lane);
  round_weights(t, lane, whole_from, whole_to, scale.of_numbers);
}

template <class T>
[[gnu::flatten]] void weights(const integer_tile<T>& t) {
  for (index g = 0; g < t.lanes / width; ++g) {
    t.grows[g] = false;
    if (t.group_first[g] < t.group_last[g]) weigh_group(t, g * width, t.group_first[g], t.group_last[g], t.grows[g]);
  }
}

template <class T>
constexpr integer_kernels<T> all_kernels() {
  return {round_queries<T>, pack_rows<T>, scores<T>, weights<T>, values<T>};
}

}  // namespace

constinit const integer_kernels<float16> float16_by_vnni = all_kernels<float16>();
constinit const integer_kernels<bfloat16> bfloat16_by_vnni = all_kernels<bfloat16>();

}  // namespace regroup::tiles
#endif
