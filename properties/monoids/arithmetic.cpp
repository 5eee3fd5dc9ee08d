// SPDX-License-Identifier: Apache-2.0
#include "regroup/monoids/arithmetic.hpp"

#include "fold.hpp"
#include "regroup/monoids/compensated.hpp"
#include "regroup/monoids/minmax.hpp"
#include "regroup/monoids/scaled_product.hpp"

namespace {
using namespace monoids;
using doubles = std::vector<double>;
constexpr double inf = infinity<double>;
constexpr double none = not_a_number<double>;
constexpr double tiny = std::numeric_limits<double>::denorm_min();
constexpr double huge = std::numeric_limits<double>::max();

struct row {
  doubles xs;
  double sum, product, min, max;
};
const std::vector<row> table{
    {{}, 0.0, 1, inf, -inf},
    {{-0.0}, 0.0, -0.0, -0.0, -0.0},
    {{-0.0, -0.0}, 0.0, 0.0, -0.0, -0.0},
    {{-0.0, 0.0}, 0.0, -0.0, -0.0, 0.0},
    {{0.0, -0.0}, 0.0, -0.0, -0.0, 0.0},
    {{inf}, inf, inf, inf, inf},
    {{-inf, -inf}, -inf, inf, -inf, -inf},
    {{inf, -inf}, none, -inf, -inf, inf},
    {{none, 1}, none, none, none, none},
    {{1, none, -inf, inf}, none, none, none, none},
    {{tiny, tiny}, 2 * tiny, 0.0, tiny, tiny},
    {{huge, huge}, inf, inf, huge, huge},
    {{7}, 7, 7, 7, 7},
    {{3, -2, 5}, 6, -30, -2, 5},
};
}  // namespace

TEST(arithmetic, special_values) {
  for (const row& r : table) {
    EXPECT_TRUE(same(fold(regroup::plus<double>{}, r.xs), r.sum)) << regroup::laws::text_of(r.xs);
    EXPECT_TRUE(same(fold(regroup::compensated_plus<double>{}, r.xs), r.sum)) << regroup::laws::text_of(r.xs);
    EXPECT_TRUE(same(fold(regroup::multiplies<double>{}, r.xs), r.product)) << regroup::laws::text_of(r.xs);
    EXPECT_TRUE(same(fold(regroup::scaled_product<double>{}, r.xs), r.product)) << regroup::laws::text_of(r.xs);
    EXPECT_TRUE(same(fold(regroup::minimum<double>{}, r.xs), r.min)) << regroup::laws::text_of(r.xs);
    EXPECT_TRUE(same(fold(regroup::maximum<double>{}, r.xs), r.max)) << regroup::laws::text_of(r.xs);
    const auto [low, high] = fold(regroup::minmax<double>{}, r.xs);
    EXPECT_TRUE(same(low, r.min) && same(high, r.max));
  }
}

TEST(arithmetic, integers_wrap_and_have_limits) {
  using limits = std::numeric_limits<int>;
  const std::vector<int> nothing;
  EXPECT_EQ(fold(regroup::minimum<int>{}, nothing), limits::max());
  EXPECT_EQ(fold(regroup::maximum<int>{}, nothing), limits::min());
  EXPECT_EQ(fold(regroup::bit_and<int>{}, nothing), -1);
  EXPECT_EQ(fold(regroup::plus<int>{}, std::vector{limits::max(), 1}), limits::min());
  EXPECT_EQ(fold(regroup::multiplies<std::uint16_t>{}, std::vector<std::uint16_t>{65535, 65535}), 1);
  EXPECT_EQ(fold(regroup::plus<std::int64_t>{}, std::vector{limits::max(), 1}), std::int64_t{1} << 31);
  EXPECT_EQ(fold(regroup::bit_xor<int>{}, std::vector{12, 10}), 6);
  EXPECT_EQ(fold(regroup::bit_or<int>{}, std::vector{12, 10}), 14);
  EXPECT_EQ(fold(regroup::bit_and<int>{}, std::vector{12, 10}), 8);
}

TEST(arithmetic, truth_and_counts) {
  EXPECT_FALSE(fold(regroup::any{}, doubles{}));
  EXPECT_TRUE(fold(regroup::all{}, doubles{}));
  EXPECT_FALSE(fold(regroup::any{}, doubles{-0.0, 0.0}));
  EXPECT_TRUE(fold(regroup::any{}, doubles{0.0, none}));
  EXPECT_TRUE(fold(regroup::all{}, doubles{tiny, none, -inf}));
  EXPECT_FALSE(fold(regroup::all{}, doubles{1, -0.0}));
  EXPECT_TRUE(fold(regroup::any{}, std::vector{regroup::float16(0.0F), regroup::float16(2.0F)}));
  EXPECT_FALSE(fold(regroup::any{}, std::vector{regroup::float16(-0.0F)}));
  EXPECT_EQ(fold(regroup::count{}, doubles{none, 0, -0.0}), 3);
  EXPECT_EQ(regroup::count{}(std::int64_t{1} << 31, 1), (std::int64_t{1} << 31) + 1);
}

TEST(arithmetic, elements_are_converted_first) {
  EXPECT_EQ(fold(regroup::plus<double>{}, std::vector<float>{16777216.0F, 1.0F}), 16777217.0);
  const std::vector<regroup::float16> halves(2, regroup::float16(60000.0F));  // their sum passes what 16 bits hold
  EXPECT_EQ(fold(regroup::plus<float>{}, halves), 120000.0F);
  EXPECT_EQ(fold(regroup::plus<float>{}, std::vector<bool>{true, true}), 2.0F);
}

TEST(compensated, keeps_what_a_sum_loses) {
  EXPECT_EQ(fold(regroup::compensated_plus<double>{}, doubles{1, 1e100, 1, -1e100}), 2);
  EXPECT_EQ(fold(regroup::compensated_plus<double>{}, doubles{huge, huge, -huge}), inf);
  const std::vector<float> tenths(100'000, 0.1F);
  EXPECT_EQ(fold(regroup::compensated_plus<float>{}, tenths), static_cast<float>(100'000 * static_cast<double>(0.1F)));
  EXPECT_LT(fold(regroup::plus<float>{}, tenths), 9'999.0F);
}
