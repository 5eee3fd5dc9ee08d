// SPDX-License-Identifier: Apache-2.0
// Products of small matrices by a warp, 16 x depth times depth x 8 added to 16 x 8: who holds what, as PTX documents it
// (PTX ISA 9.7.14, mma.m16n8k16 for 16 bits, mma.m16n8k8 for tf32). In what order a tensor core adds is not documented, so
// results are within a bound and have the bits of one kind of device. Level: warp.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "regroup/cuda/block.hpp"
#include "regroup/float16.hpp"

namespace regroup::cuda {

/// The depth of one product of T: float16, bfloat16, or float, whose lower 13 bits are ignored (tf32).
template <class T>
inline constexpr int mma_depth = sizeof(T) == 2 ? 16 : 8;

/// What a lane holds: two elements in a word, or one.
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

/// Eight elements of 16 bits side by side: a row of one of the four matrices 8 x 8 that a warp loads at once (ldmatrix.x4).
/// Lane i says where row i % 8 of matrix i / 8 is, and has word j of matrix j: two neighbours of its row lane / 4, or,
/// transposed, of its column lane / 4. So four of k (rows are keys), or of v transposed, are the right sides of two
/// products.
struct alignas(16) mma_row {
  std::uint32_t words[4];
};
constexpr mma_place mma_place_loaded(int lane, int i, bool is_transposed) {
  const int of_eight = lane / 4, of_four = lane % 4 * 2 + i;
  return is_transposed ? mma_place{of_four, of_eight} : mma_place{of_eight, of_four};
}

/// Rows of pieces of 16 bytes in shared memory, eight pieces side by side and then the next eight of every row: piece p of
/// row r has its last three binary digits exchanged for those of p ^ r, so that neither eight pieces of a row nor one of
/// eight rows meet a bank twice (and so that `wgmma` reads it: its 128-byte swizzle).
struct mma_buffer {
  int first, rows;
  [[nodiscard]] constexpr int place(int row, int piece) const {
    return first + (piece / 8 * rows + row) * 8 + (piece ^ row) % 8;
  }
};

/// Two neighbours of a row: columns 2 t and 2 t + 1 of eight, which lane t of a row's four has.
template <class T>
struct alignas(2 * sizeof(T)) mma_pair {
  T of[2];
};
/// A float as the nearest tf32, and the rest without its last 13 bits: together they lose at most 2^-23 of it. If the number
/// does not fit (NaN, infinite or too near the largest), the rest is not finite.
struct tf32_parts {
  float nearest, rest;
  explicit constexpr tf32_parts(float x) : nearest(cut(x, 0x1000u)), rest(cut(x - nearest, 0)) {}

 private:
  static constexpr float cut(float x, std::uint32_t more) {
    return std::bit_cast<float>((std::bit_cast<std::uint32_t>(x) + more) & ~0x1fffu);
  }
};

/// A pair as products take it: 16 bits side by side in a word; of each float the nearest tf32, and of each the rest.
template <class T>
struct mma_factor {
  std::uint32_t words[1];
};
template <>
struct alignas(16) mma_factor<float> {
  std::uint32_t words[4];
};
template <class T>
constexpr mma_factor<T> factor_of(const mma_pair<T>& x) {
  if constexpr (mma_depth<T> == 16) {
    return {{static_cast<std::uint32_t>(x.of[0].bits) | static_cast<std::uint32_t>(x.of[1].bits) << 16}};
  } else {
    const auto word = [](float part) { return std::bit_cast<std::uint32_t>(part); };
    const tf32_parts one(x.of[0]), other(x.of[1]);
    return {{word(one.nearest), word(other.nearest), word(one.rest), word(other.rest)}};
  }
}
/// Whether a factor holds x.
template <class T>
constexpr bool has_factor(T x) {
  float last = x;
  if constexpr (mma_depth<T> == 8) last = tf32_parts(x).rest;
  return last - last == 0;
}

/// sums + left right of floats, 8 columns deep, by three products (the rests have none with each other: 2^-22 of a product
/// at most); one that does not fit makes NaN. The columns are handed over in another order, left and right alike, which
/// changes no sum.
template <class Block>
constexpr mma_sums multiply(Block& b, const mma_factor<float>& upper, const mma_factor<float>& lower,
                            const mma_factor<float>& right, mma_sums sums) {
  const auto& [u] = upper;
  const auto& [l] = lower;
  const auto& [r] = right;
  const mma_left large{{u[0], l[0], u[1], l[1]}}, rest{{u[2], l[2], u[3], l[3]}};
  sums = b.template mma<float>(rest, {{r[0], r[1]}}, sums);
  sums = b.template mma<float>(large, {{r[2], r[3]}}, sums);
  return b.template mma<float>(large, {{r[0], r[1]}}, sums);
}

/// Products of a block's four warps with matrices of 16 bits that all of them read from shared memory, by `mma` and
/// `matrices`. A warp has 16 rows of each, of its sums' rows upper[2 n + i] and lower[2 n + i] in the columns 8 n + 2 t + i.
template <class T, class Block>
constexpr void add_product(Block& b, const mma_left& left, const mma_left& right, float* upper, float* lower) {
  unrolled<2>([&](int i) {
    float *const u = upper + 2 * i, *const l = lower + 2 * i;
    const mma_sums sums = b.template mma<T>(left, {{right.words[2 * i], right.words[2 * i + 1]}}, {{u[0], u[1], l[0], l[1]}});
    u[0] = sums.sums[0];
    u[1] = sums.sums[1];
    l[0] = sums.sums[2];
    l[1] = sums.sums[3];
  });
}
/// sums = A B^T, added to the sums or not, over the 16 columns from `piece` on: A the 64 rows of `left` from `row` on, B the
/// rows of `right`.
template <class T, int Eights, class Block, class X>
constexpr void multiply_rows(Block& b, const X& x, mma_buffer left, int row, mma_buffer right, int piece,
                             bool adds, float* upper, float* lower) {
  const int lane = b.thread() % warp_threads;
  row += b.thread() / warp_threads * 16;
  unrolled<2 * Eights>([&](int i) {
    upper[i] = adds ? upper[i] : 0;
    lower[i] = adds ? lower[i] : 0;
  });
  const mma_left of_rows = b.template matrices<false>(x, left.place(row + lane % 16, piece + lane / 16));
  unrolled<Eights / 2>([&](int n) {
    const int key = 16 * n + lane % 8 + lane / 16 * 8;
    const mma_left of_keys = b.template matrices<false>(x, right.place(key, piece + lane / 8 % 2));
    add_product<T>(b, of_rows, of_keys, upper + 4 * n, lower + 4 * n);
  });
}
/// sums += A B: A 64 rows in registers, B the 16 rows of `right` from `row` on, its first 8 Eights columns.
template <class T, int Eights, class Block, class X>
constexpr void multiply_columns(Block& b, const mma_left& left, const X& x, mma_buffer right, int row, float* upper,
                                float* lower) {
  const int lane = b.thread() % warp_threads;
  unrolled<Eights / 2>([&](int n) {
    const mma_left of_columns = b.template matrices<true>(x, right.place(row + lane % 16, 2 * n + lane / 16));
    add_product<T>(b, left, of_columns, upper + 4 * n, lower + 4 * n);
  });
}

}  // namespace regroup::cuda
