// SPDX-License-Identifier: Apache-2.0
// max and min as a total rule: NaN wins over everything, -0 < +0, otherwise the order of the reals; bitwise
// commutative, associative and idempotent (all NaN being one), for float, double and long double. Also abs, select and
// power_of_two.
#include <regroup/math.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace {

namespace math = regroup::math;

template <class Real>
constexpr Real infinity = std::numeric_limits<Real>::infinity();
template <class Real>
constexpr Real nan = std::numeric_limits<Real>::quiet_NaN();

template <class Real>
bool same(Real a, Real b) {
  if (a != a || b != b) return a != a && b != b;
  return a == b && std::signbit(a) == std::signbit(b);
}

template <class Real>
class extrema : public testing::Test {
 public:
  using limits = std::numeric_limits<Real>;
  // Ascending; NaN comes apart.
  static constexpr std::array<Real, 15> ascending = {-infinity<Real>, -limits::max(), Real(-2),
                                                     Real(-1),        -limits::min(), -limits::denorm_min(),
                                                     Real(-0.0),      Real(0.0),      limits::denorm_min(),
                                                     limits::min(),   Real(1),        Real(2),
                                                     Real(3),         limits::max(),  infinity<Real>};
};
using reals = testing::Types<float, double, long double>;
TYPED_TEST_SUITE(extrema, reals);

TYPED_TEST(extrema, table_of_special_values) {
  const auto& values = TestFixture::ascending;
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t j = 0; j < values.size(); ++j) {
      EXPECT_TRUE(same(math::max(values[i], values[j]), values[std::max(i, j)])) << values[i] << " " << values[j];
      EXPECT_TRUE(same(math::min(values[i], values[j]), values[std::min(i, j)])) << values[i] << " " << values[j];
    }
    for (const TypeParam n : {nan<TypeParam>, -nan<TypeParam>, std::numeric_limits<TypeParam>::signaling_NaN()}) {
      EXPECT_TRUE(math::is_nan(math::max(values[i], n)) && math::is_nan(math::max(n, values[i]))) << values[i];
      EXPECT_TRUE(math::is_nan(math::min(values[i], n)) && math::is_nan(math::min(n, values[i]))) << values[i];
      EXPECT_TRUE(math::is_nan(math::max(n, n)) && math::is_nan(math::min(n, n)));
    }
  }
}

TYPED_TEST(extrema, associative_bitwise) {
  std::vector<TypeParam> values(this->ascending.begin(), this->ascending.end());
  values.push_back(nan<TypeParam>);
  for (const TypeParam a : values) {
    for (const TypeParam b : values) {
      for (const TypeParam c : values) {
        EXPECT_TRUE(same(math::max(math::max(a, b), c), math::max(a, math::max(b, c))));
        EXPECT_TRUE(same(math::min(math::min(a, b), c), math::min(a, math::min(b, c))));
      }
    }
  }
}

TYPED_TEST(extrema, abs_select_and_powers_of_two) {
  using limits = std::numeric_limits<TypeParam>;
  for (const TypeParam x : this->ascending) EXPECT_TRUE(same(math::abs(x), std::fabs(x))) << x;
  EXPECT_TRUE(math::is_nan(math::abs(-nan<TypeParam>)));
  EXPECT_TRUE(same(math::select(true, TypeParam(-0.0), TypeParam(0.0)), TypeParam(-0.0)));
  EXPECT_TRUE(same(math::select(false, nan<TypeParam>, TypeParam(2)), TypeParam(2)));
  for (int n = limits::min_exponent - 1; n < limits::max_exponent; ++n) {
    ASSERT_EQ(math::power_of_two<TypeParam>(n), std::ldexp(TypeParam(1), n)) << n;
  }
}

TEST(extrema_of_any_bits, agree_with_the_order) {
  std::mt19937 random(1);
  for (int i = 0; i < 1000000; ++i) {
    const auto a = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    const auto b = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    const float high = math::max(a, b);
    const float low = math::min(a, b);
    ASSERT_TRUE(same(high, math::max(b, a)) && same(low, math::min(b, a))) << a << " " << b;
    ASSERT_TRUE(same(math::max(a, a), a) && same(math::min(b, b), b)) << a << " " << b;
    if (a == a && b == b) {
      ASSERT_TRUE(high >= a && high >= b && (same(high, a) || same(high, b))) << a << " " << b;
      ASSERT_TRUE(low <= a && low <= b && (same(low, a) || same(low, b))) << a << " " << b;
    } else {
      ASSERT_TRUE(high != high && low != low) << a << " " << b;
    }
  }
}

}  // namespace
