// SPDX-License-Identifier: Apache-2.0
// Attention's kernels of bfloat16 for AMX: S^T = K Q^T and O^T += V^T P^T in products of 16 x 32 by 32 x 16, for 16 or 32
// queries and 32 keys at a time. Up to 16 queries alone (decoding) take O += P V, the same sums, which transposes P and not V.
// K's rows, and V's columns, are packed into such matrices once for all consecutive blocks of queries. The bits of a product
// (tdpbf16ps, properties/attention/matrices.cpp): two chains of fma from 0, one over the even terms and one over the odd ones,
// are added, and their sum is added to the accumulator. Denormals are 0. Level: block.
#if defined(__x86_64__)
#include <algorithm>

#include "attention_matrix_rows.hpp"
#include "attention_matrix_weights.hpp"
#include "attention_weights.hpp"

namespace regroup::tiles {
namespace {

/// Registers 0 to 3 accumulate, 4 and 5 hold keys or values, 6 and 7 queries or weights.
void enter() {
  struct {
    std::uint8_t palette = 1, start = 0, none[14] = {};
    std::uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  } const layout;
  static_assert(sizeof layout == 64);
  asm volatile("" ::"r"(&layout) : "memory");
  _tile_loadconfig(&layout);
}
void leave() { _tile_release(); }

/// Sums in 2 x Groups registers: a block of 32 rows and 16 Groups columns. They are stored only when the next block needs the
/// registers, since storing at once waits for the last product. K and V bypass the first cache, which s, o and q fill (1.6x at
/// d = 128).
template <int Groups>
struct sums {
  index step;  // bytes from row to row
  float* before = nullptr;

