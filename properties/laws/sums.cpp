// SPDX-License-Identifier: Apache-2.0
// Sums and products: bitwise over integers, which wrap; within the computed bound over floats.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "holds.hpp"

namespace regroup::laws {
namespace {

template <class X>
struct long_sum {
  double operator()(std::span<const X> xs) const {
    long double sum = 0;
    for (const X x : xs) sum += static_cast<long double>(widen(x));
    return static_cast<double>(sum);
  }
};

TEST(sums, plus_of_floats) {
  EXPECT_TRUE(holds(check_laws<float>(plus<float>{}, strictly(), long_sum<float>{})));
  EXPECT_TRUE(holds(check_laws<double>(plus<double>{}, strictly())));
}
TEST(sums, plus_of_16_bits) {
  EXPECT_TRUE(holds(check_laws<float16>(plus<float>{}, strictly(), long_sum<float16>{})));
  EXPECT_TRUE(holds(check_laws<bfloat16>(plus<float>{}, strictly())));
}
TEST(sums, plus_of_integers) {
  EXPECT_TRUE(holds(check_laws<std::int8_t>(plus<std::int8_t>{}, strictly())));
  EXPECT_TRUE(holds(check_laws<int>(plus<int>{}, strictly())));
  EXPECT_TRUE(holds(check_laws<std::int64_t>(plus<std::int64_t>{}, strictly())));
}
TEST(sums, multiplies) {
  EXPECT_TRUE(holds(check_laws<float>(multiplies<float>{}, strictly())));
  EXPECT_TRUE(holds(check_laws<double>(multiplies<double>{}, strictly())));
  EXPECT_TRUE(holds(check_laws<int>(multiplies<int>{}, strictly())));
}
template <class Real>
struct long_product {  // mantissa and exponent apart
  double operator()(std::span<const Real> xs) const {
    long double mantissa = 1;
    long exponent = 0;
    for (const Real x : xs) {
      int e = 0;
      mantissa *= std::frexp(static_cast<long double>(x), &e);
      if (std::isfinite(x)) exponent += e;
      mantissa = std::frexp(mantissa, &e);
      if (std::isfinite(mantissa)) exponent += e;
    }
    return static_cast<double>(std::ldexp(mantissa, static_cast<int>(std::clamp(exponent, -20000L, 20000L))));
  }
};
TEST(sums, scaled_product) {
  EXPECT_TRUE(holds(check_laws<float>(scaled_product<float>{}, strictly(), long_product<float>{})));
  EXPECT_TRUE(holds(check_laws<double>(scaled_product<double>{}, strictly(), long_product<double>{})));
  EXPECT_TRUE(holds(check_laws<bfloat16>(scaled_product<float>{}, strictly())));
  EXPECT_TRUE(holds(check_laws<int>(scaled_product<double>{}, {.cases = few})));
}
TEST(sums, compensated) {
  EXPECT_TRUE(holds(check_laws<float>(compensated_plus<float>{}, strictly(), long_sum<float>{})));
  EXPECT_TRUE(holds(check_laws<double>(compensated_plus<double>{}, strictly())));
}

}  // namespace
}  // namespace regroup::laws
