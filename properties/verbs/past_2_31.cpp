// SPDX-License-Identifier: Apache-2.0
// Counts and positions are 64-bit: more than 2^31 elements, on ranges that are computed when read, and elements as far apart
// in memory of which little is touched.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "regroup/error.hpp"
#include "regroup/host/par.hpp"
#include "regroup/host/seq.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/monoids/extremum.hpp"
#include "regroup/monoids/fanout.hpp"
#include "regroup/monoids/moments.hpp"
#include "regroup/reduce.hpp"
#include "regroup/scan.hpp"
#include "regroup/stream.hpp"

namespace {

constexpr regroup::index n = (regroup::index{1} << 31) + 5;

struct parity_and_count {
  struct state {
    std::uint32_t parity;
    regroup::index count;
  };
  static constexpr bool is_commutative = true;
  static constexpr bool is_exact = true;
  constexpr state identity() const { return {0, 0}; }
  constexpr state lift(std::uint32_t x) const { return {x, 1}; }
  constexpr state operator()(state a, state b) const { return {a.parity ^ b.parity, a.count + b.count}; }
};

struct low_bits {
  constexpr std::uint32_t operator()(regroup::index i) const { return static_cast<std::uint32_t>(i); }
};

bool skipped() { return std::getenv("REGROUP_SMALL") != nullptr; }

}  // namespace

TEST(past_2_31, reduce) {
  if (skipped()) GTEST_SKIP();
  const auto s = regroup::reduce(regroup::par, regroup::generate(n, low_bits{}), parity_and_count{});
  EXPECT_EQ(s.count, n);
  // The exclusive or of 0..n-1 cancels in groups of four; n = 4k + 1 leaves n - 1.
  EXPECT_EQ(s.parity, static_cast<std::uint32_t>(n - 1));
}

TEST(past_2_31, a_column_of_a_broadcast_view_and_offsets) {
  if (skipped()) GTEST_SKIP();
  const std::uint32_t one = 1;
  const std::vector<regroup::index> offsets = {0, 3, n - 1, n};
  std::vector<parity_and_count::state> out(3);
  regroup::reduce_segments(regroup::par, regroup::view<const std::uint32_t>(&one, {n}, {0}), offsets, out,
                           parity_and_count{});
  EXPECT_EQ(out[0].count, 3);
  EXPECT_EQ(out[1].count, n - 4);
  EXPECT_EQ(out[2].count, 1);
}

TEST(past_2_31, positions_and_counts) {
  if (skipped()) GTEST_SKIP();
  const auto one_peak = [](regroup::index i) { return regroup::indexed<float>{i == n - 2 ? 1.0f : 0.0f, i}; };
  EXPECT_EQ(regroup::reduce(regroup::par, regroup::generate(n, one_peak), regroup::argmax<float>{}).position, n - 2);
  const auto [count, stats] = regroup::reduce(regroup::par, regroup::generate(n, low_bits{}),
                                              regroup::fanout{regroup::count{}, regroup::moments<double>{}});
  EXPECT_EQ(count, n);
  EXPECT_EQ(stats.count, n);
  EXPECT_NEAR(stats.mean / (static_cast<double>(n - 1) / 2), 1, 1e-12);
}

TEST(past_2_31, a_scan) {
  if (skipped()) GTEST_SKIP();
  if (sysconf(_SC_PHYS_PAGES) < (8L << 30) / sysconf(_SC_PAGESIZE)) GTEST_SKIP() << "less than 8 GiB of memory";
  void* const memory = mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) GTEST_SKIP() << "no 2 GiB of memory";
  auto* const y = static_cast<std::uint8_t*>(memory);
  const auto low_byte = [](regroup::index i) { return static_cast<std::uint8_t>(i); };
  regroup::inclusive_scan(regroup::par, regroup::generate(n, low_byte), regroup::view(y, {n}), regroup::plus<std::uint8_t>{});
  regroup::index wrong = 0;
  for (regroup::index i = (n - 1) % 997; i < n; i += 997) {  // the last one too
    const auto sum = static_cast<std::uint64_t>(i) * static_cast<std::uint64_t>(i + 1) / 2;
    wrong += y[i] == static_cast<std::uint8_t>(sum) ? 0 : 1;
  }
  EXPECT_EQ(wrong, 0);
  munmap(memory, n);
}

TEST(past_2_31, a_stream) {
  if (skipped()) GTEST_SKIP();
  regroup::accumulator acc{parity_and_count{}};
  constexpr regroup::index at_once = regroup::index{1} << 28;
  for (regroup::index first = 0; first < n; first += at_once) {
    const auto from_there = [first](regroup::index i) { return low_bits{}(first + i); };
    acc.push(regroup::generate(std::min(at_once, n - first), from_there));
  }
  EXPECT_EQ(acc.value().count, n);
  EXPECT_EQ(acc.value().parity, static_cast<std::uint32_t>(n - 1));
}

/// Three rows of ten, and then three columns of ten, whose elements begin 2^31 and more apart.
TEST(past_2_31, rows_and_columns_beyond) {
  constexpr regroup::index apart = n + 4096, bytes = 10 * apart + 3;
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) GTEST_SKIP() << "no 20 GiB of addresses";
  auto* const x = static_cast<std::uint8_t*>(memory);  // pages are there once they are touched
  const auto value = [](regroup::index row, regroup::index i) { return static_cast<std::uint8_t>(10 * row + i + 1); };
  for (const regroup::shape& strides : {regroup::shape{apart, 1}, regroup::shape{1, apart}}) {
    const regroup::view rows(x, {3, 10}, strides);
    std::vector<std::uint32_t> expected;
    for (regroup::index r = 0; r < 3; ++r) {
      std::uint32_t sum = 0;
      for (regroup::index i = 0; i < 10; ++i) sum += rows(r, i) = value(r, i);
      expected.push_back(sum);
    }
    std::vector<std::uint32_t> out(3);
    const regroup::plus<std::uint32_t> m;
    regroup::reduce_rows(regroup::par, rows, out, m);
    EXPECT_EQ(out, expected);
    const regroup::view columns(x, {10, 3}, {strides[1], strides[0]});
    out.assign(3, 0);
    regroup::reduce_axes(regroup::seq, columns, {0}, out, m);
    EXPECT_EQ(out, expected);
    regroup::inclusive_scan_rows(regroup::par, rows, rows, regroup::plus<std::uint8_t>{});
    for (regroup::index r = 0; r < 3; ++r) {
      EXPECT_EQ(rows(r, 0), value(r, 0));
      EXPECT_EQ(rows(r, 9), static_cast<std::uint8_t>(expected[static_cast<std::size_t>(r)]));
    }
  }
  munmap(memory, bytes);
}
