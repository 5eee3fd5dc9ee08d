// SPDX-License-Identifier: Apache-2.0
// The same monoid objects in Thrust's reduce, transform_reduce, inclusive_scan and reduce_by_key, on its sequential,
// OpenMP and TBB back ends, compiled as plain C++.
#include <gtest/gtest.h>

#ifdef REGROUP_HAS_THRUST

#include <thrust/functional.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/system/cpp/execution_policy.h>
#include <thrust/system/omp/execution_policy.h>
#include <thrust/system/tbb/execution_policy.h>
#include <thrust/transform_reduce.h>

#include <cmath>
#include <vector>

#include "regroup/regroup.hpp"

namespace interop {
namespace {

template <class F>
void on_each_back_end(const F& f) {
  f(thrust::cpp::par, "cpp");
  f(thrust::omp::par, "omp");
  f(thrust::tbb::par, "tbb");
}

std::vector<float> numbers(std::size_t n) {
  std::vector<float> x;
  for (std::size_t i = 0; i < n; ++i) x.push_back(static_cast<float>(static_cast<int>(i * 7919 % 2003) - 1001) / 50);
  return x;
}
const float bound = 1e5f * (1 + regroup::math::exp_error<float>)*0x1p-24f;

}  // namespace

TEST(thrust, reduce) {
  const auto x = numbers(100'000);
  on_each_back_end([&](const auto& policy, const char* name) {
    const regroup::maximum<float> largest;
    EXPECT_EQ(thrust::reduce(policy, x.begin(), x.end(), largest.identity(), largest),
              regroup::reduce(regroup::par, x, largest))
        << name;
  });
}

TEST(thrust, transform_reduce) {
  const auto x = numbers(100'000);
  const regroup::log_sum_exp<float> m;
  const float ours = regroup::reduce(regroup::par, x, m);
  on_each_back_end([&](const auto& policy, const char* name) {
    const auto state = thrust::transform_reduce(policy, x.begin(), x.end(), regroup::lifting(m), m.identity(), m);
    EXPECT_NEAR(m.lower(state), ours, bound) << name;
  });
}

/// Of states, which is what thrust::reduce and the scans take.
TEST(thrust, reduce_and_inclusive_scan_of_log_sum_exp) {
  const auto x = numbers(100'000);
  const regroup::log_sum_exp<float> m;
  const float ours = regroup::reduce(regroup::par, x, m);
  std::vector<float> prefixes(x.size());
  regroup::inclusive_scan(regroup::par, x, prefixes, m);
  const auto first = thrust::make_transform_iterator(x.begin(), regroup::lifting(m));
  const auto last = thrust::make_transform_iterator(x.end(), regroup::lifting(m));
  on_each_back_end([&](const auto& policy, const char* name) {
    EXPECT_NEAR(m.lower(thrust::reduce(policy, first, last, m.identity(), m)), ours, bound) << name;
    std::vector<regroup::state_of<decltype(m)>> y(x.size());
    thrust::inclusive_scan(policy, first, last, y.begin(), m);
    int wrong = 0;
    for (std::size_t i = 0; i < y.size(); ++i) wrong += !(std::abs(m.lower(y[i]) - prefixes[i]) <= bound);
    EXPECT_EQ(wrong, 0) << name;
  });
}

TEST(thrust, inclusive_scan_of_a_monoid_that_does_not_commute) {
  const regroup::affine<double> m;
  using map = regroup::state_of<decltype(m)>;
  std::vector<map> maps;
  for (int i = 0; i < 10'000; ++i) maps.push_back({0.5, i % 7 - 3.0});
  std::vector<map> ours(maps.size());
  regroup::inclusive_scan(regroup::par, maps, ours, m);
  on_each_back_end([&](const auto& policy, const char* name) {
    std::vector<map> y(maps.size());
    thrust::inclusive_scan(policy, maps.begin(), maps.end(), y.begin(), m);
    for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i].b, ours[i].b, 1e-14) << name << " " << i;
  });
}

TEST(thrust, reduce_by_key) {
  const auto x = numbers(20'000);
  std::vector<int> keys;
  for (std::size_t i = 0; i < x.size(); ++i) keys.push_back(static_cast<int>(i / 37));
  const regroup::log_sum_exp<float> m;
  std::vector<int> our_keys(x.size());
  std::vector<float> ours(x.size());
  const auto runs = static_cast<std::size_t>(regroup::reduce_by_key(regroup::par, keys, x, our_keys, ours, m));
  on_each_back_end([&](const auto& policy, const char* name) {
    std::vector<int> their_keys(x.size());
    std::vector<regroup::state_of<decltype(m)>> states(x.size());
    const auto lifted = thrust::make_transform_iterator(x.begin(), regroup::lifting(m));
    const auto end = thrust::reduce_by_key(policy, keys.begin(), keys.end(), lifted, their_keys.begin(), states.begin(),
                                           thrust::equal_to<int>{}, m);
    ASSERT_EQ(static_cast<std::size_t>(end.first - their_keys.begin()), runs) << name;
    for (std::size_t r = 0; r < runs; ++r) {
      EXPECT_EQ(their_keys[r], our_keys[r]) << name;
      EXPECT_NEAR(m.lower(states[r]), ours[r], 37 * (1 + regroup::math::exp_error<float>)*0x1p-24f * 2) << name;
    }
  });
}

}  // namespace interop

#endif
