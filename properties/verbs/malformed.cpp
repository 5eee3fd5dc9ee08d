// SPDX-License-Identifier: Apache-2.0
// Arguments that do not fit give typed exceptions with a sentence, thrown before anything is written.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "regroup/error.hpp"
#include "regroup/host/par.hpp"
#include "regroup/host/seq.hpp"
#include "regroup/reduce.hpp"
#include "regroup/scan.hpp"
#include "regroup/stream.hpp"

namespace {

using regroup::par;
using regroup::seq;

struct sum {
  static constexpr bool is_commutative = true;
  int identity() const { return 0; }
  int operator()(int a, int b) const { return a + b; }
};

// What is written goes to what lasts.
static_assert(!std::is_constructible_v<regroup::view<int>, std::vector<int>>);
static_assert(std::is_constructible_v<regroup::view<const int>, std::vector<int>>);
static_assert(std::is_constructible_v<regroup::view<int>, std::span<int>>);

std::vector<int> ones(std::size_t n) { return std::vector<int>(n, 1); }

template <class Error, class F>
void expect_sentence(const F& f, const char* what = "") {
  try {
    f();
    FAIL() << "nothing was thrown by " << what;
  } catch (const Error& e) {
    EXPECT_GT(std::string(e.what()).size(), 15u) << e.what();
  }
}

}  // namespace

TEST(malformed, views_of_more_than_there_is) {
  auto xs = ones(12);
  const std::vector<int> still = xs;
  const regroup::view x(xs, {3, 4});
  static_assert(std::is_same_v<decltype(x), const regroup::view<int>>);
  static_assert(std::is_same_v<decltype(regroup::view(still, {2, 3})), regroup::view<const int>>);
  static_assert(!std::is_constructible_v<regroup::view<int>, std::vector<int>, regroup::shape>);
  x(2, 3) = 5;
  EXPECT_EQ(xs[11], 5);
  EXPECT_EQ(regroup::reduce(seq, regroup::view(std::span(still), {2, 2, 3}), sum{}), 12);
  expect_sentence<regroup::shape_error>([&] { regroup::view<int>(xs, {13}); }, "13 of 12");
}

TEST(malformed, rows_and_their_results) {
  const auto xs = ones(12);
  const regroup::view<const int> x(xs.data(), {3, 4});
  auto two = ones(2);
  auto four = ones(4);
  expect_sentence<regroup::shape_error>([&] { regroup::reduce_rows(seq, x, two, sum{}); }, "two places");
  expect_sentence<regroup::shape_error>([&] { regroup::reduce_rows(par, x, four, sum{}); }, "four places");
  EXPECT_EQ(two, ones(2));
  EXPECT_EQ(four, ones(4));
  const regroup::view<const int> scalar(xs.data(), regroup::shape{});
  auto one = ones(1);
  expect_sentence<regroup::shape_error>([&] { regroup::reduce_rows(seq, scalar, one, sum{}); }, "rows of a scalar");
}

TEST(malformed, axes) {
  const auto xs = ones(24);
  const regroup::view<const int> x(xs.data(), {2, 3, 4});
  auto out = ones(24);
  for (const auto& axes : {regroup::shape{3}, {-4}, {0, 0}, {1, -2}, {0, 1, 2, 0}, {100}}) {
    EXPECT_THROW(regroup::reduce_axes(seq, x, axes, out, sum{}), regroup::error);
  }
  expect_sentence<regroup::shape_error>([&] { regroup::reduce_axes(seq, x, {0}, out, sum{}); });
  auto y = ones(24);
  const regroup::view<int> to(y.data(), {2, 3, 4});
  EXPECT_THROW(regroup::inclusive_scan_axis(seq, x, 3, to, sum{}), regroup::error);
  EXPECT_THROW(regroup::exclusive_scan_axis(par, x, -4, to, sum{}), regroup::error);
  EXPECT_EQ(y, ones(24));
}

TEST(malformed, permutations) {
  std::vector<float> x(24);
  const regroup::view<float> v(x.data(), {2, 3, 4});
  EXPECT_EQ(v.permuted({-1, 0, 1}).strides(), (regroup::shape{1, 12, 4}));
  for (const regroup::shape& order : {regroup::shape{0, 1}, {0, 0, 1}, {0, 1, 3}, {0, 1, -4}, {0, 1, 2, 0}}) {
    EXPECT_THROW(static_cast<void>(v.permuted(order)), regroup::shape_error) << to_string(order);
  }
}

