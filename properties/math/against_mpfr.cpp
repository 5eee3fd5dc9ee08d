// SPDX-License-Identifier: Apache-2.0
// exp, exp2 and log in double against MPFR at random points: all of the range, around 0 or 1, and where the reduced
// argument is largest. exp_error and its fellows hold with the margin that their comment speaks of.
#include <regroup/math.hpp>

#include <gtest/gtest.h>

#ifdef REGROUP_HAS_MPFR
#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace {

namespace math = regroup::math;

class number {
 public:
  number() { mpfr_init2(value_, 128); }
  ~number() { mpfr_clear(value_); }
  number(const number&) = delete;
  number& operator=(const number&) = delete;
  mpfr_ptr get() { return value_; }

 private:
  mpfr_t value_;
};

using mpfr_function = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);

// The relative error of y as f(x), in units of u = 2^-53.
double error(double x, double y, mpfr_function f) {
  static thread_local number exact, difference;
  mpfr_set_d(difference.get(), x, MPFR_RNDN);
  f(exact.get(), difference.get(), MPFR_RNDN);
  if (mpfr_zero_p(exact.get())) return y == 0 ? 0 : HUGE_VAL;
  mpfr_sub_d(difference.get(), exact.get(), y, MPFR_RNDN);
  mpfr_div(difference.get(), difference.get(), exact.get(), MPFR_RNDN);
  return std::abs(mpfr_get_d(difference.get(), MPFR_RNDN)) * 0x1p53;
}

class random_points {
 public:
  double between(double low, double high) { return std::uniform_real_distribution<double>(low, high)(engine_); }
  int integer(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }
  // Where the distance to an integer multiple of the period is largest, one half.
  double halfway(int low, int high) { return integer(low, high) + 0.5 + between(-1e-3, 1e-3); }

 private:
  std::mt19937_64 engine_{1};
};

constexpr int samples = 25000;

TEST(against_mpfr, exp_in_double) {
  random_points random;
  double worst = 0;
  const auto at = [&worst](double x) { worst = std::max(worst, error(x, math::exp(x), mpfr_exp)); };
  for (int i = 0; i < samples; ++i) {
    at(random.between(math::exp_lowest<double>, math::exp_highest<double>));
    at(random.between(-2, 2));
    at(std::ldexp(random.between(-1, 1), random.integer(-60, 0)));
    at(random.halfway(-1021, 1022) * 0x1.62e42fefa39efp-1);
  }
  EXPECT_LE(worst, math::exp_error<double>);
}

TEST(against_mpfr, exp2_in_double) {
  random_points random;
  double worst = 0;
  const auto at = [&worst](double x) { worst = std::max(worst, error(x, math::exp2(x), mpfr_exp2)); };
  for (int i = 0; i < samples; ++i) {
    at(random.between(-1022, 1024));
    at(random.between(-2, 2));
    at(std::ldexp(random.between(-1, 1), random.integer(-60, 0)));
    at(random.halfway(-1022, 1022));
  }
  EXPECT_LE(worst, math::exp2_error<double>);
}

TEST(against_mpfr, log_in_double) {
  random_points random;
  double worst = 0;
  const auto at = [&worst](double x) { worst = std::max(worst, error(x, math::log(x), mpfr_log)); };
  for (int i = 0; i < samples; ++i) {
    at(std::ldexp(random.between(1, 2), random.integer(-1073, 1023)));
    at(random.between(0.5, 2.1));
    at(1 + std::ldexp(random.between(-1, 1), random.integer(-52, -1)));
    at(std::ldexp(random.between(0.69, 0.73), random.integer(-3, 3)));
  }
  EXPECT_LE(worst, math::log_error<double>);
}

}  // namespace
#else
TEST(against_mpfr, DISABLED_not_found) {}
#endif
