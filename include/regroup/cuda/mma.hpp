// SPDX-License-Identifier: Apache-2.0
// Products of small matrices by a warp, 16 x depth times depth x 8 added to 16 x 8: who holds what, as PTX documents it
// (PTX ISA 9.7.14, mma.m16n8k16 for 16 bits, mma.m16n8k8 for tf32). In what order a tensor core adds is not documented, so
// results are within a bound and have the bits of one kind of device. Level: warp.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "regroup/float16.hpp"

namespace regroup::cuda {

/// The depth of one product of T: float16, bfloat16, or float, of which the lower 13 bits are not looked at (tf32).
template <class T>
inline constexpr int mma_depth = sizeof(T) == 2 ? 16 : 8;

/// What a lane holds: two elements to a word, or one.
struct mma_left {
  std::uint32_t words[4];
};
struct mma_right {
  std::uint32_t words[2];
};
struct mma_sums {
  float sums[4];
};

/// Where element i of a lane's stands in its matrix: 8 or 4 of the left one, 4 or 2 of the right one, 4 sums.
struct mma_place {
  int row, column;
  friend constexpr bool operator==(const mma_place&, const mma_place&) = default;
};
template <class T>
constexpr mma_place mma_place_left(int lane, int i) {
  if constexpr (mma_depth<T> == 16) {
    return {lane / 4 + i / 2 % 2 * 8, lane % 4 * 2 + i % 2 + i / 4 * 8};
  } else {
    return {lane / 4 + i % 2 * 8, lane % 4 + i / 2 * 4};
  }
}
template <class T>
constexpr mma_place mma_place_right(int lane, int i) {
  if constexpr (mma_depth<T> == 16) {
    return {lane % 4 * 2 + i % 2 + i / 2 * 8, lane / 4};
  } else {
    return {lane % 4 + i * 4, lane / 4};
  }
}
constexpr mma_place mma_place_sum(int lane, int i) { return {lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2}; }

/// Element i of a lane's words.
template <class T>
constexpr T mma_element(const std::uint32_t* words, int i) {
  if constexpr (mma_depth<T> == 16) {
    return T::from_bits(static_cast<std::uint16_t>(words[i / 2] >> (i % 2 * 16)));
  } else {
    return std::bit_cast<float>(words[i] & ~0x1fffu);
  }
}

/// Two neighbours of a row, as fragments hold them: 16 bits side by side in a word, or two floats.
template <class T>
struct mma_pair {
  T of[2];
};
template <class T>
constexpr std::uint32_t mma_word(const mma_pair<T>& x) {
  return static_cast<std::uint32_t>(x.of[0].bits) | static_cast<std::uint32_t>(x.of[1].bits) << 16;
}
/// The nearest tf32, in the bits of a float.
constexpr float nearest_tf32(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  return x - x == 0 ? std::bit_cast<float>((bits + 0x0fffu + (bits >> 13 & 1u)) & ~0x1fffu) : x + x;
}

/// sums + left right for 8 columns of depth at a time, in pairs: lane t of a row's four has the columns 2 t and 2 t + 1 of
/// each 8. 16 bits take two eights at once. A float is taken as a tf32 and a tf32 of what is left, three products in all;
/// the columns are handed over in another order, left and right alike, which changes no sum.
template <class T>
inline constexpr int mma_eights = mma_depth<T> / 8;
template <class T>
using mma_pairs = mma_pair<T>[static_cast<std::size_t>(mma_eights<T>)];
template <class T, class Block>
constexpr mma_sums multiply_pairs(Block& b, const mma_pairs<T>& upper, const mma_pairs<T>& lower, const mma_pairs<T>& right,
                                  mma_sums sums) {
  if constexpr (mma_eights<T> == 2) {
    return b.template mma<T>({{mma_word(upper[0]), mma_word(lower[0]), mma_word(upper[1]), mma_word(lower[1])}},
                             {{mma_word(right[0]), mma_word(right[1])}}, sums);
  } else {
    const auto words = [](float x) { return std::bit_cast<std::uint32_t>(x); };
    const auto large = [&](float x) { return words(nearest_tf32(x)); };
    const auto small = [&](float x) { return x - x == 0 ? words(nearest_tf32(x - nearest_tf32(x))) : 0u; };
    const auto left = [&](const auto& part) {
      return mma_left{{part(upper[0].of[0]), part(lower[0].of[0]), part(upper[0].of[1]), part(lower[0].of[1])}};
    };
    const auto below = [&](const auto& part) { return mma_right{{part(right[0].of[0]), part(right[0].of[1])}}; };
    sums = b.template mma<float>(left(small), below(large), sums);
    sums = b.template mma<float>(left(large), below(small), sums);
    return b.template mma<float>(left(large), below(large), sums);
  }
}

}  // namespace regroup::cuda
