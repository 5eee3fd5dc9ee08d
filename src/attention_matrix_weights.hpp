// SPDX-License-Identifier: Apache-2.0
// Weights for AMX's matrices: exp to bfloat16's precision, rounded by truncation, and their sum. Local to
// src/attention_tile_v4_amx.cpp. Level: lane.
#pragma once

#include "attention_matrix_packing.hpp"

namespace regroup::tiles {
namespace {

constexpr float log2_e = 0x1.715476p+0f;

/// x = 2^x, for x <= 6, plus 2^-8 of its leading bit, so that truncation to bfloat16 rounds. The error is 2^-13.7.
template <int N>
[[gnu::always_inline]] inline void exp2_to_cut(packs<Pack, N>& x) {
  packs<Pack, N> r, p;
  unrolled<N>([&](int i) { r[i].x = Pack::vector(_mm512_maskz_reduce_ps(0xffff, __m512(x[i].x), 0x09)); });
  unrolled<N>([&](int i) { p[i] = Pack::fma(r[i], Pack::all(0x1.3f96a4p-4f), Pack::all(0x1.cefc4cp-3f)); });
  unrolled<N>([&](int i) { p[i] = Pack::fma(p[i], r[i], Pack::all(0x1.64444cp-1f)); });
  unrolled<N>([&](int i) { p[i] = Pack::fma(p[i], r[i], Pack::all(0x1.fff632p-1f + 0x1p-8f)); });
  unrolled<N>([&](int i) { x[i].x = Pack::vector(_mm512_maskz_scalef_ps(0xffff, __m512(p[i].x), __m512(x[i].x))); });
}

/// Two weights truncated to bfloat16, side by side.
inline Pack cut(const Pack& even, const Pack& odd) {
  const auto low = reinterpret_cast<Pack::bits>(even.x) >> 16, high = reinterpret_cast<Pack::bits>(odd.x);
  return {reinterpret_cast<Pack::vector>(
      _mm512_ternarylogic_epi32(__m512i(low), __m512i(high), __m512i(0xffff0000u - Pack::bits{}), 0xf8))};
}

/// Whether s times scale is exact for every s, so that an fma gives the same bits with scale folded into its factor.
inline bool is_exact(float scale) {
  std::uint32_t bits;
  std::memcpy(&bits, &scale, sizeof bits);
  return (bits & 0x7fffff) == 0 && scale > 0x1p-60f && scale < 0x1p+60f;
}

/// Whether scores have been multiplied by scale already (scaled), or are to be, with a rounding (plain) or exactly. In every
/// case a weight is 2^x for x = fma(s scale, log2 e, -frame log2 e). For frames beyond `most_of_near_frame`, where the rounding
/// of that product would show, and for infinite ones, x = (s scale - frame) log2 e. Each query chooses by its own frame, so
/// that its bits do not depend on the others.
enum class score { scaled, plain, plain_of_exact_scale, scaled_of_any_frame };
constexpr float most_of_near_frame = 512;
inline auto is_near(const Pack& frame) {  // false for NaN
  return (frame.x <= most_of_near_frame) & (frame.x >= -most_of_near_frame);
}

/// Weights of 16 queries, in pairs of keys, and their sum; prefetches rows meanwhile.
template <score Score>
[[gnu::always_inline]] inline Pack weigh(const tile<T>& t, const float* s, float* pairs, index keys, const Pack& frame,
                                         Pack l, rows_ahead<T>& ahead) {
  const Pack minus = {frame.x * -log2_e}, scale = Pack::all(t.scale), infinity = Pack::all(math::detail::infinity<float>);
  const Pack factor = Pack::all(Score == score::plain_of_exact_scale ? t.scale * log2_e : log2_e);
  const auto near = is_near(frame);
  const Pack ones = {reinterpret_cast<Pack::vector>(0x3f803f80 - Pack::integers{})};
  for (index j = 0; j < keys; j += 4) {
    ahead.fetch_row();
    ahead.fetch_row();
    const float* const row = s + j * t.queries;
    packs<Pack, 4> w;
    unrolled<4>([&](int i) {
      w[i] = Pack::load(row + i * t.queries);
      if constexpr (Score == score::plain) w[i] = Pack::product(w[i], scale);
      const Pack far = {(w[i].x - frame.x) * log2_e};
      w[i] = Pack::fma(w[i], factor, minus);
      if constexpr (Score == score::scaled_of_any_frame) w[i].x = near ? w[i].x : far.x;
    });
    exp2_to_cut<4>(w);
    if constexpr (Score == score::scaled_of_any_frame) {
      unrolled<4>([&](int i) {
        const Pack x = Pack::load(row + i * t.queries);
        w[i].x = ((x.x == infinity.x) & (frame.x == infinity.x)) ? Pack::all(1).x : w[i].x;
      });
    }
    unrolled<2>([&](int i) {
      const Pack pair = cut(w[2 * i], w[2 * i + 1]);
      pair.store(pairs + (j / 2 + i) * t.queries);
      l.x = reinterpret_cast<Pack::vector>(
          _mm512_dpbf16_ps(__m512(l.x), reinterpret_cast<__m512bh>(pair.x), reinterpret_cast<__m512bh>(ones.x)));
    });
  }
  return l;
}

}  // namespace
}  // namespace regroup::tiles
