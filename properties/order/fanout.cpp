// SPDX-License-Identifier: Apache-2.0
// Each member of a fanout has its own tree, whatever the other members are.
#include "regroup/monoids/fanout.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cases.hpp"
#include "recorder.hpp"
#include "regroup/reduce.hpp"
#include "regroup/scan.hpp"
#include "regroup/stream.hpp"

namespace {

using order::rule;
constexpr regroup::fanout all{order::hashed<rule::pieces>{}, order::hashed<rule::striped, order::aggregate>{},
                              order::hashed<rule::tile>{}};

using stream = regroup::accumulator<std::remove_const_t<decltype(all)>, order::word>;

template <class Answer>
void expect_members(const Answer& answer, const std::vector<order::word>& xs, const std::string& where,
                    std::int64_t first = 0) {
  const auto [pieces, striped, tile] = answer;
  EXPECT_EQ(pieces, order::expected<rule::pieces>(xs, first)) << where;
  EXPECT_EQ(striped, order::expected<rule::striped>(xs, first)) << where;
  EXPECT_EQ(tile, order::expected<rule::tile>(xs, first)) << where;
}

}  // namespace

TEST(fanout, reduce) {
  for (const std::int64_t n : {0, 1, 2, 33, 129, 300, 4095, 4097, 9001, 70'000}) {
    const auto xs = order::elements(n);
    order::for_some_executors([&](const auto& ex, const std::string& name) {
      expect_members(regroup::reduce(ex, xs, all), xs, name + ", n = " + std::to_string(n));
    });
  }
}

TEST(fanout, rows) {
  using answer = decltype(regroup::reduce(regroup::seq, order::elements(1), all));
  for (const std::int64_t n : {1, 40, 300, 5000}) {
    const auto xs = order::elements(7 * n);
    std::vector<answer> out(7);
    regroup::reduce_rows(regroup::par, regroup::view<const order::word>(xs.data(), {7, n}), out, all);
    for (std::int64_t r = 0; r < 7; ++r) {
      expect_members(out[static_cast<std::size_t>(r)], {xs.begin() + r * n, xs.begin() + (r + 1) * n}, "row");
    }
  }
}

TEST(fanout, accumulator) {
  for (const std::int64_t first : {0, 100, 4095}) {
    const auto xs = order::elements(9500);
    stream acc{all, first};
    for (std::size_t i = 0; i < xs.size(); i += 450)
      acc.push(std::span(xs).subspan(i, std::min<std::size_t>(450, xs.size() - i)));
    expect_members(acc.value(), xs, "from " + std::to_string(first), first);
  }
}

TEST(fanout, accumulators_merged) {
  const auto xs = order::elements(9500);
  stream left{all, 50};
  stream right{all, 50 + 6001};
  left.push(std::span(xs).first(6001));
  right.push(std::span(xs).subspan(6001));
  left.merge(right);
  expect_members(left.value(), xs, "merged", 50);
}

TEST(fanout, inside_a_fanout) {
  const auto xs = order::elements(5000);
  const auto answer = regroup::reduce(regroup::par, xs, regroup::fanout{all, order::hashed<rule::striped_tile>{}});
  const auto [inner, outer] = answer;
  expect_members(inner, xs, "inner");
  EXPECT_EQ(outer, order::expected<rule::striped_tile>(xs));
}

TEST(fanout, scan) {
  const auto xs = order::elements(5000);
  using answer = decltype(regroup::reduce(regroup::seq, order::elements(1), all));
  std::vector<answer> ys(xs.size());
  regroup::inclusive_scan(regroup::par, xs, ys, all);
  const auto expected = order::expected_inclusive(xs);
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const auto [pieces, striped, tile] = ys[i];
    ASSERT_EQ(pieces, expected[i]) << i;
    ASSERT_EQ(striped, expected[i]) << i;
    ASSERT_EQ(tile, expected[i]) << i;
  }
}
