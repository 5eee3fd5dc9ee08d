// SPDX-License-Identifier: Apache-2.0
// The layouts of mma's fragments: a warp holds every element of a matrix exactly once; some lanes are as the documentation's
// tables say; and products by emulated warps are those of the matrices, in whichever order pairs are given.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "emulator.hpp"
#include "regroup/cuda/mma.hpp"

namespace {

using emulated::machine;
using regroup::bfloat16;
using regroup::float16;
namespace cuda = regroup::cuda;
using place = cuda::mma_place;

/// Every element of a matrix (rows, columns) is held by one lane, at one place.
template <class At>
void expect_whole(int rows, int columns, int each, const At& at) {
  std::set<std::pair<int, int>> seen;
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < each; ++i) {
      const place p = at(lane, i);
      EXPECT_TRUE(p.row >= 0 && p.row < rows && p.column >= 0 && p.column < columns);
      EXPECT_TRUE(seen.emplace(p.row, p.column).second);
    }
  }
  EXPECT_EQ(static_cast<int>(seen.size()), rows * columns);
}

/// 16 rows and 8 columns of depth 16, small integers: exact in every type.
float left_at(int row, int k) { return static_cast<float>((row * 7 + k * 3) % 13 - 6); }
float right_at(int k, int column) { return static_cast<float>((k * 5 + column * 11) % 17 - 8); }

template <class T>
struct product {
  float* sums;  // (16, 8)
  template <class B>
  void operator()(B& b) const {
    const int lane = b.thread(), row = lane / 4, column = lane % 4 * 2;
    cuda::mma_sums s{{1, 2, 3, 4}};
    const auto pair = [&](int at, const auto& x) {
      return cuda::factor_of(cuda::mma_pair<T>{{T(x(at + column)), T(x(at + column + 1))}});
    };
    const auto upper = [&](int at) { return pair(at, [&](int k) { return left_at(row, k); }); };
    const auto lower = [&](int at) { return pair(at, [&](int k) { return left_at(row + 8, k); }); };
    const auto right = [&](int at) { return pair(at, [&](int k) { return right_at(k, row); }); };
    if constexpr (cuda::mma_depth<T> == 8) {
      for (int k = 0; k < 16; k += 8) s = cuda::multiply(b, upper(k), lower(k), right(k), s);
    } else {
      const auto word = [](const auto& factor) { return factor.words[0]; };
      s = b.template mma<T>({{word(upper(0)), word(lower(0)), word(upper(8)), word(lower(8))}},
                            {{word(right(0)), word(right(8))}}, s);
    }
    for (int i = 0; i < 4; ++i) {
      const place at = cuda::mma_place_sum(lane, i);
      sums[at.row * 8 + at.column] = s.sums[i] - static_cast<float>(1 + i);
    }
  }
};
template <class T>
void expect_the_product() {
  float sums[128] = {};
  machine().run(product<T>{sums}, 1, 32);
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      float expected = 0;
      for (int k = 0; k < 16; ++k) expected += left_at(row, k) * right_at(k, column);
      EXPECT_EQ(sums[row * 8 + column], expected) << row << ", " << column;
    }
  }
}

TEST(mma, holds_every_element_once) {
  expect_whole(16, 16, 8, cuda::mma_place_left<float16>);
  expect_whole(16, 8, 4, cuda::mma_place_right<bfloat16>);
  expect_whole(16, 8, 4, cuda::mma_place_left<float>);
  expect_whole(8, 8, 2, cuda::mma_place_right<float>);
  expect_whole(16, 8, 4, cuda::mma_place_sum);
}

