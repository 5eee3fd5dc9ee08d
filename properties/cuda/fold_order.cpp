// SPDX-License-Identifier: Apache-2.0
// The device folds evaluate the contract's tree: recorders, whose states are pictures of the tree that combined them,
// at every edge of the order, for every rule and shape of state, under every schedule of a block's threads.
#include <gtest/gtest.h>

#include <string>

#include "../order/cases.hpp"
#include "../order/recorder.hpp"
#include "folds.hpp"
#include "regroup/monoids/fanout.hpp"

namespace {

using order::rule;
using order::word;

template <rule Rule, class State>
void every_edge() {
  for (const std::int64_t n : order::edges()) {
    if (order::small() && n > 2 * regroup::tile_elements + 1) continue;
    const auto xs = order::elements(n);
    const word tree = order::expected<Rule>(xs);
    for (auto [name, machine] : emulated::machines(n)) {
      const order::hashed<Rule, State> m;
      const auto state = emulated::fold(machine, m, emulated::one_row(xs));
      ASSERT_EQ(m.lower(state[0]), tree) << name << ", n = " << n;
      if (n > 9 * regroup::tile_elements) break;  // one schedule will do
    }
  }
}

}  // namespace

TEST(fold_order, pieces_of_numbers) { every_edge<rule::pieces, word>(); }
TEST(fold_order, pieces_of_aggregates) { every_edge<rule::pieces, order::aggregate>(); }
TEST(fold_order, striped_numbers) { every_edge<rule::striped, word>(); }
TEST(fold_order, striped_aggregates) { every_edge<rule::striped, order::aggregate>(); }
TEST(fold_order, tiles_of_numbers) { every_edge<rule::tile, word>(); }