  template <int I>
  [[gnu::always_inline]] void store() const {
    float* const to = before + (I / 2 * side * step) / index{sizeof(float)} + I % 2 * side;
    if constexpr (I == 0) _tile_stored(0, to, step);
    if constexpr (I == 1) _tile_stored(1, to, step);
    if constexpr (I == 2) _tile_stored(2, to, step);
    if constexpr (I == 3) _tile_stored(3, to, step);
  }
  template <int I, bool Loads>
  [[gnu::always_inline]] void renew(const float* next) const {
    if (before != nullptr) store<I>();
    const float* const from = next + (I / 2 * side * step) / index{sizeof(float)} + I % 2 * side;
    if constexpr (I == 0 && Loads) _tile_loadd(0, from, step);
    if constexpr (I == 1 && Loads) _tile_loadd(1, from, step);
    if constexpr (I == 2 && Loads) _tile_loadd(2, from, step);
    if constexpr (I == 3 && Loads) _tile_loadd(3, from, step);
    if constexpr (I == 0 && !Loads) _tile_zero(0);
    if constexpr (I == 1 && !Loads) _tile_zero(1);
    if constexpr (I == 2 && !Loads) _tile_zero(2);
    if constexpr (I == 3 && !Loads) _tile_zero(3);
  }
  /// next = a b, or next += a b if Loads. a is one pair of matrices a step; rows of b are b_step bytes apart.
  template <bool Loads>
  [[gnu::always_inline]] void block(float* next, const T* a, const float* b, index b_step, index steps) {
    _tile_stream_loadd(4, a, 64);
    _tile_loadd(6, b, b_step);
    renew<0, Loads>(next);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (Groups == 2) {
      _tile_loadd(7, b + side, b_step);
      renew<1, Loads>(next);
      _tile_dpbf16ps(1, 4, 7);
    }
    _tile_stream_loadd(5, a + matrix, 64);
    renew<2, Loads>(next);
    _tile_dpbf16ps(2, 5, 6);
    if constexpr (Groups == 2) {
      renew<3, Loads>(next);
      _tile_dpbf16ps(3, 5, 7);
    }
    for (index s = 1; s < steps; ++s) {
      a += 2 * matrix;
      b += side * b_step / index{sizeof(float)};
      _tile_stream_loadd(4, a, 64);
      _tile_loadd(6, b, b_step);
      _tile_dpbf16ps(0, 4, 6);
      if constexpr (Groups == 2) {
        _tile_loadd(7, b + side, b_step);
        _tile_dpbf16ps(1, 4, 7);
      }
      _tile_stream_loadd(5, a + matrix, 64);
      _tile_dpbf16ps(2, 5, 6);
      if constexpr (Groups == 2) _tile_dpbf16ps(3, 5, 7);
    }
    before = next;
  }
  void finish() {
    if (before == nullptr) return;
    store<0>();
    if constexpr (Groups == 2) store<1>();
    store<2>();
    if constexpr (Groups == 2) store<3>();
    before = nullptr;
    written();
  }
};

template <int Groups>
void add_scores(const tile<T>& t, sums<Groups>& all) {
  const span_of_keys keys(t);
  constexpr index lanes = Groups * side, step = lanes * index{sizeof(float)};
  const index steps = steps_of(t.d);
  for (index j = keys.first; j < keys.last && steps > 0; j += keys_at_once) {
    all.template block<false>(t.s + j * lanes, t.k_tiles + j / 32 * steps * 2 * matrix, t.q, step, steps);
  }
}

template <int Groups>
void add_values(const tile<T>& t, sums<Groups>& all) {
  const span_of_keys keys(t);
  constexpr index lanes = Groups * side, step = lanes * index{sizeof(float)};
  const index first = keys.first / keys_at_once, steps = keys.last / keys_at_once - first;
  for (index c = 0; c < t.dv; c += 32) {
    all.template block<true>(t.o + c * lanes, t.v_tiles + (c / 32 * 2 + first) * 2 * matrix,
                             t.pairs + keys.first / 2 * lanes, step, steps);
  }
}

Pack scaled(const tile<T>& t, const float* at) { return Pack::product(Pack::load(at), Pack::all(t.scale)); }

/// Multiplies 16 lanes of O's rows by factor.
void correct(float* o, index lanes, index dv, const Pack& factor) {
  for (index c = 0; c < dv; ++c) Pack::product(Pack::load(o + c * lanes), factor).store(o + c * lanes);
}

template <int Groups>
void correct(const tile<T>& t) {
  for (index group = 0; group < Groups; ++group) {
    const index lane = group * side;
    if (t.grows[group]) correct(t.o + lane, Groups * side, t.dv, Pack::load(t.factor + lane));
  }
}

template <int Groups>
float* multiply_in(const tile<T>* next, const tile<T>* previous, float* unsaved) {
  sums<Groups> all{Groups * side * index{sizeof(float)}, unsaved};
  if (previous != nullptr && (previous->grows[0] || (Groups == 2 && previous->grows[1]))) {
    all.finish();
    correct<Groups>(*previous);
  }
  written();
  if (next != nullptr) add_scores<Groups>(*next, all);
  const float* const of_scores = all.before;
  if (previous != nullptr) add_values<Groups>(*previous, all);
  if (next == nullptr || all.before == of_scores) all.finish();  // no part of O is left to store
  return all.before;
}

float* multiply(const tile<T>* next, const tile<T>* previous, float* unsaved) {
  if (previous != nullptr && previous->by_rows) {
    add_rows_of_values(*previous);
    return nullptr;
  }
  const index lanes = (next != nullptr ? next : previous)->queries;
  if (next != nullptr && next->d == 0) std::fill(next->s, next->s + tile_keys * lanes, 0.0f);
  if (next != nullptr && next->k_step != 0) {
    score_rows(*next);
  } else {
    unsaved = lanes == side ? multiply_in<1>(next, previous, unsaved) : multiply_in<2>(next, previous, unsaved);
  }
  for (index j = 0; next != nullptr && next->scales_first && j < next->n * lanes; j += side) {
    scaled(*next, next->s + j).store(next->s + j);
  }
  return unsaved;
}

void save(index lanes, float* unsaved) {
  const index step = lanes * index{sizeof(float)};
  lanes == side ? sums<1>{step, unsaved}.finish() : sums<2>{step, unsaved}.finish();
}

/// Weights are relative to a frame, which is raised to the maximum m when it is more than this behind.
constexpr float most_behind = 4;

void weights(const tile<T>& t) {
  const span_of_keys keys(t);
  const Pack hidden = Pack::all(-math::detail::infinity<float>);
  const bool plain = !t.scales_first && t.scale > 0;  // scaling does not change which score is the largest
  for (index lane = 0; lane < t.queries; lane += side) {
    const index group = lane / side;
    t.grows[group] = false;
    if (keys.empty()) continue;
    const auto scale_all = [&] {
      for (index j = keys.first; j < keys.last; ++j) {
        float* const at = t.s + j * t.queries + lane;
        scaled(t, at).store(at);
      }
    };
    if (!t.scales_first && !plain) scale_all();
    if (!t.is_whole) hide<Pack>(t.s + lane, t.queries, keys.first, keys.last, t.first + lane, t.last + lane);
    for (index j = t.is_whole ? t.n : keys.last; j < keys.last; ++j) hidden.store(t.s + j * t.queries + lane);
    float* const s = t.s + keys.first * t.queries + lane;
    packs<Pack, 4> tops = {hidden, hidden, hidden, hidden};
    rows_ahead<T> ahead(part_of(t.by_rows ? t.v : nullptr, 2 * side, tile_keys, t.dv),
                        part_of(t.by_rows ? t.next_k : nullptr, 0, side, t.d));
    for (index j = 0; j < keys.last - keys.first; j += 4) {
      ahead.fetch_row();
      unrolled<4>([&](int i) { tops[i] = Pack::larger(Pack::load(s + (j + i) * t.queries), tops[i]); });
    }
    Pack top = Pack::larger(Pack::larger(tops[0], tops[1]), Pack::larger(tops[2], tops[3]));
    if (plain) top = Pack::product(top, Pack::all(t.scale));
    Pack::larger(top, Pack::load(t.m + lane)).store(t.m + lane);
    Pack frame = Pack::load(t.frame + lane);
    Pack l = Pack::load(t.l + lane);
    const auto grows = top.x > frame.x + most_behind;
    if (Pack::any(grows)) {
      t.grows[group] = true;
      const Pack factor = {grows ? decay(Pack{frame.x - top.x}).x : Pack::all(1).x};
      frame.x = grows ? top.x : frame.x;
      factor.store(t.factor + lane);
      frame.store(t.frame + lane);
      l = Pack::product(l, factor);
    }
    float* const pairs = t.pairs + keys.first / 2 * t.queries + lane;
    const Pack seen = {frame.x == hidden.x ? Pack::vector{} : frame.x};
    const index n = keys.last - keys.first;
    if (Pack::any(!is_near(seen))) {
      if (plain) scale_all();
      l = weigh<score::scaled_of_any_frame>(t, s, pairs, n, seen, l, ahead);
    } else if (plain && is_exact(t.scale)) {
      l = weigh<score::plain_of_exact_scale>(t, s, pairs, n, seen, l, ahead);
    } else if (plain) {
      l = weigh<score::plain>(t, s, pairs, n, seen, l, ahead);
    } else {
      l = weigh<score::scaled>(t, s, pairs, n, seen, l, ahead);
    }
    l.store(t.l + lane);
  }
  if (t.by_rows && !keys.empty()) transpose_weights(t, keys);
}

void settle(index lanes, index dv, const float* m, const float* frame, float* l, float* o, bool by_rows) {
  if (by_rows) put_columns_right(o, dv);
  for (index lane = 0; lane < lanes; lane += side) {
    const Pack from = Pack::load(frame + lane), to = Pack::load(m + lane);
    const auto is_behind = to.x > from.x;
    if (!Pack::any(is_behind)) continue;
    const Pack factor = {is_behind ? decay(Pack{from.x - to.x}).x : Pack::all(1).x};
    Pack::product(Pack::load(l + lane), factor).store(l + lane);
    if (!by_rows) {
      correct(o + lane, lanes, dv, factor);
      continue;
    }
    alignas(64) float factors[side];
    factor.store(factors);
    correct_rows(o, dv, factors);
  }
}

}  // namespace

constinit const matrix_kernels x86_64_v4_amx = {enter, leave, pack_keys, pack_values, multiply, save, weights, settle};

}  // namespace regroup::tiles
#endif
