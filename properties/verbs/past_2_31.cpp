// SPDX-License-Identifier: Apache-2.0
// Counts and positions are 64-bit: more than 2^31 elements, on ranges that are computed when read.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "regroup/error.hpp"
#include "regroup/host/par.hpp"
#include "regroup/host/seq.hpp"
#include "regroup/reduce.hpp"
#include "regroup/scan.hpp"
#include "regroup/stream.hpp"

namespace {

constexpr regroup::index n = (regroup::index{1} << 31) + 5;

struct parity_and_count {
  struct state {
    std::uint32_t parity;
    std::uint32_t low_count;
  };
  static constexpr bool is_commutative = true;
  static constexpr bool is_exact = true;
  constexpr state identity() const { return {0, 0}; }
  constexpr state lift(std::uint32_t x) const { return {x, 1}; }
  constexpr state operator()(state a, state b) const { return {a.parity ^ b.parity, a.low_count + b.low_count}; }
};

struct low_bits {
  constexpr std::uint32_t operator()(regroup::index i) const { return static_cast<std::uint32_t>(i); }
};

bool skipped() { return std::getenv("REGROUP_SMALL") != nullptr; }

}  // namespace

TEST(past_2_31, reduce) {
  if (skipped()) GTEST_SKIP();
  const auto s = regroup::reduce(regroup::par, regroup::generate(n, low_bits{}), parity_and_count{});
  EXPECT_EQ(s.low_count, static_cast<std::uint32_t>(n));
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
  EXPECT_EQ(out[0].low_count, 3u);
  EXPECT_EQ(out[1].low_count, static_cast<std::uint32_t>(n - 4));
  EXPECT_EQ(out[2].low_count, 1u);
}

TEST(past_2_31, rows_beyond) {
  const std::int64_t rows = 3;
  const std::uint32_t one = 1;
  std::vector<parity_and_count::state> out(3);
  regroup::reduce_rows(regroup::par, regroup::view<const std::uint32_t>(&one, {rows, 10}, {0, 0}), out,
                       parity_and_count{});
  EXPECT_EQ(out[2].low_count, 10u);
}