TEST(mma, is_laid_out_as_documented) {  // lane 13: the fourth row of eight, the second place of four
  const place left_16[] = {{3, 2}, {3, 3}, {11, 2}, {11, 3}, {3, 10}, {3, 11}, {11, 10}, {11, 11}};
  const place right_16[] = {{2, 3}, {3, 3}, {10, 3}, {11, 3}};
  const place left_8[] = {{3, 1}, {11, 1}, {3, 5}, {11, 5}};
  const place right_8[] = {{1, 3}, {5, 3}};
  const place sums[] = {{3, 2}, {3, 3}, {11, 2}, {11, 3}};
  for (int i = 0; i < 8; ++i) EXPECT_EQ(cuda::mma_place_left<float16>(13, i), left_16[i]);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(cuda::mma_place_right<float16>(13, i), right_16[i]);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(cuda::mma_place_left<float>(13, i), left_8[i]);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(cuda::mma_place_right<float>(13, i), right_8[i]);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(cuda::mma_place_sum(13, i), sums[i]);
}

/// Element (row, column) of matrix m of four.
std::uint32_t entry(int m, int row, int column) { return static_cast<std::uint32_t>(100 + m * 64 + row * 8 + column); }

template <bool Transposed>
struct loads {
  cuda::mma_left* words;  // a lane's
  template <class B>
  void operator()(B& b) const {
    const auto x = b.template shared<cuda::mma_row, 64>();
    const int lane = b.thread();
    cuda::mma_row row{};
    for (int c = 0; c < 8; ++c) row.words[c / 2] |= entry(lane / 8, lane % 8, c) << c % 2 * 16;
    x.set(2 * lane, row);
    b.barrier();
    words[lane] = b.template matrices<Transposed>(x, 2 * lane);
  }
};

TEST(mma, loads_matrices_as_documented) {
  EXPECT_EQ(cuda::mma_place_loaded(13, 1, false), (place{3, 3}));
  EXPECT_EQ(cuda::mma_place_loaded(13, 1, true), (place{3, 3}));
  EXPECT_EQ(cuda::mma_place_loaded(30, 0, false), (place{7, 4}));
  EXPECT_EQ(cuda::mma_place_loaded(30, 0, true), (place{4, 7}));
  cuda::mma_left rows[32], columns[32];
  machine().run(loads<false>{rows}, 1, 32);
  machine().run(loads<true>{columns}, 1, 32);
  for (int lane = 0; lane < 32; ++lane) {
    for (int m = 0; m < 4; ++m) {
      for (int i = 0; i < 2; ++i) {  // as PTX's tables have it
        EXPECT_EQ(rows[lane].words[m] >> 16 * i & 0xffffu, entry(m, lane / 4, lane % 4 * 2 + i)) << lane;
        EXPECT_EQ(columns[lane].words[m] >> 16 * i & 0xffffu, entry(m, lane % 4 * 2 + i, lane / 4)) << lane;
      }
    }
  }
}

TEST(mma, multiplies_pairs) {
  expect_the_product<float16>();
  expect_the_product<bfloat16>();
  expect_the_product<float>();
}

TEST(mma, splits_a_float_in_two_tf32) {
  for (const float x : {1.0f, 0x1.fffffep+0f, -0x1.234568p-3f, 3.14159274f, 0x1.001p+0f}) {
    const auto factor = cuda::factor_of(cuda::mma_pair<float>{{7, x}});
    const float large = std::bit_cast<float>(factor.words[1]), rest = std::bit_cast<float>(factor.words[3]);
    EXPECT_EQ((factor.words[1] | factor.words[3]) & 0x1fffu, 0u);
    EXPECT_LE(std::abs(x - large), std::abs(x) * 0x1p-11f);
    EXPECT_LE(std::abs(x - large - rest), std::abs(x) * 0x1p-23f);
    EXPECT_EQ(std::bit_cast<float>(factor.words[0]), 7);
    EXPECT_EQ(std::bit_cast<float>(factor.words[2]), 0);
  }
  constexpr float most = std::numeric_limits<float>::max(), infinity = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(cuda::has_factor(0x1.ffdp+127f));
  for (const float x : {most, -most, infinity, -infinity, infinity - infinity}) EXPECT_FALSE(cuda::has_factor(x)) << x;
  EXPECT_TRUE(cuda::has_factor(float16(65504.0f)));
  EXPECT_FALSE(cuda::has_factor(bfloat16(-infinity)));
}

}  // namespace
