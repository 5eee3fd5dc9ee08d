// SPDX-License-Identifier: Apache-2.0
// Merging an accumulator with its exact continuation gives the bits of one stream, in any grouping, at any offset. Merging an
// empty one changes nothing. Any other merge combines the two states.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cases.hpp"
#include "recorder.hpp"
#include "regroup/stream.hpp"

namespace {

template <order::rule Rule, class State = order::word>
auto accumulated(const std::vector<order::word>& xs, std::int64_t first, std::int64_t begin, std::int64_t end) {
  regroup::accumulator acc{order::hashed<Rule, State>{}, first + begin};
  acc.push(std::span(xs).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
  return acc;
}

/// Cuts [first, first + n) into intervals and merges neighbours in a random order until one is left.
template <order::rule Rule, class State = order::word>
void random_groupings(std::int64_t first, std::int64_t n, int cuts, order::dice& random) {
  const auto xs = order::elements(n);
  std::vector<std::int64_t> at = {0, n};
  for (int c = 0; c < cuts; ++c) at.push_back(random(0, 2) == 0 ? std::min(n, random(0, 9) * 4096) : random(0, n));
  std::sort(at.begin(), at.end());
  std::vector<regroup::accumulator<order::hashed<Rule, State>, order::word>> parts;
  std::string where = "from " + std::to_string(first) + ", cut at";
  for (std::size_t k = 0; k + 1 < at.size(); ++k) {
    parts.push_back(accumulated<Rule, State>(xs, first, at[k], at[k + 1]));
    where += " " + std::to_string(at[k + 1]);
  }
  while (parts.size() > 1) {
    const auto k = random(0, static_cast<std::int64_t>(parts.size()) - 2);
    parts[static_cast<std::size_t>(k)].merge(parts[static_cast<std::size_t>(k + 1)]);
    parts.erase(parts.begin() + k + 1);
  }
  ASSERT_EQ(parts[0].value(), order::expected<Rule>(xs, first)) << where;
  ASSERT_EQ(parts[0].size(), n) << where;
  ASSERT_EQ(parts[0].first_position(), first) << where;
  auto more = xs;
  for (std::int64_t i = n; i < n + 5000; ++i) more.push_back(order::element(i));
  parts[0].push(std::span(more).subspan(xs.size()));
  ASSERT_EQ(parts[0].value(), order::expected<Rule>(more, first)) << where << ", then 5000 more";
}

template <order::rule Rule, class State = order::word>
void all_groupings() {
  order::dice random(31);
  for (const std::int64_t first : {0, 1, 31, 127, 128, 4095, 4096, 4097, 23'456}) {
    for (const std::int64_t n : {1, 2, 60, 700, 4096, 5000, 9001, 40'000}) {
      if (order::small() && n > 9001) continue;
      for (const int cuts : {1, 2, 5, 30}) random_groupings<Rule, State>(first, n, cuts, random);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace

TEST(merge, contiguous_pieces) { all_groupings<order::rule::pieces>(); }
TEST(merge, pieces_of_opaque) { all_groupings<order::rule::pieces, order::opaque>(); }
TEST(merge, striped_lanes) { all_groupings<order::rule::striped>(); }
TEST(merge, tile_lift) { all_groupings<order::rule::tile>(); }
TEST(merge, striped_tile_lift) { all_groupings<order::rule::striped_tile, order::aggregate>(); }

TEST(merge, every_cut_of_a_short_stream) {
  for (const std::int64_t first : {0, 4000, 4096 - 150}) {
    const auto xs = order::elements(300);
    const auto tree = order::expected<order::rule::striped>(xs, first);
    for (std::int64_t cut = 0; cut <= 300; ++cut) {
      auto left = accumulated<order::rule::striped>(xs, first, 0, cut);
      left.merge(accumulated<order::rule::striped>(xs, first, cut, 300));
      ASSERT_EQ(left.value(), tree) << "from " << first << ", cut at " << cut;
    }
  }
}

TEST(merge, an_empty_one_changes_nothing) {
  const auto xs = order::elements(7000);
  const auto more = order::elements(14'000);
  for (const std::int64_t empty_position : {0, 5, 7100, 100'000}) {
    auto acc = accumulated<order::rule::pieces>(xs, 100, 0, 7000);
    acc.merge(regroup::accumulator<order::hashed<order::rule::pieces>, order::word>{{}, empty_position});
    EXPECT_EQ(acc.value(), order::expected<order::rule::pieces>(xs, 100));
    acc.push(std::span(more).subspan(7000));
    EXPECT_EQ(acc.value(), order::expected<order::rule::pieces>(more, 100));
    EXPECT_EQ(acc.size(), 14'000);
  }
}

TEST(merge, into_an_empty_one_at_the_same_position) {
  const auto xs = order::elements(7000);
  for (const std::int64_t first : {0, 100, 4096}) {
    auto acc = accumulated<order::rule::pieces>(xs, first, 0, 0);
    acc.merge(accumulated<order::rule::pieces>(xs, first, 0, 6000));
    acc.push(std::span(xs).subspan(6000));
    EXPECT_EQ(acc.value(), order::expected<order::rule::pieces>(xs, first));
  }
}

/// first ++ second is not a continuation: value = combine of the values; later pushes fold from 0, on its right.
template <order::rule Rule>
void not_a_continuation(std::int64_t n, std::int64_t first, std::int64_t second_n, std::int64_t second) {
  const auto xs = order::elements(n);
  const auto others = order::elements(second_n, 1'000'000);
  const auto later = order::elements(10'001, 2'000'000);
  auto acc = accumulated<Rule>(xs, first, 0, n);
  acc.merge(accumulated<Rule>(others, second, 0, second_n));
  const auto merged = order::mix(order::expected<Rule>(xs, first), order::expected<Rule>(others, second));
  EXPECT_EQ(acc.value(), merged);
  for (std::size_t done = 0; done < later.size(); done += 1000) {
    const auto n_now = std::min<std::size_t>(1000, later.size() - done);
    acc.push(std::span(later).subspan(done, n_now));
    const std::vector<order::word> pushed(later.begin(), later.begin() + static_cast<std::ptrdiff_t>(done + n_now));
    ASSERT_EQ(acc.value(), order::mix(merged, order::expected<Rule>(pushed))) << done;
  }
}

TEST(merge, not_a_continuation) {
  not_a_continuation<order::rule::pieces>(5000, 0, 300, 0);
  not_a_continuation<order::rule::striped>(5000, 0, 300, 0);
  not_a_continuation<order::rule::tile>(5000, 0, 300, 0);
  not_a_continuation<order::rule::pieces>(300, 77, 9000, 378);
  not_a_continuation<order::rule::striped>(4096, 0, 4096, 8192);
  not_a_continuation<order::rule::striped>(10, 4096, 10, 4096);
  not_a_continuation<order::rule::striped>(10, 50, 10, 30);
}

/// A monoid that nothing is assigned to.
struct scaled_sum {
  const double& by;
  static constexpr bool is_commutative = true;
  double identity() const { return 0; }
  double lift(double x) const { return by * x; }
  double operator()(double a, double b) const { return a + b; }
};

TEST(merge, of_a_monoid_with_a_reference) {
  const double three = 3;
  const std::vector<double> xs(10, 1.0);
  regroup::accumulator a{scaled_sum{three}}, b{scaled_sum{three}, 77};
  a.push(xs);
  b.push(xs);
  a.merge(b);
  EXPECT_EQ(a.value(), 60);
}

TEST(merge, with_itself) {
  const auto xs = order::elements(5000);
  auto acc = accumulated<order::rule::pieces>(xs, 0, 0, 5000);
  acc.merge(acc);
  const auto tree = order::expected<order::rule::pieces>(xs);
  EXPECT_EQ(acc.value(), order::mix(tree, tree));
}
