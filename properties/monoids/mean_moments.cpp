// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "fold.hpp"
#include "regroup/monoids/mean.hpp"
#include "regroup/monoids/moments.hpp"

namespace {
using namespace monoids;
using doubles = std::vector<double>;
constexpr double inf = infinity<double>;
constexpr double none = not_a_number<double>;
constexpr double huge = std::numeric_limits<double>::max();

struct row {
  doubles xs;
  double mean, variance;
};
const std::vector<row> table{
    {{}, none, none},          {{-0.0}, 0, 0},          {{5}, 5, 0},
    {{1, 2, 3, 4}, 2.5, 1.25}, {{none, 1}, none, none}, {{1, 2, none}, none, none},
    {{inf}, inf, none},        {{inf, 1}, inf, none},   {{-inf, -inf}, -inf, none},
    {{inf, -inf}, none, none}, {{5e-324}, 5e-324, 0},   {{huge}, huge, 0},
    {{huge, huge}, inf, none}, {{huge, -huge}, 0, inf},
};

/// Mean and variance in long double, two passes.
template <class Real>
void expect_near_reference(double offset, double spread, int n) {
  std::mt19937_64 draw(3);
  std::normal_distribution<double> normal(offset, spread);
  std::vector<Real> xs;
  for (int i = 0; i < n; ++i) xs.push_back(static_cast<Real>(normal(draw)));
  long double mean = 0;
  for (const Real x : xs) mean += x;
  mean /= n;
  long double variance = 0;
  for (const Real x : xs) variance += (x - mean) * (x - mean);
  variance /= n;
  const auto [count, m, v] = fold(regroup::moments<Real>{}, xs);
  const long double u = std::numeric_limits<Real>::epsilon() / 2;
  EXPECT_EQ(count, n);
  EXPECT_LE(std::fabs(m - mean), n * u * (std::fabs(mean) + std::sqrt(variance)));
  EXPECT_LE(std::fabs(v - variance), n * u * std::sqrt(1 + mean * mean / variance) * variance);
  EXPECT_LE(std::fabs(fold(regroup::mean<Real>{}, xs) - mean), n * u * (std::fabs(mean) + std::sqrt(variance)));
}
}  // namespace

TEST(mean_moments, special_values) {
  for (const row& r : table) {
    const auto [count, mean, variance] = fold(regroup::moments<double>{}, r.xs);
    EXPECT_EQ(count, static_cast<std::int64_t>(r.xs.size()));
    EXPECT_TRUE(same(mean, r.mean) && same(variance, r.variance)) << regroup::laws::text_of(r.xs) << mean << variance;
    EXPECT_TRUE(same(fold(regroup::mean<double>{}, r.xs), r.mean)) << regroup::laws::text_of(r.xs);
  }
}

TEST(mean_moments, within_the_bound_of_long_double) {
  expect_near_reference<double>(0, 1, 1000);
  expect_near_reference<double>(1e4, 1, 1001);
  expect_near_reference<float>(0, 1, 1000);
  expect_near_reference<float>(100, 3, 999);
}

TEST(mean_moments, average_of_chunks) {
  const regroup::mean<double> m;
  const auto both = m({1'234'567, 500'000'000}, {2'345'678, 500'000'000});
  EXPECT_EQ(both.sum, 3'580'245);
  EXPECT_EQ(both.count, 1'000'000'000);
  EXPECT_EQ(m.lower(both), 0.003580245);
}

TEST(mean_moments, counts_past_2_31) {
  const regroup::moments<float> m;
  auto s = m(m.lift(3), m.lift(5));
  for (int doubled = 0; doubled < 40; ++doubled) s = m(s, s);
  const auto [count, mean, variance] = m.lower(s);
  EXPECT_EQ(count, std::int64_t{1} << 41);
  EXPECT_EQ(mean, 4);
  EXPECT_EQ(variance, 1);
  EXPECT_EQ(m(s, m.lift(4)).count, (std::int64_t{1} << 41) + 1);
  for (const std::int64_t n : {0, 1, 16777217}) EXPECT_EQ(regroup::detail::from_count<float>(n), static_cast<float>(n));
  for (const int bits : {31, 32, 33, 52, 53, 54, 62}) {
    for (const std::int64_t off : {-1, 0, 1, 3}) {
      const std::int64_t n = (std::int64_t{1} << bits) + off;
      EXPECT_EQ(regroup::detail::from_count<double>(n), static_cast<double>(n)) << n;
    }
  }
}
