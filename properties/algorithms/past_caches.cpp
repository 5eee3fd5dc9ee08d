// SPDX-License-Identifier: Apache-2.0
// Outputs too large for the caches are written by other instructions, and have the same bits in the same places as small ones:
// odd rows and columns that begin anywhere in a cache line, in place, with any threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <type_traits>

#include "host/numbers.hpp"
#include "order/cases.hpp"
#include "regroup/algorithms/softmax.hpp"
#include "regroup/monoids/affine.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/scan.hpp"

namespace {

using regroup::index;
using regroup::view;

constexpr index rows = 3001, columns = 1003;
static_assert(rows * columns * sizeof(float) > regroup::cached_output_bytes);
constexpr float untouched = 77;

/// Where a page begins, of so much memory that n elements fit behind a shift of a page.
template <class T>
T* page_of(std::vector<T>& memory, index n) {
  constexpr std::size_t page = 4096;
  memory.assign(static_cast<std::size_t>(n) + 3 * page / sizeof(T), static_cast<T>(untouched));
  void* first = memory.data();
  std::size_t room = memory.size() * sizeof(T);
  return static_cast<T*>(std::align(page, room - 2 * page, first, room));
}

/// softmax of rows to places that begin anywhere in a page, the elements' or another, and over the elements.
template <class T>
void softmax(index n, index length) {
  ASSERT_GT(static_cast<std::size_t>(n * length) * sizeof(T), regroup::cached_output_bytes);
  const auto xs = numbers<T>(n * length);
  std::vector<T> spread(static_cast<std::size_t>(2 * n * length));  // row by row, not side by side: written one by one
  for (index row = 0; row < n; ++row) {
    regroup::softmax(regroup::seq, view<const T>(xs.data() + row * length, {1, length}),
                     view<T>(spread.data() + 2 * row * length, {1, length}, {2 * length, 2}));
  }
  const auto expect_same = [&](const T* ys, index shift) {
    index differ = 0;
    for (index i = 0; i < n * length; ++i) differ += ys[i] == spread[static_cast<std::size_t>(2 * i)] ? 0 : 1;
    EXPECT_EQ(differ, 0) << shift;
  };
  std::vector<T> from, memory;
  T* const x = page_of(from, n * length);
  std::copy(xs.begin(), xs.end(), x);
  constexpr index of_page = 4096 / sizeof(T);
  for (const index shift : {index{0}, index{1}, index{5}, index{15}, index{24}, index{100}, of_page / 2, of_page - 8}) {
    T* const y = page_of(memory, n * length) + shift;
    regroup::softmax(regroup::par.with_threads(3), view<const T>(x, {n, length}), view<T>(y, {n, length}));
    expect_same(y, shift);
    const auto is_untouched = [](T e) { return e == static_cast<T>(untouched); };
    EXPECT_TRUE(std::all_of(memory.data(), y, is_untouched)) << shift;
    EXPECT_TRUE(std::all_of(y + n * length, memory.data() + memory.size(), is_untouched)) << shift;
  }
  regroup::softmax(regroup::seq, view<const T>(x, {n, length}), view<T>(x, {n, length}));
  expect_same(x, -1);
}

TEST(past_caches, softmax_of_odd_rows) { softmax<float>(rows, columns); }
TEST(past_caches, softmax_of_even_rows) {
  softmax<float>(2100, 1024);
  softmax<double>(1100, 1024);
  softmax<regroup::bfloat16>(4200, 1024);
  softmax<regroup::float16>(4200, 1024);
}
TEST(past_caches, softmax_of_a_long_row) {
  softmax<float>(1, 2'200'005);
  softmax<regroup::bfloat16>(1, 4'200'003);
}

/// Both scans of n numbers, along rows or columns, to places that begin anywhere in a cache line, and over their input.
template <class M>
void scans(index n, regroup::shape extents, index axis = 1) {
  using T = regroup::state_of<M>;
  const M m;
  const auto xs = numbers<T>(n);
  const auto same = [](const T& a, const T& b) { return std::memcmp(&a, &b, sizeof(T)) == 0; };
  const view<const T> from(xs.data(), extents);
  for (const bool inclusive : {true, false}) {
    const auto scan = [&](const auto& ex, const view<const T>& x, const view<T>& y) {
      if (inclusive) return regroup::inclusive_scan_axis(ex, x, axis, y, m);
      regroup::exclusive_scan_axis(ex, x, axis, y, m);
    };
    std::vector<T> spread(static_cast<std::size_t>(2 * n));  // not side by side: written one by one
    scan(regroup::seq, from, view<T>(spread.data(), extents, {2 * extents[1], 2}));
    const auto expect_same = [&](const T* ys) {
      index differ = 0;
      for (index i = 0; i < n; ++i) differ += same(ys[i], spread[static_cast<std::size_t>(2 * i)]) ? 0 : 1;
      EXPECT_EQ(differ, 0) << inclusive;
    };
    const auto each_executor = [&](const auto& ex) {
      for (const index shift : {0, 3}) {
        T was{};
        std::memset(&was, 77, sizeof was);
        std::vector<T> memory(static_cast<std::size_t>(n + shift + 1), was);
        scan(ex, from, view<T>(memory.data() + shift, extents));
        expect_same(memory.data() + shift);
        EXPECT_TRUE(same(memory.back(), was));
        for (index i = 0; i < shift; ++i) EXPECT_TRUE(same(memory[static_cast<std::size_t>(i)], was));
      }
      auto in_place = xs;
      scan(ex, view<const T>(in_place.data(), extents), view<T>(in_place.data(), extents));
      expect_same(in_place.data());
    };
    each_executor(regroup::seq);
    each_executor(regroup::par.with_threads(3));
  }
}

TEST(past_caches, scans_of_one_row) {
  scans<regroup::plus<float>>(rows * columns, {1, rows * columns});
  scans<regroup::maximum<float>>(rows * columns, {1, rows * columns});
}
TEST(past_caches, scans_of_long_rows) {
  scans<regroup::plus<double>>(5 * 300'007, {5, 300'007});
  scans<regroup::affine<float>>(5 * 300'007, {5, 300'007});  // of two words
}
TEST(past_caches, scans_of_columns) {
  scans<regroup::plus<float>>(rows * columns, {rows, columns}, 0);
  scans<regroup::plus<double>>(300 * 4200, {300, 4200}, 0);  // several at a time
  scans<regroup::affine<float>>(4500 * 400, {4500, 400}, 0);  // more than a tile, by every thread
}
TEST(past_caches, scans_of_narrow_columns) {
  for (const index n : {2, 3, 4, 7, 15, 17, 47, 100}) scans<regroup::plus<float>>(3'000'000 / n * n, {3'000'000 / n, n}, 0);
  scans<regroup::plus<double>>(12 * 100'001, {100'001, 12}, 0);
  scans<regroup::plus<double>>(20 * 100'001, {100'001, 20}, 0);
  scans<regroup::affine<float>>(5 * 250'007, {250'007, 5}, 0);
}
TEST(past_caches, scans_of_short_rows) { scans<regroup::plus<float>>(rows * columns, {rows, columns}); }

}  // namespace
