// SPDX-License-Identifier: Apache-2.0
// tanh against libm in the next wider type: every float where it is neither x nor 1, double at random points; the same
// bits from every instruction set; odd, monotone at its seam, exact at the ends.
#include <regroup/math/tanh.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iostream>
#include <random>
#include <vector>

#include "regroup/host/dispatch.hpp"
#include "regroup/host/par.hpp"

namespace {

namespace math = regroup::math;
using regroup::index;

double ulps(float x, float y) {
  const double exact = std::tanh(static_cast<double>(x));
  return std::abs((static_cast<double>(y) - exact) / exact) * 0x1p24;
}

/// The worst error over the floats with bits [first, last), through the vectorised path; bits equal the scalar path's.
double worst_over(std::uint32_t first, std::uint32_t last, std::uint32_t step) {
  constexpr index piece = index{1} << 16;
  const index count = (static_cast<index>(last - first) + step - 1) / step;
  const index pieces = (count + piece - 1) / piece;
  std::vector<double> worst(static_cast<std::size_t>(pieces));
  regroup::par.for_each(pieces, 1e6, [&](index p) {
    const index n = std::min(piece, count - p * piece);
    std::vector<float> x(static_cast<std::size_t>(n)), y(x.size());
    for (index i = 0; i < n; ++i) {
      x[static_cast<std::size_t>(i)] = std::bit_cast<float>(first + static_cast<std::uint32_t>(p * piece + i) * step);
    }
    regroup::host::dispatch([&] {
      for (std::size_t i = 0; i < x.size(); ++i) y[i] = math::tanh(x[i]);
    });
    double most = 0;
    for (std::size_t i = 0; i < x.size(); ++i) most = std::max(most, ulps(x[i], y[i]));
    for (std::size_t i = 0; i < x.size(); i += 97) {
      if (std::bit_cast<std::uint32_t>(math::tanh(x[i])) != std::bit_cast<std::uint32_t>(y[i])) most = HUGE_VAL;
    }
    worst[static_cast<std::size_t>(p)] = most;
  });
  return *std::max_element(worst.begin(), worst.end());
}

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

TEST(tanh, every_float) {
  const double worst = worst_over(bits(0x1p-13f), bits(10.0f), 1);
  std::cout << "worst " << worst << " u\n";
  EXPECT_LE(worst, math::tanh_error<float>);
  EXPECT_LE(worst_over(1, bits(0x1p-13f), 9973), 0.5);
  EXPECT_LE(worst_over(bits(10.0f), bits(HUGE_VALF), 9973), 0.5);
}

TEST(tanh, doubles) {
  std::mt19937_64 random(1);
  double worst = 0;
  const auto at = [&](double x) {
    const long double exact = std::tanh(static_cast<long double>(x));
    worst = std::max(worst, static_cast<double>(std::abs((math::tanh(x) - exact) / exact)) * 0x1p53);
  };
  for (int i = 0; i < 200'000; ++i) {
    at(std::uniform_real_distribution<double>(-1, 1)(random));
    at(std::uniform_real_distribution<double>(0.55, 0.7)(random));
    at(std::uniform_real_distribution<double>(-20, 20)(random));
    at(std::ldexp(std::uniform_real_distribution<double>(-1, 1)(random), -static_cast<int>(random() % 1000)));
  }
  std::cout << "worst " << worst << " u\n";
  EXPECT_LE(worst, math::tanh_error<double>);
}

template <class Real>
void special() {
  constexpr Real infinity = std::numeric_limits<Real>::infinity();
  EXPECT_EQ(math::tanh(infinity), Real(1));
  EXPECT_EQ(math::tanh(-infinity), Real(-1));
  EXPECT_TRUE(std::isnan(math::tanh(std::numeric_limits<Real>::quiet_NaN())));
  EXPECT_EQ(math::tanh(Real(0)), Real(0));
  EXPECT_TRUE(std::signbit(math::tanh(-Real(0))));
  EXPECT_EQ(math::tanh(std::numeric_limits<Real>::denorm_min()), std::numeric_limits<Real>::denorm_min());
  EXPECT_EQ(math::tanh(std::numeric_limits<Real>::max()), Real(1));
  for (Real x = Real(1e-3); x < 30; x *= Real(1.01)) {
    EXPECT_EQ(math::tanh(-x), -math::tanh(x));
    EXPECT_LE(math::tanh(x), Real(1));
  }
  Real x = std::nextafter(Real(0.5625), Real(0));
  EXPECT_LE(math::tanh(x), math::tanh(Real(0.5625)));
}

TEST(tanh, special_values) {
  special<float>();
  special<double>();
}

}  // namespace
