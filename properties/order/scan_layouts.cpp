// SPDX-License-Identifier: Apache-2.0
// A scan reads and writes with any strides, backwards, in place, lazily and through a projection.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scans.hpp"

TEST(scan_layouts, strided_reversed_lazy_and_projected) {
  const std::int64_t n = 13'001;
  const auto xs = order::elements(n);
  const auto expected = order::expected_inclusive(xs);
  const order::hashed<order::rule::pieces> m;
  std::vector<order::word> reversed(xs.rbegin(), xs.rend());
  order::for_some_executors([&](const auto& ex, const std::string& name) {
    std::vector<order::word> spread(3 * xs.size(), 7);
    regroup::inclusive_scan(ex, regroup::generate(n, order::element),
                            regroup::view<order::word>(spread.data(), {n}, {3}), m);
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
