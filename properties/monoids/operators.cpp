// SPDX-License-Identifier: Apache-2.0
// The example operators compute what they claim.
#include "../../examples/operators.hpp"

#include "fold.hpp"
#include "regroup/host/lanes.hpp"

namespace {
using namespace monoids;
}

TEST(operators, recorders_spell_the_tree) {
  const std::vector<std::int64_t> xs{0, 1, 2};
  EXPECT_EQ(fold(examples::recorder{}, xs), "((0 1) 2)");
  EXPECT_EQ(examples::recorder{}("(0 1)", ""), "(0 1)");
  EXPECT_TRUE(regroup::is_commutative<examples::commutative_recorder>);
  EXPECT_FALSE(regroup::is_commutative<examples::recorder>);
  EXPECT_EQ(regroup::host::leaf_of(examples::tile_recorder{}, xs.data(), 3), "[0..2]");
  EXPECT_EQ(regroup::host::leaf_of(examples::commutative_recorder{}, xs.data(), 3), "((0 2) 1)");
}

TEST(operators, free_monoid_keeps_everything) {
  const std::vector<int> xs{3, 1, 4, 1, 5};
  EXPECT_EQ(fold(examples::free_monoid<int>{}, xs), xs);
}

TEST(operators, longest_run_crosses_seams) {
  const examples::longest_run m;
  EXPECT_EQ(fold(m, std::vector<bool>{}), 0);
  EXPECT_EQ(fold(m, std::vector<bool>{true, true, false, true, true, true, false}), 3);
  const std::vector<bool> ones(5, true);
  EXPECT_EQ(m.lower(m(state(m, ones), state(m, ones))), 10);
}

TEST(operators, min_plus_finds_the_cheapest_way) {
  using step = examples::min_plus::state;
  const auto way = fold(examples::min_plus{}, std::vector<step>{{1, 9, 9, 1}, {9, 1, 9, 9}, {5, 9, 9, 2}});
  EXPECT_EQ(way.ab, 4);  // 1 on rail a, 1 across, 2 on rail b
}
