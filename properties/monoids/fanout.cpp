// SPDX-License-Identifier: Apache-2.0
#include "regroup/monoids/fanout.hpp"

#include "../../examples/operators.hpp"
#include "fold.hpp"
#include "regroup/monoids/histogram.hpp"
#include "regroup/monoids/log_sum_exp.hpp"
#include "regroup/monoids/moments.hpp"

namespace {
using namespace monoids;
using regroup::fanout;
const std::vector<double> xs{4, 1, -2, 8};
}  // namespace

TEST(fanout, many_statistics_in_one_pass) {
  const auto [n, stats, low] =
      fold(fanout{regroup::count{}, regroup::moments<double>{}, regroup::minimum<double>{}}, xs);
  EXPECT_EQ(n, 4);
  EXPECT_EQ(stats.mean, 2.75);
  EXPECT_EQ(low, -2);
  const auto [none, no_stats, nothing] =
      fold(fanout{regroup::count{}, regroup::moments<double>{}, regroup::minimum<double>{}}, std::vector<double>{});
  EXPECT_EQ(none, 0);
  EXPECT_TRUE(same(no_stats.mean, not_a_number<double>));
  EXPECT_EQ(nothing, infinity<double>);
}

TEST(fanout, state_is_that_of_the_members) {
  const fanout m{regroup::moments<float>{}, regroup::log_sum_exp<double>{}, regroup::histogram<double>{-3, 9, 4}};
  const auto s = state(m, xs);
  EXPECT_TRUE(same(get<0>(s), state(regroup::moments<float>{}, xs)));
  EXPECT_TRUE(same(get<1>(s), state(regroup::log_sum_exp<double>{}, xs)));
  EXPECT_EQ(get<2>(s), (std::vector<std::int64_t>{1, 1, 1, 1}));
  EXPECT_TRUE(same(m.from_parts(get<0>(s), get<1>(s), get<2>(s)), s));
  EXPECT_EQ(std::tuple_size_v<std::remove_cvref_t<decltype(m.members())>>, 3U);
  const auto& [moments, sum, counts] = s;
  EXPECT_TRUE(same(moments.mean, 2.75F) && same(sum.m, 8.0));
  EXPECT_EQ(counts.size(), 4U);
}

TEST(fanout, traits_are_those_of_all_members) {
  using exact = decltype(fanout{regroup::count{}, regroup::any{}});
  using inexact = decltype(fanout{regroup::count{}, regroup::plus<float>{}});
  using ordered = decltype(fanout{regroup::count{}, examples::longest_run{}});
  static_assert(regroup::is_exact<exact> && regroup::is_commutative<exact>);
  static_assert(!regroup::is_exact<inexact> && regroup::is_commutative<inexact>);
  static_assert(regroup::is_exact<ordered> && !regroup::is_commutative<ordered>);
  static_assert(std::is_trivially_copyable_v<regroup::state_of<inexact>>);
  static_assert(std::is_aggregate_v<regroup::state_of<inexact>>);
  static_assert(regroup::has_members<exact> && !regroup::has_members<regroup::count>);
  static_assert(!regroup::monoid_over<inexact, std::vector<int>>);
}

TEST(fanout, nests_and_takes_one_or_none) {
  const auto [inner, sum] = fold(fanout{fanout{regroup::count{}, regroup::all{}}, regroup::plus<double>{}}, xs);
  EXPECT_EQ(std::get<0>(inner), 4);
  EXPECT_TRUE(std::get<1>(inner));
  EXPECT_EQ(sum, 11);
  EXPECT_EQ(std::get<0>(fold(fanout{regroup::count{}}, xs)), 4);
  EXPECT_EQ(fold(fanout{}, xs), std::tuple<>{});
}
