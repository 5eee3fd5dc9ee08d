// SPDX-License-Identifier: Apache-2.0
// Folds of a pack's lanes by halving, one pack alone or as many as it has lanes. Local to each instruction set's file.
// Level: lane.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "packs.hpp"

namespace regroup::tiles {
namespace {

/// The fold of all lanes by halving: lane[0] after lane[j] = op(lane[j], lane[j + h]) for h = width / 2, ..., 1.
template <class Pack, class Op>
inline typename Pack::Real halved(Pack x, const Op& op) {
  constexpr int n = Pack::width;
  unrolled<std::countr_zero(unsigned{n})>([&](auto step) {
    x = op(x, Pack{shuffled(x.x, x.x, [](int i) { return (i + (n >> (decltype(step)::value + 1))) % n; })});
  });
  return x.x[0];
}
/// The same over N packs, a power of two, taken as one row of lanes; or only until one pack is left.
template <class Pack, int N, class Op>
inline Pack halved_to_pack(packs<Pack, N>& x, const Op& op) {
  unrolled<std::countr_zero(unsigned{N})>([&](auto step) {
    constexpr int h = N >> (decltype(step)::value + 1);
    unrolled<h>([&](int k) { x[k] = op(x[k], x[k + h]); });
  });
  return x[0];
}
template <class Pack, int N, class Op>
inline typename Pack::Real halved(packs<Pack, N>& x, const Op& op) {
  return halved(halved_to_pack<Pack, N>(x, op), op);
}

/// The first or the second halves of blocks of Block lanes, those of a and of b. No block leaves its lane of 16 bytes, if one
/// holds it.
template <int Block, int Half, class Pack>
inline Pack halves_of_blocks(const Pack& a, const Pack& b) {
  return {shuffled(a.x, b.x, [](int i) {
    constexpr int n = Pack::width, half = Block / 2;
    constexpr int unit = Block > lane_width<typename Pack::vector> ? n : lane_width<typename Pack::vector>;
    const int place = i % unit % (unit / 2);
    return i % unit / (unit / 2) * n + i / unit * unit + place / half * Block + place % half + Half * half;
  })};
}
/// Folds the lanes of as many rows as a pack has, each as `halved` does: row k, in x[place_to_fold<Pack>(k)], ends in lane k. A
/// shuffle serves two rows or more.
template <class Pack, class Op>
inline Pack folded(packs<Pack, Pack::width>& x, const Op& op) {
  constexpr int n = Pack::width;
  unrolled<std::countr_zero(unsigned{n})>([&](auto step) {
    constexpr int block = n >> decltype(step)::value;
    unrolled<block / 2>([&](int i) {
      const Pack a = x[2 * i], b = x[2 * i + 1];
      x[i] = op(halves_of_blocks<block, 0>(a, b), halves_of_blocks<block, 1>(a, b));
    });
  });
  return x[0];
}
template <class Pack>
constexpr std::int64_t place_to_fold(std::int64_t row) {
  constexpr std::int64_t n = lane_width<typename Pack::vector>;
  return row % n * (Pack::width / n) + row / n;
}

}  // namespace
}  // namespace regroup::tiles
