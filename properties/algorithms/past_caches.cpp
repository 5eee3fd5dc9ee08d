// SPDX-License-Identifier: Apache-2.0
// Outputs too large for the caches take another way to memory, and have the bits and the places of small ones: odd rows
// that begin anywhere in a cache line, in place, with any threads.
#include <gtest/gtest.h>

#include <cstring>

#include "order/cases.hpp"
#include "regroup/algorithms/softmax.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/scan.hpp"

namespace {

using regroup::index;
using regroup::view;

std::vector<float> numbers(index n) {
  std::vector<float> xs(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < xs.size(); ++i) xs[i] = static_cast<float>(i * 2654435761U % 1009) / 64 - 8;
  return xs;
}
bool same(const float* a, const float* b, index n) {
  return std::memcmp(a, b, static_cast<std::size_t>(n) * sizeof(float)) == 0;
}

constexpr index rows = 3001, columns = 1003;
static_assert(rows * columns * sizeof(float) > regroup::cached_output_bytes);
constexpr float untouched = 77;

TEST(past_caches, softmax_rows) {
  const auto xs = numbers(rows * columns);
  std::vector<float> alone(columns);
  const auto expect_rows = [&](const float* ys) {
    for (const index row : {index{0}, index{1}, index{1500}, rows - 1}) {
      regroup::softmax(regroup::seq, view<const float>(xs.data() + row * columns, {columns}), alone);
      EXPECT_TRUE(same(ys + row * columns, alone.data(), columns)) << row;
    }
  };
  for (const index shift : {0, 1, 5, 15}) {
    std::vector<float> memory(static_cast<std::size_t>(rows * columns + 32), untouched);
    const view<float> ys(memory.data() + shift, {rows, columns});
    regroup::softmax(regroup::par.with_threads(3), view<const float>(xs.data(), {rows, columns}), ys);
    expect_rows(ys.data());
    for (index i = 0; i < shift; ++i) EXPECT_EQ(memory[static_cast<std::size_t>(i)], untouched);
    for (index i = shift + rows * columns; i < rows * columns + 32; ++i) {
      EXPECT_EQ(memory[static_cast<std::size_t>(i)], untouched);
    }
  }
  auto in_place = xs;
  const view<float> both(in_place.data(), {rows, columns});
  regroup::softmax(regroup::seq, both, both);
  expect_rows(in_place.data());
}

TEST(past_caches, scan) {
  const index n = rows * columns;
  const auto xs = numbers(n);
  std::vector<float> spread(static_cast<std::size_t>(2 * n));  // not side by side: written one by one
  const view<float> slow(spread.data(), {n}, {2});
  regroup::inclusive_scan(regroup::seq, xs, slow, regroup::plus<float>{});
  for (const index shift : {0, 3}) {
    std::vector<float> memory(static_cast<std::size_t>(n + shift + 1), untouched);
    const view<float> ys(memory.data() + shift, {n});
    regroup::inclusive_scan(regroup::par.with_threads(3), xs, ys, regroup::plus<float>{});
    index differ = 0;
    for (index i = 0; i < n; ++i) differ += ys(i) != slow(i) ? 1 : 0;
    EXPECT_EQ(differ, 0);
    EXPECT_EQ(memory.back(), untouched);
  }
  auto in_place = xs;
  regroup::inclusive_scan(regroup::seq, in_place, in_place, regroup::plus<float>{});
  for (index i = 0; i < n; ++i) ASSERT_EQ(in_place[static_cast<std::size_t>(i)], slow(i)) << i;
}

}  // namespace
