// SPDX-License-Identifier: Apache-2.0
// Both scans around every edge: every prefix is the tree of the text, for every monoid contiguous pieces, in place too.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cases.hpp"
#include "recorder.hpp"
#include "regroup/scan.hpp"

namespace {

template <order::rule Rule, class State>
void one(const std::vector<order::word>& xs) {
  const auto inclusive = order::expected_inclusive(xs);
  const auto exclusive = order::expected_exclusive(xs);
  const order::hashed<Rule, State> m;
  order::for_some_executors([&](const auto& ex, const std::string& name) {
    const std::string where = name + ", n = " + std::to_string(xs.size());
    std::vector<order::word> ys(xs.size(), 99);
    regroup::inclusive_scan(ex, xs, ys, m);
    EXPECT_TRUE(ys == inclusive) << where;
    std::fill(ys.begin(), ys.end(), 99);
    regroup::exclusive_scan(ex, xs, ys, m);
    EXPECT_TRUE(ys == exclusive) << where << ", exclusive";
    ys = xs;
    regroup::inclusive_scan(ex, ys, ys, m);
    EXPECT_TRUE(ys == inclusive) << where << ", in place";
    ys = xs;
    regroup::exclusive_scan(ex, ys, ys, m);
    EXPECT_TRUE(ys == exclusive) << where << ", exclusive in place";
  });
}

template <order::rule Rule, class State = order::word>
void every_edge() {
  for (const std::int64_t n : order::edges()) {
    one<Rule, State>(order::elements(n));
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace

TEST(scan, contiguous_pieces) { every_edge<order::rule::pieces>(); }
TEST(scan, pieces_of_opaque) { every_edge<order::rule::pieces, order::opaque>(); }
TEST(scan, declared_commutative) { every_edge<order::rule::striped>(); }
TEST(scan, declared_commutative_aggregates) { every_edge<order::rule::striped, order::aggregate>(); }
TEST(scan, a_tile_lift_never_enters) { every_edge<order::rule::tile>(); }

TEST(scan, every_short_length) {
  for (std::int64_t n = 0; n <= 300; ++n) one<order::rule::striped, order::word>(order::elements(n));
}

TEST(scan, strided_reversed_lazy_and_projected) {
  const std::int64_t n = 13'001;
  const auto xs = order::elements(n);
  const auto expected = order::expected_inclusive(xs);
  const order::hashed<order::rule::pieces> m;
  std::vector<order::word> reversed(xs.rbegin(), xs.rend());
  order::for_some_executors([&](const auto& ex, const std::string& name) {
    std::vector<order::word> spread(3 * xs.size(), 7);
    regroup::inclusive_scan(ex, regroup::generate(n, order::element), regroup::view<order::word>(spread.data(), {n}, {3}), m);
    for (std::size_t i = 0; i < xs.size(); ++i) {
      ASSERT_EQ(spread[3 * i], expected[i]) << name << ", " << i;
      ASSERT_EQ(spread[3 * i + 1], 7u) << name << ", " << i;
    }
    auto back = reversed;
    const regroup::view<order::word> v(&back.back(), {n}, {-1});
    regroup::inclusive_scan(ex, v, v, m);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), back.rbegin())) << name << ", backwards in place";
    std::vector<order::word> ys(xs.size());
    regroup::inclusive_scan(ex, xs, ys, m, [](order::word x) { return x ^ 3; });
    auto changed = xs;
    for (auto& x : changed) x ^= 3;
    EXPECT_TRUE(ys == order::expected_inclusive(changed)) << name << ", projected";
  });
}
