// SPDX-License-Identifier: Apache-2.0
// A monoid object is what other libraries' reductions need: an associative function object with an identity. Here std's.
#include <gtest/gtest.h>

#include <algorithm>
#include <execution>
#include <numeric>
#include <vector>

#include "../../examples/operators.hpp"
#include "regroup/regroup.hpp"

namespace interop {
namespace {

std::vector<float> numbers(std::size_t n) {
  std::vector<float> x;
  for (std::size_t i = 0; i < n; ++i) x.push_back(static_cast<float>(static_cast<int>(i * 7919 % 2003) - 1001) / 50);
  return x;
}

/// log(sum exp) by any tree of n leaves: n combines and rescales at worst, each within (1 + c) u.
float any_tree_bound(std::size_t n) { return static_cast<float>(n) * (1 + regroup::math::exp_error<float>)*0x1p-24f; }

template <class M, class Xs>
auto by_std(const M& m, const Xs& x) {
  const auto sequential = std::transform_reduce(x.begin(), x.end(), m.identity(), m, regroup::lifting(m));
  return regroup::lower(m, sequential);
}
template <class M, class Xs>
auto by_std_in_parallel(const M& m, const Xs& x) {
  const auto state =
      std::transform_reduce(std::execution::par_unseq, x.begin(), x.end(), m.identity(), m, regroup::lifting(m));
  return regroup::lower(m, state);
}

}  // namespace

TEST(standard, transform_reduce_of_exact_monoids_is_reduce) {
  const auto equal = [](const auto& m, const auto& x) {
    const auto ours = regroup::reduce(regroup::par, x, m);
    EXPECT_EQ(by_std(m, x), ours);
    EXPECT_EQ(by_std_in_parallel(m, x), ours);
  };
  const auto x = numbers(100'000);
  equal(regroup::maximum<float>{}, x);
  equal(regroup::minimum<float>{}, x);
  equal(regroup::count{}, x);
  equal(regroup::any{}, x);
  equal(regroup::all{}, x);
  std::vector<int> integers(x.size());
  std::ranges::transform(x, integers.begin(), [](float element) { return static_cast<int>(50 * element); });
  equal(regroup::plus<std::int64_t>{}, integers);
}

/// (max, scaled sum) commutes, so std may also interleave it, as `std::reduce` and par_unseq do.
TEST(standard, log_sum_exp) {
  const auto x = numbers(100'000);
  const regroup::log_sum_exp<float> m;
  const float ours = regroup::reduce(regroup::par, x, m);
  EXPECT_NEAR(by_std(m, x), ours, any_tree_bound(x.size()));
  EXPECT_NEAR(by_std_in_parallel(m, x), ours, any_tree_bound(x.size()));
}

TEST(standard, statistics_in_one_pass) {
  const auto x = numbers(50'000);
  const regroup::fanout m{regroup::count{}, regroup::moments<double>{}, regroup::minimum<double>{}};
  const auto [n, stats, low] = by_std_in_parallel(m, x);
  EXPECT_EQ(n, 50'000);
  EXPECT_EQ(low, -20.02f);
  EXPECT_NEAR(stats.mean, std::accumulate(x.begin(), x.end(), 0.0) / 5e4, 1e-9);
}

/// A non-commutative monoid in std's ordered algorithms: transform_reduce may reorder, scans may not.
TEST(standard, scans_keep_the_order) {
  const regroup::affine<double> m;
  std::vector<regroup::state_of<decltype(m)>> maps;
  for (int i = 0; i < 10'000; ++i) maps.push_back({0.5, i % 7 - 3.0});
  std::vector<regroup::state_of<decltype(m)>> one(maps.size()), two(maps.size()), ours(maps.size());
  std::inclusive_scan(maps.begin(), maps.end(), one.begin(), m);
  std::inclusive_scan(std::execution::par, maps.begin(), maps.end(), two.begin(), m);
  regroup::inclusive_scan(regroup::par, maps, ours, m);
  for (std::size_t i = 0; i < maps.size(); ++i) {  // halves and small integers: every tree is exact to the last bits
    EXPECT_NEAR(one[i].b, ours[i].b, 1e-14);
    EXPECT_NEAR(two[i].b, ours[i].b, 1e-14);
  }
}

TEST(standard, a_users_operator) {
  const std::vector<char> bits = {1, 1, 0, 1, 1, 1, 0, 1};
  const examples::longest_run m;
  EXPECT_EQ(
      std::accumulate(bits.begin(), bits.end(), m.identity(), [&](auto s, char b) { return m(s, regroup::lift(m, b)); })
          .best,
      3);
  EXPECT_EQ(regroup::reduce(regroup::par, bits, m), 3);
}

}  // namespace interop
