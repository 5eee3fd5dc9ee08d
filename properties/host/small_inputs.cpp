// SPDX-License-Identifier: Apache-2.0
// Small work stays on the calling thread: up to grain_tiles tiles, four times as many where a combine is quick, or two grains
// of time, an executor's `bulk` is not called, however many threads it has. Beyond that no piece is smaller than a grain.
// Level: thread.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "regroup/algorithms/attention.hpp"
#include "regroup/algorithms/cross_entropy.hpp"
#include "regroup/algorithms/softmax.hpp"
#include "regroup/host/threads.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/reduce.hpp"
#include "regroup/scan.hpp"
#include "regroup/stream.hpp"

namespace {

constexpr std::int64_t grain = regroup::host::grain_tiles * regroup::tile_elements;
constexpr std::int64_t quick_grain = 4 * grain;

/// Claims many threads, runs on one, and counts what it was asked to spread.
struct counting : regroup::host::threads<counting> {
  struct asked {
    int calls = 0;
    std::int64_t pieces = 0;
  };
  asked* seen;
  explicit counting(asked& counts) : seen(&counts) {}
  [[nodiscard]] static int concurrency() { return 64; }
  template <class F>
  void bulk(std::int64_t n, const F& f) const {
    ++seen->calls;
    seen->pieces += n;
    for (std::int64_t i = 0; i < n; ++i) f(i);
  }
};

/// What work(executor) asks for.
template <class Work>
counting::asked asked_by(const Work& work) {
  counting::asked counts;
  work(counting(counts));
  return counts;
}

std::vector<std::int64_t> numbers(std::int64_t n) {
  std::vector<std::int64_t> xs(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) xs[static_cast<std::size_t>(i)] = i * 7919 % 2003;
  return xs;
}

counting::asked reducing(std::int64_t n) {
  return asked_by([n](const counting& ex) { (void)regroup::reduce(ex, numbers(n), regroup::plus<std::int64_t>{}); });
}
counting::asked reducing_rows(std::int64_t rows, std::int64_t length) {
  return asked_by([=](const counting& ex) {
    const auto xs = numbers(rows * length);
    std::vector<std::int64_t> sums(static_cast<std::size_t>(rows));
    regroup::reduce_rows(ex, regroup::view<const std::int64_t>(xs.data(), {rows, length}), sums,
                         regroup::plus<std::int64_t>{});
  });
}
counting::asked scanning(std::int64_t rows, std::int64_t length) {
  return asked_by([=](const counting& ex) {
    auto xs = numbers(rows * length);
    const regroup::view<std::int64_t> matrix(xs.data(), {rows, length});
    regroup::inclusive_scan_rows(ex, matrix, matrix, regroup::plus<std::int64_t>{});
  });
}
counting::asked repeating(std::int64_t n, double nanoseconds) {
  std::int64_t runs = 0;
  const auto asked = asked_by([&](const counting& ex) { ex.for_each(n, nanoseconds, [&](std::int64_t) { ++runs; }); });
  EXPECT_EQ(runs, n);
  return asked;
}
counting::asked normalising(std::int64_t rows, std::int64_t length) {
  return asked_by([=](const counting& ex) {
    std::vector<float> xs(static_cast<std::size_t>(rows * length), 1);
    const regroup::view<float> matrix(xs.data(), {rows, length});
    regroup::softmax(ex, matrix, matrix);
  });
}
counting::asked losing(std::int64_t classes) {
  return asked_by([=](const counting& ex) {
    const std::vector<float> xs(static_cast<std::size_t>(classes), 1);
    const std::vector<int> targets(1, 0);
    (void)regroup::cross_entropy(ex, regroup::view<const float>(xs.data(), {1, classes}), targets);
  });
}
counting::asked attending(std::int64_t queries, std::int64_t keys) {
  return asked_by([=](const counting& ex) {
    constexpr std::int64_t d = 16;
    const std::vector<float> q(static_cast<std::size_t>(queries * d), 1);
    const std::vector<float> kv(static_cast<std::size_t>(keys * d), 1);
    std::vector<float> out(q.size());
    const regroup::view<const float> key(kv.data(), {keys, d});
    regroup::attention(ex, regroup::view<const float>(q.data(), {queries, d}), regroup::dense(key, key),
                       regroup::view<float>(out.data(), {queries, d}));
  });
}

}  // namespace

