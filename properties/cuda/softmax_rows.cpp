// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax and logsumexp by the device's kernels have the bits of `seq`: rows of every length, in place, of
// every type, misaligned, strided, with infinities and NaN, under every schedule, on any grid.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "regroup/algorithms/softmax.hpp"
#include "rows.hpp"
#include "transcribed.hpp"

namespace {

using emulated::machine;
using emulated::schedule;
using order::digest_of;
using order::kind;
using regroup::cuda::row_batch;
using regroup::softmax_parts::log_probability;
using regroup::softmax_parts::probability;

constexpr std::int64_t tile = regroup::tile_elements;

template <class X>
using real_of = regroup::widened<X>;

template <class X>
auto widened_of(const std::vector<X>& xs) {
  std::vector<real_of<X>> wide;
  for (const X x : xs) wide.push_back(regroup::widen(x));
  return wide;
}

/// What the host says of `count` rows, and of their logsumexps.
template <template <class> class Map, class Real>
std::vector<Real> on_the_host(std::vector<Real> xs, std::vector<Real>& lse, double scale) {
  const auto count = static_cast<std::int64_t>(lse.size());
  const regroup::view<Real> x(xs.data(), {count, static_cast<std::int64_t>(xs.size()) / count});
  if constexpr (std::same_as<Map<Real>, probability<Real>>) {
    regroup::softmax(regroup::seq, x, x, {.scale = scale, .logsumexp = lse});
  } else {
    regroup::log_softmax(regroup::seq, x, x, {.scale = scale, .logsumexp = lse});
  }
  return xs;
}

/// A verb of `count` rows of X, written as Y, or in place where that is X.
template <template <class> class Map, class Y, class X>
void expect_rows(machine on, const std::vector<X>& xs, std::int64_t count, const std::string& where, double scale = 1,
                 int clusters = regroup::cuda::most_cluster_blocks) {
  std::vector<real_of<X>> expected_lse(static_cast<std::size_t>(count));
  std::vector<real_of<X>> expected = on_the_host<Map>(widened_of(xs), expected_lse, scale);
  for (auto& y : expected) y = regroup::widen(static_cast<Y>(y));
  std::vector<Y> ys(xs.begin(), xs.end());
  auto x = emulated::rows_of(xs, count);
  if constexpr (std::same_as<X, Y>) x.first = ys.data();
  const auto lse = emulated::normalise<Map>(on, x, emulated::places_of(ys, count), scale,
                                            regroup::cuda::most_blocks, clusters);
  ASSERT_EQ(digest_of(widened_of(ys)), digest_of(expected)) << where;
  ASSERT_EQ(digest_of(lse), digest_of(expected_lse)) << where << ", the logsumexps";
}

/// All three verbs of rows of float.
void expect_the_bits_of_seq(const machine& on, const std::vector<float>& xs, std::int64_t count, const std::string& where,
                            double scale = 1, int clusters = regroup::cuda::most_cluster_blocks) {
  expect_rows<probability, float>(on, xs, count, where + ", softmax", scale, clusters);
  expect_rows<log_probability, float>(on, xs, count, where + ", log_softmax", scale, clusters);
  std::vector<float> expected(static_cast<std::size_t>(count));
  const std::int64_t n = static_cast<std::int64_t>(xs.size()) / count;
  regroup::logsumexp(regroup::seq, regroup::view<const float>(xs.data(), {count, n}), expected, {.scale = scale});
  std::vector<float> sums(expected.size(), 99);
  machine another = on;
  const regroup::cuda::device_view<const float> x(xs.data(), {count, n});
  const auto work = log_sums(x, regroup::cuda::device_view<float>(sums.data(), {count}), {.scale = scale});
  const auto memory = emulated::memory_of(work.bytes());
  work.run(emulated::executor{another, clusters}, {memory.data(), work.bytes()});
  ASSERT_EQ(digest_of(sums), digest_of(expected)) << where << ", logsumexp";
}

template <class X>
std::vector<X> elements(kind k, std::int64_t n) {
  std::vector<X> xs;
  for (const float x : order::numbers<float>(k, n, static_cast<std::uint64_t>(n) + 5)) xs.push_back(X(x));
  return xs;
}

const std::int64_t lengths[] = {0,    1,    3,    17,   32,   33,     37,     127,    129,    500,   1023,
                         1024, 1025, 2000, 4095, 4096, 4097,   5000,   2 * tile, 9001, 16'385};

/// check(machine, elements, rows, where) for every length, and for short ones, or where `many`, every schedule.
template <class X, class Check>
void rows_of_every_length(kind k, const Check& check, bool many = false) {
  for (const std::int64_t n : lengths) {
    if (order::small() && n > 5000) continue;
    const std::int64_t count = n < 200 ? 70 : 2;
    for (auto [name, on] : emulated::machines(n, many)) {
      check(on, elements<X>(k, count * n), count,
            name + ", rows of " + std::to_string(n) + ", kind " + std::to_string(int(k)));
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace

TEST(softmax_rows, float32) {
  for (const kind k : {kind::plain, kind::special, kind::wide}) {
    const bool many = k == kind::plain && !order::small();
    rows_of_every_length<float>(k, [](const auto&... of) { expect_the_bits_of_seq(of..., 0.37); }, many);
  }
}
TEST(softmax_rows, float64) {  // against the contract's text
  rows_of_every_length<double>(kind::plain, [](machine on, std::vector<double> xs, std::int64_t count, const auto& where) {
    std::vector<double> expected = xs;
    reference::each_row(expected, count, [](auto& row) { reference::log_softmax(row); });
    emulated::normalise<log_probability>(on, emulated::rows_of(xs, count), emulated::places_of(xs, count));
    ASSERT_EQ(digest_of(xs), digest_of(expected)) << where;
  });
}
TEST(softmax_rows, of_bfloat16) {
  rows_of_every_length<regroup::bfloat16>(
      kind::special, [](const auto&... of) { expect_rows<probability, regroup::bfloat16>(of...); });
}
TEST(softmax_rows, of_float16_to_float32) {
  rows_of_every_length<regroup::float16>(
      kind::wide, [](const auto&... of) { expect_rows<log_probability, float>(of..., 3); });
}

TEST(softmax_rows, odd_lengths_to_past_two_tiles) {
  if (order::small()) GTEST_SKIP() << "four hundred lengths";
  machine on(schedule::random, 2);
  for (std::int64_t n = 1; n < 9000 && !HasFatalFailure(); n += n < 300 ? 2 : 34) {
    expect_the_bits_of_seq(on, elements<float>(kind::plain, n), 1, "a row of " + std::to_string(n));
  }
}

TEST(softmax_rows, the_edge_of_two_sweeps_and_split_rows) {
  for (const std::int64_t n : {65'535, 65'536, 65'537, 70'001, 600'000, 1'048'577}) {
    if (order::small() && n > 70'000) return;
    for (const kind k : {kind::plain, kind::special, kind::wide}) {
      if (k != kind::plain && (n > 70'000 || order::small())) continue;
      expect_the_bits_of_seq(machine(schedule::random, 4), elements<float>(k, 2 * n), 2, "rows of " + std::to_string(n));
      if (HasFatalFailure()) return;
    }
  }
}

TEST(softmax_rows, the_edges_of_clusters) {  // of 1, 2, 4 and 8 blocks that hold two tiles each
  for (const std::int64_t n : {8192, 8193, 16'384, 16'385, 32'768, 32'769, 50'001}) {
    if (order::small() && n != 8193) continue;
    for (const kind k : {kind::plain, kind::special}) {
      for (const schedule order : {schedule::forward, schedule::backward, schedule::random}) {
        expect_the_bits_of_seq(machine(order, 6), elements<float>(k, 2 * n), 2, "rows of " + std::to_string(n), 1.5);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(softmax_rows, without_clusters) {
  for (const std::int64_t n : {4097, 8192, 8193, 16'385, 65'536}) {
    if (order::small() && n > 9000) return;
    for (const kind k : {kind::plain, kind::special}) {
      const auto xs = elements<float>(k, 2 * n);
      expect_the_bits_of_seq(machine(schedule::random, 6), xs, 2, "rows of " + std::to_string(n), 1, 1);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(softmax_rows, of_nothing_but_infinities) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::int64_t n : {1, 20, 700, 3000, 8500, 9000, 66'000}) {
    for (const float filling : {-infinity, infinity, 0.0f, -0.0f, -3e38f, 1e-45f}) {
      for (const float other : {-infinity, infinity, nan, 2.0f}) {
        for (const std::int64_t at : {std::int64_t{0}, n - 1}) {
          std::vector<float> xs(static_cast<std::size_t>(n), filling);
          xs[static_cast<std::size_t>(at)] = other;
          expect_the_bits_of_seq(machine(), xs, 1,
                                 std::to_string(n) + " of " + std::to_string(filling) + " but for " +
                                     std::to_string(other) + " at " + std::to_string(at),
                                 1, n == 8500 ? 1 : regroup::cuda::most_cluster_blocks);  // tile after tile
          if (HasFatalFailure()) return;
        }
      }
    }
    if (order::small()) return;
  }
}

TEST(softmax_rows, of_no_elements_are_not_walked) {
  const regroup::cuda::device_view<float> x(nullptr, {std::int64_t{1} << 60, 0});
  machine on;
  regroup::cuda::normalise<probability>(x, x, {}, "softmax").run(emulated::executor{on}, {});
}

TEST(softmax_rows, strided_and_misaligned) {
  const auto xs = elements<float>(kind::plain, 50 * 300 + 1);
  for (const auto& x : {row_batch<const float>{xs.data(), 50, 300, 1, 50},            // columns
                        row_batch<const float>{xs.data() + 299, 50, 300, 300, -1},    // backwards
                        row_batch<const float>{xs.data() + 1, 50, 300, 300, 1},       // off by one
                        row_batch<const float>{xs.data() + 7, 9, 31, 0, 2}}) {        // one row, nine times
    std::vector<float> together;
    for (std::int64_t r = 0; r < x.count; ++r) {
      for (std::int64_t i = 0; i < x.length; ++i) together.push_back(x[r][i]);
    }
    std::vector<float> lse(static_cast<std::size_t>(x.count));
    const auto expected = on_the_host<probability>(together, lse, 1);
    std::vector<float> ys(together.size());  // a column each
    machine on(schedule::random, 8);
    emulated::normalise<probability>(on, x, row_batch<float>{ys.data(), x.count, x.length, 1, x.count});
    for (std::int64_t r = 0; r < x.count; ++r) {
      for (std::int64_t i = 0; i < x.length; ++i) {
        ASSERT_EQ(digest_of(ys[static_cast<std::size_t>(i * x.count + r)]),
                  digest_of(expected[static_cast<std::size_t>(r * x.length + i)]));
      }
    }
  }
}

TEST(softmax_rows, no_grid_changes_a_bit) {
  for (const std::int64_t n : {5, 300, 4000, 9000, 66'000}) {
    const std::int64_t count = n < 100 ? 200 : 7;
    if (order::small() && n > 5000) return;
    const auto xs = elements<float>(kind::plain, count * n);
    std::vector<float> lse(static_cast<std::size_t>(count));
    const auto expected = on_the_host<probability>(xs, lse, 1);
    for (const std::int64_t blocks : {1, 3}) {
      machine on(schedule::random, 6);
      std::vector<float> ys = xs;
      emulated::normalise<probability>(on, emulated::rows_of(ys, count), emulated::places_of(ys, count), 1, blocks);
      ASSERT_EQ(digest_of(ys), digest_of(expected)) << n << " on " << blocks;
    }
  }
}

RC_GTEST_PROP(softmax_rows, any_rows, ()) {
  const auto n = *rc::gen::inRange<std::int64_t>(1, order::small() ? 300 : 3000);
  const auto count = *rc::gen::inRange<std::int64_t>(1, 9);
  const auto scale = *rc::gen::element(1.0, -0.5, 0.0, 3e4);
  const auto k = *rc::gen::element(kind::plain, kind::wide, kind::special);
  expect_the_bits_of_seq(machine(schedule::random, 9), elements<float>(k, n * count), count, "rows", scale);
  RC_ASSERT(!testing::Test::HasFatalFailure());
}
