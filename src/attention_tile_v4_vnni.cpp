// SPDX-License-Identifier: Apache-2.0
// Attention's kernels of 16-bit inputs in fixed point, for AVX-512 with vpdpwssd: S^T = K Q^T and O^T += V^T P^T in sums
// of integers, two products of 16 bits a step and lane, which are exact and so the same in any order. Every row of Q, K
// and V has a scale of its own, and so have a query's weights in every tile. Lanes are queries. Level: block.
#if defined(__x86_64__)
#include "attention_integer_packing.hpp"
#include "attention_weights.hpp"

namespace regroup::tiles {
namespace {

words load(const std::int32_t* from) {
  words x;
  std::memcpy(&x, from, sizeof x);
  return x;
}
words all(std::int32_t x) { return x - words{}; }
words add(const words& sum, const words& a, const words& b) {
  return words(_mm512_dpwssd_epi32(__m512i(sum), __m512i(a), __m512i(b)));
}
Pack as_floats(const words& x) { return {__builtin_convertvector(x, Pack::vector)}; }

/// How many words of K or V ahead are prefetched: 32 lines.
constexpr index ahead = 32 * width;

/// Computes R rows of s, for keys from `row` on, in V packs of lanes.
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

/// Adds to R rows of o, columns of v from `row` on, in V packs of lanes, the pairs of keys [from, to).
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

/// Weights are rounded to of_integers times an integer, which is the weight times of_numbers. The largest weight is such a
/// multiple exactly, so that equal weights have no common rounding error.
struct weight_scale {
  Pack of_integers, of_numbers;
};

/// Replaces s by weights times the scales of their values, for the keys [from, to) and 16 queries, and adds the weights to l.
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
  // 0 where weights are so small that units / top may overflow a float.
  const auto is_nothing = unit.x <= Pack::all(0x1p-110f).x;
  return {{is_nothing ? Pack::vector{} : exact.x}, {is_nothing ? Pack::vector{} : units.x / top.x}};
}

/// p = the weights times `scale`, rounded to integers, two keys a word.
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

/// The weights of one group of lanes, over its keys [from, to).
template <class T>
[[gnu::always_inline]] inline void weigh_group(const integer_tile<T>& t, index lane, index from, index to,
                                               bool& grows) {
  float* const s = t.s + lane;
  const Pack hidden = Pack::all(-math::detail::infinity<float>);
  if (!t.is_whole) hide<Pack>(s, t.lanes, from, to, t.first + lane, t.last + lane);
  // Padded with hidden keys to whole steps of four.
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
  if (grow(t.m + lane, top, l, t.factor + lane)) grows = true;
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