TEST(malformed, scans) {
  const auto xs = ones(6);
  auto ys = ones(5);
  expect_sentence<regroup::shape_error>([&] { regroup::inclusive_scan(seq, xs, ys, sum{}); });
  expect_sentence<regroup::shape_error>([&] { regroup::exclusive_scan(par, xs, ys, sum{}); });
  auto zs = ones(6);
  const regroup::view<const int> x(xs.data(), {2, 3});
  const regroup::view<int> other_shape(zs.data(), {3, 2});
  const regroup::view<int> flat(zs.data(), {6});
  expect_sentence<regroup::shape_error>([&] { regroup::inclusive_scan_rows(seq, x, other_shape, sum{}); });
  expect_sentence<regroup::shape_error>([&] { regroup::exclusive_scan_rows(seq, x, flat, sum{}); });
  expect_sentence<regroup::shape_error>([&] { regroup::inclusive_scan_axis(seq, x, 0, other_shape, sum{}); });
  expect_sentence<regroup::shape_error>([&] { regroup::inclusive_scan(seq, x, zs, sum{}); });
  EXPECT_EQ(zs, ones(6));
  const regroup::view<int> nothing(zs.data(), {4, 0});
  expect_sentence<regroup::shape_error>([&] { regroup::inclusive_scan_axis(seq, nothing, 2, nothing, sum{}); });
}

TEST(malformed, offsets) {
  const auto xs = ones(6);
  const std::vector<std::vector<int>> wrong = {{},     {0},     {6},          {0, 5},    {0, 7},
                                               {1, 6}, {-1, 6}, {0, 4, 3, 6}, {0, 7, 6}, {0, -1, 6}};
  for (const auto& offsets : wrong) {
    auto out = ones(offsets.empty() ? 0 : offsets.size() - 1);
    const auto before = out;
    expect_sentence<regroup::offsets_error>([&] { regroup::reduce_segments(seq, xs, offsets, out, sum{}); });
    expect_sentence<regroup::offsets_error>([&] { regroup::reduce_segments(par, xs, offsets, out, sum{}); });
    EXPECT_EQ(out, before);
    auto ys = ones(6);
    expect_sentence<regroup::offsets_error>([&] { regroup::inclusive_scan_segments(seq, xs, offsets, ys, sum{}); });
    expect_sentence<regroup::offsets_error>([&] { regroup::exclusive_scan_segments(par, xs, offsets, ys, sum{}); });
    EXPECT_EQ(ys, ones(6));
  }
  auto two = ones(2);
  expect_sentence<regroup::shape_error>([&] { regroup::reduce_segments(seq, xs, std::vector<int>{0, 6}, two, sum{}); });
  try {
    regroup::reduce_segments(seq, xs, std::vector<std::uint64_t>{0, ~std::uint64_t{0}, 6}, two, sum{});
    FAIL() << "decreasing offsets were taken";
  } catch (const regroup::offsets_error& e) {
    EXPECT_STREQ(e.what(), "segment offsets must not decrease; entry 2 is 6 after 18446744073709551615");
  }
  const std::vector<int> no_elements;
  expect_sentence<regroup::offsets_error>(
      [&] { regroup::reduce_segments(seq, no_elements, std::vector<int>{}, two, sum{}); });
}

TEST(malformed, keys) {
  const auto xs = ones(6);
  const auto keys = ones(5);
  auto keys_out = ones(6);
  auto out = ones(6);
  expect_sentence<regroup::shape_error>([&] { regroup::reduce_by_key(seq, keys, xs, keys_out, out, sum{}); });
  const std::vector<int> different = {1, 2, 3, 4, 5, 6};
  auto few = ones(3);
  expect_sentence<regroup::shape_error>([&] { regroup::reduce_by_key(seq, different, xs, few, out, sum{}); });
  expect_sentence<regroup::shape_error>([&] { regroup::reduce_by_key(par, different, xs, keys_out, few, sum{}); });
}

TEST(malformed, thread_counts_views_and_positions) {
  expect_sentence<regroup::argument_error>([] { (void)regroup::reduce(par.with_threads(0), ones(9), sum{}); });
  expect_sentence<regroup::argument_error>([] { (void)regroup::reduce(par.with_threads(-3), ones(9), sum{}); });
  expect_sentence<regroup::argument_error>([] { regroup::generate(-1, [](regroup::index i) { return i; }); });
  int x = 0;
  expect_sentence<regroup::shape_error>([&] { regroup::view<int>(&x, {1, -1}); });
  expect_sentence<regroup::shape_error>([&] { regroup::view<int>(&x, {1, 1}, {1}); });
  constexpr regroup::index much = regroup::index{1} << 32;
  expect_sentence<regroup::shape_error>([&] { regroup::view<int>(&x, {much, much, 3}); }, "more elements than can be counted");
  expect_sentence<regroup::shape_error>([&] { regroup::view<int>(&x, {much, much, 0}, {0, 0, 0}); });
  expect_sentence<regroup::shape_error>([&] { (void)regroup::row_major({much, much}); });
  expect_sentence<regroup::shape_error>([&] { (void)regroup::view<int>(&x, regroup::shape{})[0]; });
  EXPECT_EQ(regroup::view<int>(&x, {much, much / 4}, {0, 0}).size(), std::numeric_limits<regroup::index>::max() / 2 + 1);
  expect_sentence<regroup::argument_error>([] { regroup::accumulator acc{sum{}, -1}; });
}
