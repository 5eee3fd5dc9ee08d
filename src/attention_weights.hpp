// SPDX-License-Identifier: Apache-2.0
// From scores to weights, a pack of lanes at a time: hidden keys, the running maximum, and decay. Local to each instruction
// set's file. Level: lane.
#pragma once

#include <cstdint>

#include "packs.hpp"

namespace regroup::tiles {
namespace {

/// Scores are -inf where lane i does not see the key, one of [first[i], last[i]); keys [from, to), `step` scores apart.
template <class Pack>
inline void hide(typename Pack::Real* s, std::int64_t step, std::int64_t from, std::int64_t to, const std::int32_t* first,
                 const std::int32_t* last) {
  typename Pack::integers begin{}, end{};
  for (int i = 0; i < Pack::width; ++i) {
    begin[i] = first[i];
    end[i] = last[i];
  }
  const Pack hidden = Pack::all(-math::detail::infinity<typename Pack::Real>);
  for (std::int64_t j = from; j < to; ++j) {
    const auto key = static_cast<typename Pack::word>(j) - typename Pack::integers{};
    const auto seen = (key >= begin) & (key < end);
    Pack{seen ? Pack::load(s + j * step).x : hidden.x}.store(s + j * step);
  }
}

/// Raises the maximum m to `top` where that is larger, and stores in `factor` what corrects sums that are relative to m; l is
/// corrected here. Returns whether any m grew.
template <class Pack>
inline bool grow(typename Pack::Real* m, const Pack& top, Pack& l, typename Pack::Real* factor) {
  const Pack before = Pack::load(m);
  const bool grows = Pack::any(top.x > before.x);
  Pack correction = Pack::all(1);
  if (grows) {
    const Pack corrected = decay(Pack{before.x - top.x});
    correction = {top.x > before.x ? corrected.x : correction.x};
    l = Pack::product(l, correction);
    top.store(m);
  }
  correction.store(factor);
  return grows;
}

/// Replaces scores by weights decay(score - m): 1 at the maximum, 0 at -inf. If m is finite these two need no selects.
template <bool IsFinite, class Pack, int N>
inline void weigh(packs<Pack, N>& score, const Pack& m) {
  using vector = typename Pack::vector;
  packs<Pack, N> w;
  unrolled<N>([&](int i) { w[i].x = score[i].x - m.x; });
  decay<Pack, N>(w);
  unrolled<N>([&](int i) {
    if (!IsFinite) {
      w[i].x = score[i].x == m.x ? Pack::all(1).x : w[i].x;
      w[i].x = score[i].x == Pack::all(-math::detail::infinity<typename Pack::Real>).x ? vector{} : w[i].x;
    }
    score[i] = w[i];
  });
}

}  // namespace
}  // namespace regroup::tiles
