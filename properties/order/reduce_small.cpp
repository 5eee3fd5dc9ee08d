// SPDX-License-Identifier: Apache-2.0
// Every length from 0 to 300 with trees that can be read, through every executor.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cases.hpp"
#include "recorder.hpp"
#include "regroup/reduce.hpp"

namespace {

template <order::rule Rule>
std::string spelled(std::int64_t n) {
  reference::operands<std::int64_t> positions;
  for (std::int64_t i = 0; i < n; ++i) positions.emplace_back(i);
  const order::spelled<Rule> m;
  if constexpr (order::lifts_tiles(Rule)) {
    const auto lift_tile = [&](const std::vector<std::int64_t>& tile) {
      return "[" + std::to_string(tile.front()) + ".." + std::to_string(tile.back()) + "]";
    };
    return reference::reduce_tiles(m, positions, lift_tile).value_or("");
  } else {
    reference::operands<std::string> lifted;
    for (const auto& i : positions) lifted.emplace_back(m.lift(*i));
    return reference::reduce(m, lifted).value_or("");
  }
}

template <order::rule Rule>
void every_short_length() {
  std::vector<std::int64_t> xs;
  for (std::int64_t n = 0; n <= 300; ++n) {
    const std::string tree = spelled<Rule>(n);
    order::for_each_executor([&](const auto& ex, const std::string& name) {
      ASSERT_EQ(regroup::reduce(ex, xs, order::spelled<Rule>{}), tree) << name << ", n = " << n;
    });
    if (testing::Test::HasFatalFailure()) return;
    xs.push_back(n);
  }
}

}  // namespace

TEST(reduce_small, contiguous_pieces) { every_short_length<order::rule::pieces>(); }
TEST(reduce_small, striped_lanes) { every_short_length<order::rule::striped>(); }
TEST(reduce_small, tile_lift) { every_short_length<order::rule::tile>(); }

TEST(reduce_small, trees_a_person_can_check) {
  std::vector<std::int64_t> xs;
  for (std::int64_t i = 0; i < 131; ++i) xs.push_back(i);
  const auto first = [&](std::size_t n) {
    return std::vector<std::int64_t>(xs.begin(), xs.begin() + static_cast<std::ptrdiff_t>(n));
  };
  EXPECT_EQ(regroup::reduce(regroup::seq, first(4), order::spelled<order::rule::pieces>{}), "(((0 1) 2) 3)");
  EXPECT_EQ(regroup::reduce(regroup::seq, first(4), order::spelled<order::rule::striped>{}), "((0 2) (1 3))");
  EXPECT_EQ(regroup::reduce(regroup::seq, first(5), order::spelled<order::rule::striped>{}), "(((0 4) 2) (1 3))");
  EXPECT_EQ(regroup::reduce(regroup::seq, first(131), order::spelled<order::rule::tile>{}), "[0..130]");
}
