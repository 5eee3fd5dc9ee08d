// SPDX-License-Identifier: Apache-2.0
// Special values give what users of NumPy, SciPy and PyTorch expect, and affect only their own row.
#include <gtest/gtest.h>

#include "softmax_reference.hpp"

namespace properties {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

struct special {
  std::vector<float> x;
  std::vector<float> softmax;
  std::vector<float> log_softmax;
  float logsumexp;
};

const std::vector<special>& table() {
  static const float third = 1.0f / 3.0f;
  static const std::vector<special> rows = {
      {{5}, {1}, {0}, 5},
      {{-inf}, {nan}, {nan}, -inf},
      {{inf}, {nan}, {nan}, inf},
      {{nan}, {nan}, {nan}, nan},
      {{-inf, -inf, -inf}, {nan, nan, nan}, {nan, nan, nan}, -inf},
      {{1, inf, 2}, {nan, nan, nan}, {nan, nan, nan}, inf},
      {{inf, inf}, {nan, nan}, {nan, nan}, inf},
      {{inf, -inf}, {nan, nan}, {nan, nan}, inf},
      {{1, nan, 2}, {nan, nan, nan}, {nan, nan, nan}, nan},
      {{nan, inf}, {nan, nan}, {nan, nan}, nan},
      {{nan, -inf}, {nan, nan}, {nan, nan}, nan},
      {{-inf, 7}, {0, 1}, {-inf, 0}, 7},
      {{-0.0f, -inf}, {1, 0}, {-0.0f, -inf}, 0},
      {{0, -1e30f}, {1, 0}, {0, -1e30f}, 0},
      {{3e38f, -3e38f}, {1, 0}, {0, -inf}, 3e38f},
      {{1e-40f, -1e-40f}, {0.5f, 0.5f}, {-0x1.62e43p-1f, -0x1.62e43p-1f}, 0x1.62e43p-1f},
      {{1e4f, 1e4f, 1e4f}, {third, third, third}, {}, 0},
  };
  return rows;
}

template <class X>
void holds(const special& row) {
  std::vector<X> x;
  for (const float e : row.x) x.push_back(static_cast<X>(e));
  std::vector<float> y(x.size());
  std::vector<float> lse(1);
  regroup::softmax(regroup::seq, x, y, {.logsumexp = lse});
  EXPECT_EQ(bits_of(y), bits_of(row.softmax)) << testing::PrintToString(row.x);
  if (row.log_softmax.empty()) return;
  EXPECT_EQ(bits_of(lse), bits_of(std::vector{row.logsumexp})) << testing::PrintToString(row.x);
  regroup::log_softmax(regroup::seq, x, y);
  EXPECT_EQ(bits_of(y), bits_of(row.log_softmax)) << testing::PrintToString(row.x);
}

}  // namespace

TEST(softmax_special, a_table) {
  for (const special& row : table()) {
    holds<float>(row);
    const bool fits_half =
        std::ranges::all_of(row.x, [](float e) { return !(std::fabs(e) > 65504) || std::fabs(e) == inf; });
    if (fits_half && !(std::fabs(row.x[0]) > 0 && std::fabs(row.x[0]) < 1e-30f)) holds<regroup::float16>(row);
  }
}

TEST(softmax_special, stay_in_their_row_of_any_length) {
  for (const index n : {3, 200, 4097, 65'536, 65'537}) {
    for (const float planted : {inf, nan, -inf}) {
      std::vector<float> x = as<float>(row_of_kind(0, 3 * n, 4));
      const std::vector<float> without = x;
      for (index i = 0; i < n; ++i) {
        if (planted == -inf || i == n - 1) x[static_cast<std::size_t>(n + i)] = planted;
      }
      std::vector<float> y(x.size());
      std::vector<float> clean(x.size());
      std::vector<float> lse(3);
      regroup::softmax(regroup::par, regroup::view<float>(x.data(), {3, n}), regroup::view<float>(y.data(), {3, n}),
                       {.logsumexp = lse});
      regroup::softmax(regroup::seq, regroup::view<const float>(without.data(), {3, n}),
                       regroup::view<float>(clean.data(), {3, n}));
      for (index i = 0; i < 3 * n; ++i) {
        const auto at = static_cast<std::size_t>(i);
        if (i / n == 1) {
          ASSERT_TRUE(std::isnan(y[at])) << n << " " << planted;
        } else {
          ASSERT_EQ(y[at], clean[at]) << n << " " << planted;
        }
      }
      EXPECT_EQ(bits_of(std::vector{lse[1]}), bits_of(std::vector{planted})) << n;
    }
  }
}

TEST(softmax_special, scale) {
  std::vector<float> x = {1, -inf, 2};
  std::vector<float> y(3);
  regroup::softmax(regroup::seq, x, y, {.scale = -1});  // -inf becomes +inf
  EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]) && std::isnan(y[2]));
  regroup::softmax(regroup::seq, x, y, {.scale = 0});  // 0 inf
  EXPECT_TRUE(std::isnan(y[0]));
  x[1] = 5;
  regroup::softmax(regroup::seq, x, y, {.scale = 0});
  EXPECT_EQ(y[0], 1.0f / 3.0f);
}

TEST(softmax_special, empty) {
  std::vector<float> nothing;
  regroup::softmax(regroup::par, nothing, nothing);
  std::vector<float> lse(1);
  regroup::logsumexp(regroup::par, nothing, lse);
  EXPECT_EQ(lse[0], -inf);
  std::vector<double> three(3);
  regroup::logsumexp(regroup::par, regroup::view<double>(nullptr, {3, 0}), three);
  EXPECT_EQ(three, std::vector<double>(3, -std::numeric_limits<double>::infinity()));
  for (const regroup::index rows : {regroup::index{3}, regroup::index{1} << 60}) {  // at once, however many
    const regroup::view<double> none(nullptr, {rows, 0});
    regroup::softmax(regroup::par, none, none);
  }
  regroup::softmax(regroup::par, regroup::view<double>(nullptr, {0, 3}), regroup::view<double>(nullptr, {0, 3}));
}

TEST(softmax_special, flushed_weights_are_zero_and_the_rest_unmoved) {
  std::vector<float> x = {0, -87.3f, -87.4f, -200};
  std::vector<float> y(4);
  regroup::softmax(regroup::seq, x, y);
  EXPECT_EQ(y[0], 1);
  EXPECT_GT(y[1], 0);
  EXPECT_EQ(y[2], 0);
  EXPECT_EQ(y[3], 0);
}

}  // namespace properties
