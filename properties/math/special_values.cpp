// SPDX-License-Identifier: Apache-2.0
// exp, exp2 and log where a table defines the result: infinities, NaN of any payload, zeros, denormals, exact points, and the
// edges where results become 0 or infinity, tested at every float: no result is denormal, and results never decrease.
#include <regroup/math.hpp>

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

namespace {

namespace math = regroup::math;

template <class Real>
class special_values : public testing::Test {
 public:
  using limits = std::numeric_limits<Real>;
  using word = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
  static constexpr Real infinity = limits::infinity();
  static constexpr Real e_lowest = math::exp_lowest<Real>;
  static constexpr Real e_highest = math::exp_highest<Real>;

  // Quiet and signalling NaN of both signs with payloads that could leak into an exponent.
  static std::vector<Real> nans() {
    std::vector<Real> all;
    const auto quiet = std::bit_cast<word>(limits::quiet_NaN());
    const auto infinite = std::bit_cast<word>(infinity);
    const word sign = word{1} << (sizeof(Real) * 8 - 1);
    for (const word payload : {word{1}, word{0x3ff}, word{0x7ff}, word{0x12345}}) {
      for (const word base : {quiet, infinite}) {
        all.push_back(std::bit_cast<Real>(base | payload));
        all.push_back(std::bit_cast<Real>(base | payload | sign));
      }
    }
    return all;
  }
  static Real up(Real x) { return std::nextafter(x, infinity); }
  static Real down(Real x) { return std::nextafter(x, -infinity); }
  static bool plus_zero(Real x) { return x == 0 && !std::signbit(x); }
};
using reals = testing::Types<float, double>;
TYPED_TEST_SUITE(special_values, reals);

TYPED_TEST(special_values, decay_table_and_edges) {
  using test = TestFixture;
  using limits = typename test::limits;
  for (const TypeParam x : {TypeParam(-0.0), TypeParam(0.0), -limits::denorm_min(), -limits::min()}) {
    EXPECT_EQ(math::decay(x), 1) << x;
  }
  EXPECT_TRUE(test::plus_zero(math::decay(-limits::max())));
  EXPECT_TRUE(test::plus_zero(math::decay(-test::infinity)));
  for (const TypeParam n : test::nans()) EXPECT_TRUE(math::is_nan(math::decay(n)));
  TypeParam x = test::e_lowest;
  EXPECT_GE(math::decay(x), limits::min());
  for (int i = 0; i < 1000; ++i) {
    x = test::down(x);
    EXPECT_TRUE(test::plus_zero(math::decay(x))) << x;
  }
#if defined(__GNUC__) && !defined(__clang__)  // clang 14 folds no fma
  static_assert(math::decay(-test::infinity) == 0 && math::decay(TypeParam(0)) == 1);
#endif
}

TYPED_TEST(special_values, decay_is_exp_within_its_slope) {
  const auto u = std::numeric_limits<TypeParam>::epsilon() / 2;
  for (int i = 0; i <= 1'000'000; ++i) {
    const TypeParam x = TestFixture::e_lowest * TypeParam(i) / TypeParam(1'000'000);
    const TypeParam e = math::exp(x);
    ASSERT_LE(std::abs(math::decay(x) - e), (2 + math::decay_slope<TypeParam> * -x) * u * e) << x;
  }
}

TYPED_TEST(special_values, exp_table) {
  using test = TestFixture;
  using limits = typename test::limits;
  EXPECT_EQ(math::exp(TypeParam(0.0)), 1);
  EXPECT_EQ(math::exp(TypeParam(-0.0)), 1);
  EXPECT_EQ(math::exp(limits::denorm_min()), 1);
  EXPECT_EQ(math::exp(-limits::min()), 1);
  EXPECT_TRUE(test::plus_zero(math::exp(-test::infinity)));
  EXPECT_TRUE(test::plus_zero(math::exp(-limits::max())));
  EXPECT_EQ(math::exp(test::infinity), test::infinity);
  EXPECT_EQ(math::exp(limits::max()), test::infinity);
  for (const TypeParam n : test::nans()) EXPECT_TRUE(math::is_nan(math::exp(n)));
}

TYPED_TEST(special_values, exp_edges) {
  using test = TestFixture;
  using limits = typename test::limits;
  EXPECT_GE(math::exp(test::e_lowest), limits::min());
  EXPECT_TRUE(test::plus_zero(math::exp(test::down(test::e_lowest))));
  EXPECT_LE(math::exp(test::e_highest), limits::max());
  EXPECT_EQ(math::exp(test::up(test::e_highest)), test::infinity);
  // The library's exponential in long double says that these are the edges.
  EXPECT_GE(std::exp(static_cast<long double>(test::e_lowest)), limits::min());
  EXPECT_LT(std::exp(static_cast<long double>(test::down(test::e_lowest))), limits::min());
  EXPECT_LE(std::exp(static_cast<long double>(test::e_highest)), limits::max());
  EXPECT_GT(std::exp(static_cast<long double>(test::up(test::e_highest))), limits::max());
}

TYPED_TEST(special_values, exp_never_decreases_at_the_edges_and_is_never_denormal) {
  using test = TestFixture;
  for (TypeParam edge : {test::e_lowest, test::e_highest}) {
    TypeParam x = edge;
    for (int i = 0; i < 2000; ++i) x = test::down(x);
    TypeParam last = math::exp(x);
    for (int i = 0; i < 4000; ++i) {
      x = test::up(x);
      const TypeParam y = math::exp(x);
      ASSERT_GE(y, last) << x;
      ASSERT_TRUE(y == 0 || y >= test::limits::min()) << x;
      last = y;
    }
  }
}

TYPED_TEST(special_values, exp2_table_and_edges) {
  using test = TestFixture;
  using limits = typename test::limits;
  constexpr auto top = TypeParam(limits::max_exponent);
  constexpr auto bottom = TypeParam(limits::min_exponent - 1);
  for (int n = limits::min_exponent - 1; n < limits::max_exponent; ++n) {
    ASSERT_EQ(math::exp2(TypeParam(n)), std::ldexp(TypeParam(1), n)) << n;
  }
  EXPECT_EQ(math::exp2(TypeParam(-0.0)), 1);
  EXPECT_TRUE(test::plus_zero(math::exp2(test::down(bottom))));
  EXPECT_GE(math::exp2(test::up(bottom)), limits::min());
  EXPECT_EQ(math::exp2(top), test::infinity);
  EXPECT_LE(math::exp2(test::down(top)), limits::max());
  EXPECT_GT(math::exp2(test::down(top)), limits::max() / 2);
  EXPECT_TRUE(test::plus_zero(math::exp2(-test::infinity)));
  EXPECT_TRUE(test::plus_zero(math::exp2(-limits::max())));
  EXPECT_EQ(math::exp2(test::infinity), test::infinity);
  EXPECT_EQ(math::exp2(limits::max()), test::infinity);
  for (const TypeParam n : test::nans()) EXPECT_TRUE(math::is_nan(math::exp2(n)));
}

TYPED_TEST(special_values, log_table) {
  using test = TestFixture;
  using limits = typename test::limits;
  EXPECT_TRUE(test::plus_zero(math::log(TypeParam(1))));
  EXPECT_EQ(math::log(TypeParam(0.0)), -test::infinity);
  EXPECT_EQ(math::log(TypeParam(-0.0)), -test::infinity);
  EXPECT_EQ(math::log(test::infinity), test::infinity);
  for (const TypeParam x : {-limits::denorm_min(), -limits::min(), TypeParam(-1), -limits::max(), -test::infinity}) {
    EXPECT_TRUE(math::is_nan(math::log(x))) << x;
  }
  for (const TypeParam n : test::nans()) EXPECT_TRUE(math::is_nan(math::log(n)));
  EXPECT_LT(math::log(test::down(TypeParam(1))), 0);
  EXPECT_GT(math::log(test::up(TypeParam(1))), 0);
}

TYPED_TEST(special_values, log_of_denormals_and_powers_of_two) {
  using test = TestFixture;
  using limits = typename test::limits;
  constexpr long double u =
      0x1p-1L / (static_cast<long double>(typename test::word{1}) * (1ull << (limits::digits - 1)));
  TypeParam x = limits::denorm_min();
  for (int n = limits::min_exponent - limits::digits; n < limits::max_exponent; ++n, x *= 2) {
    for (const TypeParam near : {test::down(x), x, test::up(x)}) {
      if (near == 0 || near == 1) continue;
      const long double exact = std::log(static_cast<long double>(near));
      ASSERT_LE(std::abs(math::log(near) - exact), math::log_error<TypeParam> * u * std::abs(exact)) << near;
    }
  }
}

}  // namespace
