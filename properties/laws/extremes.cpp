// SPDX-License-Identifier: Apache-2.0
// Monoids that select rather than round: extremes, logic, bits, counts. All are exact, so every law holds bitwise.
#include "holds.hpp"
#include "regroup/monoids/minmax.hpp"

namespace regroup::laws {
namespace {

law_options idempotent() {
  law_options options = strictly();
  options.idempotent = true;
  return options;
}

TEST(extremes, minimum_and_maximum) {
  EXPECT_TRUE(holds(check_laws<float>(minimum<float>{}, idempotent())));
  EXPECT_TRUE(holds(check_laws<double>(maximum<double>{}, idempotent())));
  EXPECT_TRUE(holds(check_laws<int>(minimum<int>{}, idempotent())));
  EXPECT_TRUE(holds(check_laws<bfloat16>(maximum<float>{}, idempotent())));
}
TEST(extremes, minmax) {
  EXPECT_TRUE(holds(check_laws<float>(minmax<float>{}, idempotent())));
  EXPECT_TRUE(holds(check_laws<int>(minmax<int>{}, idempotent())));
}
TEST(extremes, logic) {
  EXPECT_TRUE(holds(check_laws<bool>(regroup::any{}, idempotent())));
  EXPECT_TRUE(holds(check_laws<float>(regroup::all{}, idempotent())));
}
TEST(extremes, bits) {
  EXPECT_TRUE(holds(check_laws<int>(bit_and<int>{}, idempotent())));
  EXPECT_TRUE(holds(check_laws<std::uint8_t>(bit_or<std::uint8_t>{}, idempotent())));
  EXPECT_TRUE(holds(check_laws<std::int64_t>(bit_xor<std::int64_t>{}, strictly())));
}
TEST(extremes, count) { EXPECT_TRUE(holds(check_laws<float>(count{}, strictly()))); }

TEST(extremes, absorb) {
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  for (const float x : {0.0f, -0.0f, 1.0f, std::numeric_limits<float>::infinity(), nan}) {
    EXPECT_TRUE(absorption(maximum<float>{}, nan, x));
    EXPECT_TRUE(absorption(minimum<float>{}, nan, x));
  }
  for (const bool x : {false, true}) {
    EXPECT_TRUE(absorption(regroup::any{}, true, x));
    EXPECT_TRUE(absorption(regroup::all{}, false, x));
  }
}

}  // namespace
}  // namespace regroup::laws
