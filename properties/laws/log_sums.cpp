// SPDX-License-Identifier: Apache-2.0
// log(sum exp x) and the softmax-weighted mean, within the weighted bound; translation, linearity and the hull of V.
#include "holds.hpp"

namespace regroup::laws {
namespace {

template <class Real>
struct long_log_sum_exp {
  double operator()(std::span<const Real> xs) const {
    long double highest = -std::numeric_limits<long double>::infinity();
    bool has_nan = false;
    for (const Real x : xs) {
      has_nan = has_nan || x != x;
      highest = std::fmax(highest, static_cast<long double>(x));
    }
    if (has_nan) return std::numeric_limits<double>::quiet_NaN();
    if (std::isinf(highest)) return static_cast<double>(highest);
    long double sum = 0;
    for (const Real x : xs) sum += std::exp(static_cast<long double>(x) - highest);
    return static_cast<double>(highest + std::log(sum));
  }
};

TEST(log_sums, log_sum_exp_in_float) {
  EXPECT_TRUE(holds(check_laws<float>(log_sum_exp<float>{}, strictly(), long_log_sum_exp<float>{})));
}
TEST(log_sums, log_sum_exp_in_double) {
  EXPECT_TRUE(holds(check_laws<double>(log_sum_exp<double>{}, strictly(), long_log_sum_exp<double>{})));
}
TEST(log_sums, log_sum_exp_of_16_bits) { EXPECT_TRUE(holds(check_laws<float16>(log_sum_exp<float>{}, strictly()))); }

/// lse(x + c) = lse(x) + c: both within the bound, and x + c rounded once.
TEST(log_sums, translate) {
  const log_sum_exp<float> m;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::vector<float> xs;
    std::vector<float> moved;
    const float c = static_cast<float>(static_cast<int>(mix(seed) % 200) - 100);
    for (std::uint64_t i = 0; i < 1 + seed % 40; ++i) {
      xs.push_back(static_cast<float>(mix(seed * 64 + i) % 4096) / 128.0f);  // exact after the move as well
      moved.push_back(xs.back() + c);
    }
    const auto n = static_cast<index>(xs.size());
    const float left = reduce(seq, moved, m);
    const float right = reduce(seq, xs, m);
    const long double allowed = bound<log_sum_exp<float>>::answer(m, std::span<const float>(xs), n)[0] +
                                bound<log_sum_exp<float>>::answer(m, std::span<const float>(moved), n)[0];
    EXPECT_LE(std::fabs(static_cast<long double>(left) - (static_cast<long double>(right) + c)), allowed);
  }
}

}  // namespace
}  // namespace regroup::laws
