// SPDX-License-Identifier: Apache-2.0
// Mean and variance, within the bound computed from the elements; and several monoids in one pass, member by member.
#include "holds.hpp"
#include "regroup/monoids/minmax.hpp"

namespace regroup::laws {
namespace {

template <class Real>
struct long_mean {
  double operator()(std::span<const Real> xs) const {
    long double sum = 0;
    for (const Real x : xs) sum += static_cast<long double>(x);
    return static_cast<double>(sum / static_cast<long double>(xs.size()));
  }
};

/// Two passes in long double. What is not finite has no variance.
template <class Real>
struct long_moments {
  struct answer {
    index count;
    double mean;
    double variance;
  };
  answer operator()(std::span<const Real> xs) const {
    const auto n = static_cast<index>(xs.size());
    const auto mean = static_cast<long double>(long_mean<Real>{}(xs));
    long double squares = 0;
    for (const Real x : xs) {
      const long double apart = static_cast<long double>(x) - mean;
      squares += apart * apart;
    }
    return {n, static_cast<double>(mean), static_cast<double>(squares / static_cast<long double>(n))};
  }
};

TEST(statistics, mean) {
  EXPECT_TRUE(holds(check_laws<float>(mean<float>{}, strictly(), long_mean<float>{})));
  EXPECT_TRUE(holds(check_laws<double>(mean<double>{}, strictly())));
}
TEST(statistics, moments_in_float) {
  EXPECT_TRUE(holds(check_laws<float>(moments<float>{}, strictly(), long_moments<float>{})));
}
TEST(statistics, moments_in_double) { EXPECT_TRUE(holds(check_laws<double>(moments<double>{}, strictly()))); }
TEST(statistics, fanout) {
  EXPECT_TRUE(
      holds(check_laws<float>(fanout{count{}, moments<double>{}, minimum<float>{}, plus<float>{}}, strictly())));
}

}  // namespace
}  // namespace regroup::laws
