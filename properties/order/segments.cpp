// SPDX-License-Identifier: Apache-2.0
// A segment and a run of equal keys have the tree of their own elements, counted from their own start.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "cases.hpp"
#include "recorder.hpp"
#include "regroup/reduce.hpp"

namespace {

template <order::rule Rule>
void segments(const std::vector<std::int64_t>& lengths) {
  std::vector<std::int64_t> offsets = {0};
  for (const auto n : lengths) offsets.push_back(offsets.back() + n);
  const auto xs = order::elements(offsets.back());
  std::vector<order::word> trees;
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    trees.push_back(
        order::expected<Rule>(std::vector<order::word>(xs.begin() + offsets[s], xs.begin() + offsets[s + 1])));
  }
  order::for_each_executor([&](const auto& ex, const std::string& name) {
    std::vector<order::word> out(lengths.size(), 99);
    regroup::reduce_segments(ex, xs, offsets, out, order::hashed<Rule>{});
    EXPECT_EQ(out, trees) << name << ", " << lengths.size() << " segments";
  });
  std::vector<order::word> out(lengths.size(), 99);
  const std::vector<int> narrow(offsets.begin(), offsets.end());
  regroup::reduce_segments(regroup::par, regroup::generate(offsets.back(), order::element), narrow, out,
                           order::hashed<Rule>{});
  EXPECT_EQ(out, trees) << "lazy elements, int offsets";
}

template <order::rule Rule>
void mixtures() {
  segments<Rule>({});
  segments<Rule>({0});
  segments<Rule>({0, 0, 1, 0, 2, 0});
  segments<Rule>({1, 31, 32, 33, 127, 128, 129, 0, 300, 4095, 4096, 4097, 8192, 9000});
  std::vector<std::int64_t> giant(200, 3);
  giant[77] = 150'000;
  segments<Rule>(giant);
  order::dice random(5);
  std::vector<std::int64_t> many;
  for (int i = 0; i < 2000; ++i) many.push_back(random(0, 40));
  segments<Rule>(many);
}

struct keyed {
  std::vector<double> keys;
  std::vector<std::int64_t> lengths;
};

template <order::rule Rule>
void by_key(const keyed& k) {
  const auto xs = order::elements(static_cast<std::int64_t>(k.keys.size()));
  std::vector<order::word> trees;
  std::vector<double> first_keys;
  auto first = xs.begin();
  for (const auto n : k.lengths) {
    trees.push_back(order::expected<Rule>(std::vector<order::word>(first, first + n)));
    first_keys.push_back(k.keys[static_cast<std::size_t>(first - xs.begin())]);
    first += n;
  }
  order::for_each_executor([&](const auto& ex, const std::string& name) {
    std::vector<double> keys_out(k.keys.size(), 77);
    std::vector<order::word> out(k.keys.size(), 99);
    const auto runs = regroup::reduce_by_key(ex, k.keys, xs, keys_out, out, order::hashed<Rule>{});
    ASSERT_EQ(runs, static_cast<std::int64_t>(trees.size())) << name;
    for (std::size_t r = 0; r < trees.size(); ++r) {
      EXPECT_EQ(out[r], trees[r]) << name << ", run " << r;
      EXPECT_EQ(std::bit_cast<order::word>(keys_out[r]), std::bit_cast<order::word>(first_keys[r]))
          << name << ", run " << r;
    }
  });
}

}  // namespace

TEST(segments, contiguous_pieces) { mixtures<order::rule::pieces>(); }
TEST(segments, striped_lanes) { mixtures<order::rule::striped>(); }
TEST(segments, tile_lift) { mixtures<order::rule::tile>(); }

TEST(by_key, nan_starts_a_new_run_and_the_first_key_is_reported) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  by_key<order::rule::pieces>({{}, {}});
  by_key<order::rule::pieces>({{1}, {1}});
  by_key<order::rule::pieces>({{nan}, {1}});
  by_key<order::rule::pieces>({{nan, nan, 1, 1, nan, 1}, {1, 1, 2, 1, 1}});
  by_key<order::rule::pieces>({{0.0, -0.0, 0.0, 1, -0.0, 0.0}, {3, 1, 2}});
}

TEST(by_key, short_and_long_runs) {
  order::dice random(6);
  keyed k;
  double key = 0;
  for (const auto longest : {1, 3, 400, 20'000}) {
    for (int r = 0; r < (longest > 400 ? 6 : 50); ++r) {
      const auto n = random(1, longest);
      key = key == 4 ? 2 : key + 1;
      k.keys.insert(k.keys.end(), static_cast<std::size_t>(n), key);
      k.lengths.push_back(n);
    }
  }
  by_key<order::rule::pieces>(k);
  by_key<order::rule::striped>(k);
}
