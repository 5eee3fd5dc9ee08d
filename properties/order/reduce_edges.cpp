// SPDX-License-Identifier: Apache-2.0
// reduce around every edge of the order and at random lengths, for every rule and shape of state.
#include <gtest/gtest.h>

#include <string>

#include "cases.hpp"
#include "recorder.hpp"
#include "regroup/reduce.hpp"

namespace {

template <order::rule Rule, class State>
void every_edge() {
  for (const std::int64_t n : order::edges()) {
    const auto xs = order::elements(n);
    const order::word tree = order::expected<Rule>(xs);
    order::for_each_executor([&](const auto& ex, const std::string& name) {
      EXPECT_EQ(regroup::reduce(ex, xs, order::hashed<Rule, State>{}), tree) << name << ", n = " << n;
    });
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace

TEST(reduce_edges, pieces_of_numbers) { every_edge<order::rule::pieces, order::word>(); }
TEST(reduce_edges, pieces_of_aggregates) { every_edge<order::rule::pieces, order::aggregate>(); }
TEST(reduce_edges, pieces_of_opaque) { every_edge<order::rule::pieces, order::opaque>(); }
TEST(reduce_edges, striped_numbers) { every_edge<order::rule::striped, order::word>(); }
TEST(reduce_edges, striped_aggregates) { every_edge<order::rule::striped, order::aggregate>(); }
TEST(reduce_edges, striped_opaque) { every_edge<order::rule::striped, order::opaque>(); }
TEST(reduce_edges, tiles_of_numbers) { every_edge<order::rule::tile, order::word>(); }
TEST(reduce_edges, tiles_of_opaque) { every_edge<order::rule::tile, order::opaque>(); }
TEST(reduce_edges, striped_tiles_of_aggregates) { every_edge<order::rule::striped_tile, order::aggregate>(); }