TEST(small_inputs, reduce) {
  for (const std::int64_t n : {std::int64_t{0}, std::int64_t{1}, std::int64_t{1000}, regroup::tile_elements + 1, quick_grain}) {
    EXPECT_EQ(reducing(n).calls, 0) << n;
  }
  const auto more = reducing(quick_grain + 1);
  EXPECT_EQ(more.calls, 1);
  EXPECT_EQ(more.pieces, 2);
  EXPECT_LE(reducing(100 * quick_grain).pieces, 100);
  const auto largest = [](std::int64_t n) {
    return asked_by([n](const counting& ex) {
      (void)regroup::reduce(ex, std::vector<float>(static_cast<std::size_t>(n)), regroup::maximum<float>{});
    });
  };
  EXPECT_EQ(largest(grain).calls, 0);
  EXPECT_EQ(largest(grain + 1).pieces, 2);
}

TEST(small_inputs, rows) {
  for (const std::int64_t rows : {1, 10, 100}) EXPECT_EQ(reducing_rows(rows, 100).calls, 0) << rows;
  EXPECT_EQ(reducing_rows(1, quick_grain).calls, 0);
  const auto more = reducing_rows(1000, 100);
  EXPECT_EQ(more.calls, 1);
  EXPECT_LE(more.pieces, 1000 * (100 + 16) / quick_grain + 1);
}

TEST(small_inputs, scan) {
  for (const std::int64_t n : {std::int64_t{1}, std::int64_t{1000}, grain}) EXPECT_EQ(scanning(1, n).calls, 0) << n;
  EXPECT_EQ(scanning(10, grain / 10).calls, 0);
  EXPECT_EQ(scanning(1, grain + 1).calls, 1);
  EXPECT_EQ(scanning(100, grain / 10).calls, 1);
}

TEST(small_inputs, streams) {
  const auto pushing = [](std::int64_t n) {
    return asked_by([n](const counting& ex) {
      regroup::accumulator<regroup::plus<std::int64_t>, std::int64_t> sum(regroup::plus<std::int64_t>{});
      sum.push(ex, numbers(n));
    });
  };
  EXPECT_EQ(pushing(grain).calls, 0);
  EXPECT_EQ(pushing(100 * grain).calls, 1);
}

TEST(small_inputs, for_each) {
  constexpr double enough = regroup::host::grain_nanoseconds;
  for (const std::int64_t n : {std::int64_t{0}, std::int64_t{1}, std::int64_t{1000}}) {
    EXPECT_EQ(repeating(n, 1.9 * enough / static_cast<double>(n)).calls, 0) << n;
  }
  EXPECT_EQ(repeating(1, 1e9).calls, 0);
  const auto more = repeating(1000, 5 * enough / 1000);
  EXPECT_EQ(more.calls, 1);
  EXPECT_LE(more.pieces, 5);
}

TEST(small_inputs, softmax_and_attention) {
  EXPECT_EQ(normalising(1, 16).calls, 0);
  EXPECT_EQ(normalising(16, 1000).calls, 0);
  EXPECT_EQ(normalising(1, grain).calls, 0);
  EXPECT_EQ(normalising(1000, 1000).calls, 1);
  // One exponential an element by one thread, or two by some; without outputs it is one whoever computes.
  EXPECT_EQ(normalising(1, regroup::longest_two_sweep_row).calls, 0);
  EXPECT_EQ(normalising(1, regroup::longest_two_sweep_row + 1).calls, 2);
  EXPECT_EQ(losing(regroup::longest_two_sweep_row).calls, 2);
  EXPECT_EQ(attending(1, 64).calls, 0);
  EXPECT_EQ(attending(8, 8).calls, 0);
  EXPECT_EQ(attending(500, 500).calls, 1);
}
