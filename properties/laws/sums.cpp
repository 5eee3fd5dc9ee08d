// SPDX-License-Identifier: Apache-2.0
// Sums and products: bitwise over integers, which wrap; within the computed bound over floats.
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
TEST(sums, compensated) {
  EXPECT_TRUE(holds(check_laws<float>(compensated_plus<float>{}, strictly(), long_sum<float>{})));
  EXPECT_TRUE(holds(check_laws<double>(compensated_plus<double>{}, strictly())));
}

}  // namespace
}  // namespace regroup::laws
