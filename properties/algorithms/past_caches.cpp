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

/// Both scans of n numbers to places that begin anywhere in a cache line, and over their input.
template <class T>
void scans(index n, regroup::shape extents) {
  const auto numbers_of = [&](const std::vector<float>& xs) { return std::vector<T>(xs.begin(), xs.end()); };
  const std::vector<T> xs = numbers_of(numbers(n));
  const view<const T> from(xs.data(), extents);
  for (const bool inclusive : {true, false}) {
    const auto scan = [&](const auto& ex, const view<const T>& x, const view<T>& y) {
      if (inclusive) return regroup::inclusive_scan_rows(ex, x, y, regroup::plus<T>{});
      regroup::exclusive_scan_rows(ex, x, y, regroup::plus<T>{});
    };
    std::vector<T> spread(static_cast<std::size_t>(2 * n));  // not side by side: written one by one
    scan(regroup::seq, from, view<T>(spread.data(), extents, {2 * extents[1], 2}));
    const auto expect_same = [&](const T* ys) {
      index differ = 0;
      for (index i = 0; i < n; ++i) differ += ys[i] != spread[static_cast<std::size_t>(2 * i)] ? 1 : 0;
      EXPECT_EQ(differ, 0) << inclusive;
    };
    const auto each_executor = [&](const auto& ex) {
      for (const index shift : {0, 3}) {
        std::vector<T> memory(static_cast<std::size_t>(n + shift + 1), T{untouched});
        scan(ex, from, view<T>(memory.data() + shift, extents));
        expect_same(memory.data() + shift);
        EXPECT_EQ(memory.back(), untouched);
        for (index i = 0; i < shift; ++i) EXPECT_EQ(memory[static_cast<std::size_t>(i)], untouched);
      }
      auto in_place = xs;
      scan(ex, view<const T>(in_place.data(), extents), view<T>(in_place.data(), extents));
      expect_same(in_place.data());
    };
    each_executor(regroup::seq);
    each_executor(regroup::par.with_threads(3));
  }
}

TEST(past_caches, scans_of_one_row) { scans<float>(rows * columns, {1, rows * columns}); }
TEST(past_caches, scans_of_long_rows) { scans<double>(5 * 300'007, {5, 300'007}); }
TEST(past_caches, scans_of_short_rows) { scans<float>(rows * columns, {rows, columns}); }

}  // namespace
