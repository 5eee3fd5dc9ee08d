// SPDX-License-Identifier: Apache-2.0
// exp, exp2 and log in double against MPFR at a million random points each: all of the range, around 0 or 1, and where the
// reduced argument is largest; decay at those that are not positive. exp_error and the other constants hold with the
// margin that their comment states, and the error is at most 1.2 units in the last place.
#include <regroup/math.hpp>

#include <gtest/gtest.h>

#ifdef REGROUP_HAS_MPFR
#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace {

namespace math = regroup::math;

using mpfr_function = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);

// f(x), 27 bits beyond double.
class exact {
 public:
  exact() { mpfr_inits2(80, value_, difference_, nullptr); }
  ~exact() { mpfr_clears(value_, difference_, nullptr); }
  exact(const exact&) = delete;
  exact& operator=(const exact&) = delete;

  void set(mpfr_function f, double x) {
    mpfr_set_d(difference_, x, MPFR_RNDN);
    f(value_, difference_, MPFR_RNDN);
  }
  // The relative error of y, in units of u = 2^-53.
  double error(double y) {
    if (mpfr_zero_p(value_)) return y == 0 ? 0 : HUGE_VAL;
    mpfr_sub_d(difference_, value_, y, MPFR_RNDN);
    mpfr_div(difference_, difference_, value_, MPFR_RNDN);
    return std::abs(mpfr_get_d(difference_, MPFR_RNDN)) * 0x1p53;
  }
  // The error of y, in units in the last place of the correctly rounded result, a normal number.
  double ulps(double y) {
    if (mpfr_zero_p(value_)) return y == 0 ? 0 : HUGE_VAL;
    mpfr_sub_d(difference_, value_, y, MPFR_RNDN);
    mpfr_mul_2si(difference_, difference_, 52 - std::ilogb(mpfr_get_d(value_, MPFR_RNDN)), MPFR_RNDN);
    return std::abs(mpfr_get_d(difference_, MPFR_RNDN));
  }

 private:
  mpfr_t value_, difference_;
};

class random_points {
 public:
  double between(double low, double high) { return std::uniform_real_distribution<double>(low, high)(engine_); }
  int integer(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }
  // Where the distance to an integer multiple of the period is largest, one half.
  double halfway(int low, int high) { return integer(low, high) + 0.5 + between(-1e-3, 1e-3); }

 private:
  std::mt19937_64 engine_{1};
};

constexpr int samples = 250'000;  // of four kinds
constexpr double most_ulps = 1.2;

TEST(against_mpfr, exp_and_decay_in_double) {
  random_points random;
  exact e;
  double worst = 0, worst_ulps = 0;
  double worst_decay = 0;
  const auto at = [&](double x) {
    e.set(mpfr_exp, x);
    worst = std::max(worst, e.error(math::exp(x)));
    worst_ulps = std::max(worst_ulps, e.ulps(math::exp(x)));
    if (x <= 0) worst_decay = std::max(worst_decay, e.error(math::decay(x)) - math::decay_slope<double> * -x);
  };
  for (int i = 0; i < samples; ++i) {
    at(random.between(math::exp_lowest<double>, math::exp_highest<double>));
    at(random.between(-2, 2));
    at(std::ldexp(random.between(-1, 1), random.integer(-60, 0)));
    at(random.halfway(-1021, 1022) * 0x1.62e42fefa39efp-1);
  }
  EXPECT_LE(worst, math::exp_error<double>);
  EXPECT_LE(worst_ulps, most_ulps);
  EXPECT_LE(worst_decay, math::exp_error<double>);
}

TEST(against_mpfr, exp2_in_double) {
  random_points random;
  exact e;
  double worst = 0, worst_ulps = 0;
  const auto at = [&](double x) {
    e.set(mpfr_exp2, x);
    worst = std::max(worst, e.error(math::exp2(x)));
    worst_ulps = std::max(worst_ulps, e.ulps(math::exp2(x)));
  };
  for (int i = 0; i < samples; ++i) {
    at(random.between(-1022, 1024));
    at(random.between(-2, 2));
    at(std::ldexp(random.between(-1, 1), random.integer(-60, 0)));
    at(random.halfway(-1022, 1022));
  }
  EXPECT_LE(worst, math::exp2_error<double>);
  EXPECT_LE(worst_ulps, most_ulps);
}

TEST(against_mpfr, log_in_double) {
  random_points random;
  exact e;
  double worst = 0, worst_ulps = 0;
  const auto at = [&](double x) {
    e.set(mpfr_log, x);
    worst = std::max(worst, e.error(math::log(x)));
    worst_ulps = std::max(worst_ulps, e.ulps(math::log(x)));
  };
  for (int i = 0; i < samples; ++i) {
    at(std::ldexp(random.between(1, 2), random.integer(-1073, 1023)));
    at(random.between(0.5, 2.1));
    at(1 + std::ldexp(random.between(-1, 1), random.integer(-52, -1)));
    at(std::ldexp(random.between(0.69, 0.73), random.integer(-3, 3)));
  }
  EXPECT_LE(worst, math::log_error<double>);
  EXPECT_LE(worst_ulps, most_ulps);
}

}  // namespace
#else
TEST(against_mpfr, DISABLED_not_found) {}
#endif
