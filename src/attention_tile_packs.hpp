// SPDX-License-Identifier: Apache-2.0
// Attention's kernel for x86 with fma, written once. Included by one file for each instruction set, to which everything
// here is local. R rows by V packs of lanes stay in registers: enough independent chains to hide an fma's latency.
#pragma once

#include <immintrin.h>

#include <cstring>
#include <utility>

#include "attention_tile.hpp"

namespace regroup::tiles {
namespace {

/// Lanes in one register.
template <class Real, int Bytes>
struct pack {
  typedef Real vector __attribute__((vector_size(Bytes)));  // NOLINT: aliases cannot carry it in a template
  static constexpr std::int64_t width = Bytes / static_cast<int>(sizeof(Real));
  static constexpr bool is_float = sizeof(Real) == 4;
  vector x;

  static pack load(const Real* from) {
    pack p;
    std::memcpy(&p.x, from, Bytes);
    return p;
  }
  void store(Real* to) const { std::memcpy(to, &x, Bytes); }
  static pack all(Real value) { return {value - vector{}}; }  // x - 0 is x, -0 too: a broadcast
  static pack fma(const pack& a, const pack& b, const pack& c) {
#ifdef __AVX512F__
    if constexpr (Bytes == 64 && is_float) return {reinterpret_cast<vector>(_mm512_fmadd_ps(a.x, b.x, c.x))};
    if constexpr (Bytes == 64 && !is_float) return {reinterpret_cast<vector>(_mm512_fmadd_pd(a.x, b.x, c.x))};
#endif
    if constexpr (Bytes == 32 && is_float) return {reinterpret_cast<vector>(_mm256_fmadd_ps(a.x, b.x, c.x))};
    if constexpr (Bytes == 32 && !is_float) return {reinterpret_cast<vector>(_mm256_fmadd_pd(a.x, b.x, c.x))};
    if constexpr (Bytes == sizeof(float) && is_float) return {vector{__builtin_fmaf(a.x[0], b.x[0], c.x[0])}};
    if constexpr (Bytes == sizeof(double) && !is_float) return {vector{__builtin_fma(a.x[0], b.x[0], c.x[0])}};
  }
};

template <class Pack, int R, int V, class Real>
inline void block(const products<Real>& p, std::int64_t row, std::int64_t lane) {
  [&]<int... I>(std::integer_sequence<int, I...>) {
    const Real* a = p.a + row * p.a_row;
    const Real* b = p.b + lane;
    Real* const to = p.acc + row * p.acc_row + lane;
    const std::int64_t a_row = p.a_row, a_step = p.a_step, b_step = p.b_step;
    Pack acc[] = {Pack::load(to + I / V * p.acc_row + I % V * Pack::width)...};
    for (std::int64_t x = 0; x < p.steps; ++x, a += a_step, b += b_step) {
      ((acc[I] = Pack::fma(Pack::all(a[I / V * a_row]), Pack::load(b + I % V * Pack::width), acc[I])), ...);
    }
    (acc[I].store(to + I / V * p.acc_row + I % V * Pack::width), ...);
  }
  (std::make_integer_sequence<int, R * V>{});
}

/// All rows of V packs of lanes, R at a time.
template <class Pack, int R, int V, class Real>
inline void panel(const products<Real>& p, std::int64_t lane) {
  std::int64_t row = 0;
  for (; row + R <= p.rows; row += R) block<Pack, R, V>(p, row, lane);
  for (; row < p.rows; ++row) block<Pack, 1, V>(p, row, lane);
}

/// Panels of V packs, and what is left of the lanes; few rows take wide panels instead, for as many chains.
template <class Real, int Bytes, int R, int V>
inline void multiply_add_packs(const products<Real>& p) {
  using wide = pack<Real, Bytes>;
  using half = pack<Real, 32>;
  using one = pack<Real, static_cast<int>(sizeof(Real))>;
  std::int64_t lane = 0;
  if (p.rows < R) {
    for (; lane + R * V * wide::width <= p.lanes; lane += R * V * wide::width) panel<wide, 1, R * V>(p, lane);
  }
  for (; lane + V * wide::width <= p.lanes; lane += V * wide::width) panel<wide, R, V>(p, lane);
  for (; lane + wide::width <= p.lanes; lane += wide::width) panel<wide, 8, 1>(p, lane);
  for (; lane + half::width <= p.lanes; lane += half::width) panel<half, 8, 1>(p, lane);
  for (; lane < p.lanes; ++lane) panel<one, 8, 1>(p, lane);
}

}  // namespace
}  // namespace regroup::tiles
