// SPDX-License-Identifier: Apache-2.0
// One call, a loop, and the same loop compiled for every instruction set of this machine give the same bits, arguments
// that are products included (a compiler may contract a product with a sum, and must find none). Constants folded by
// the compiler agree with the program.
#include <regroup/float16.hpp>
#include <regroup/math.hpp>

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

namespace {

namespace math = regroup::math;

// Outer functions without arithmetic of their own, so that g++ inlines the body across the different options.
#if defined(__x86_64__) && defined(__clang__)
template <class Body>
[[gnu::target("arch=x86-64-v4,tune=x86-64"), gnu::flatten]] void on_v4(Body body) {
  body();
}
template <class Body>
[[gnu::target("arch=x86-64-v3"), gnu::flatten]] void on_v3(Body body) {
  body();
}
#elif defined(__x86_64__)
template <class Body>
[[gnu::target("arch=x86-64-v4"), gnu::flatten, gnu::optimize("O3", "fp-contract=off", "no-trapping-math")]] void on_v4(
    Body body) {
  body();
}
template <class Body>
[[gnu::target("arch=x86-64-v3"), gnu::flatten, gnu::optimize("O3", "fp-contract=off", "no-trapping-math")]] void on_v3(
    Body body) {
  body();
}
// The compiler's own choice, contraction: ours must hold its bits all the same.
template <class Body>
[[gnu::target("avx2,fma"), gnu::flatten, gnu::optimize("O3", "fp-contract=fast")]] void contracting(Body body) {
  body();
}
#endif
#if defined(__x86_64__)
bool has_v3() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
bool has_v4() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
}
#else
template <class Body>
void on_v4(Body body) {
  body();
}
template <class Body>
void on_v3(Body body) {
  body();
}
bool has_v3() { return true; }
bool has_v4() { return false; }
#endif
#if !defined(__x86_64__) || defined(__clang__)  // clang's choice holds for a whole file: the flag matrix has it
template <class Body>
void contracting(Body body) {
  body();
}
#endif

template <class Real>
std::vector<Real> arguments() {
  using limits = std::numeric_limits<Real>;
  std::vector<Real> x = {
      Real(0),       Real(-0.0),           limits::infinity(), -limits::infinity(), limits::quiet_NaN(),
      limits::min(), -limits::min(),       limits::max(),      -limits::max(),      limits::denorm_min(),
      Real(1),       -limits::denorm_min()};
  for (const Real edge :
       {math::exp_lowest<Real>, math::exp_highest<Real>, Real(limits::min_exponent - 1), Real(limits::max_exponent)}) {
    for (const Real y : {edge, std::nextafter(edge, Real(0)), std::nextafter(edge, 2 * edge)}) x.push_back(y);
  }
  std::mt19937_64 random(1);
  using word = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
  while (x.size() < 4000) x.push_back(std::bit_cast<Real>(static_cast<word>(random())));
  std::uniform_real_distribution<Real> usual(-90, 90);
  while (x.size() < 20007) x.push_back(usual(random));
  return x;
}

// clang's flatten goes one call deep.
#if defined(__clang__)
#pragma clang attribute push([[gnu::always_inline]], apply_to = function)
#pragma clang attribute push([[gnu::flatten]], apply_to = function)
#endif
template <class Real, class F>
void fill(const std::vector<Real>& x, std::vector<Real>& y, F f) {
  const Real* from = x.data();
  Real* to = y.data();
  const std::size_t n = x.size();
  for (std::size_t i = 0; i < n; ++i) to[i] = f(from[i], from[n - 1 - i]);
}
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute pop
#endif

template <class Real>
void expect_same(const std::vector<Real>& a, const std::vector<Real>& b, const std::vector<Real>& x,
                 const char* where) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool equal = a[i] == b[i] ? std::signbit(a[i]) == std::signbit(b[i]) : a[i] != a[i] && b[i] != b[i];
    ASSERT_TRUE(equal) << where << ": f(" << x[i] << ", " << x[x.size() - 1 - i] << ") is " << a[i] << " and " << b[i];
  }
}

template <class Real>
class same_bits : public testing::Test {
 public:
  // f takes two numbers, so that functions of one get a product too.
  template <class F>
  static void check(F f) {
    const std::vector<Real> x = arguments<Real>();
    std::vector<Real> one(x.size()), many(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      volatile Real a = x[i], b = x[x.size() - 1 - i];
      one[i] = f(a, b);
    }
    fill(x, many, f);
    expect_same(one, many, x, "in a loop");
    if (has_v3()) {
      on_v3([&x, &many, f] { fill(x, many, f); });
      expect_same(one, many, x, "for x86-64-v3");
      contracting([&x, &many, f] { fill(x, many, f); });
      expect_same(one, many, x, "contracting");
    }
    if (has_v4()) {
      on_v4([&x, &many, f] { fill(x, many, f); });
      expect_same(one, many, x, "for x86-64-v4");
    }
  }
};
using reals = testing::Types<float, double>;
TYPED_TEST_SUITE(same_bits, reals);

TYPED_TEST(same_bits, exp) {
  using Real = TypeParam;
  TestFixture::check([](Real a, Real) { return math::exp(a); });
  TestFixture::check([](Real a, Real b) { return math::exp(a * b); });
  TestFixture::check([](Real a, Real) { return math::exp(a * Real(0.3)); });
}

TYPED_TEST(same_bits, decay) {
  using Real = TypeParam;
  TestFixture::check([](Real a, Real) { return math::decay(-math::abs(a)); });
  TestFixture::check([](Real a, Real b) { return math::decay(math::abs(a) * -math::abs(b)); });
  TestFixture::check([](Real a, Real) { return math::decay(math::abs(a) * Real(-0.3)); });
}

TYPED_TEST(same_bits, exp2) {
  using Real = TypeParam;
  TestFixture::check([](Real a, Real) { return math::exp2(a); });
  TestFixture::check([](Real a, Real b) { return math::exp2(a * b); });
  TestFixture::check([](Real a, Real) { return math::exp2(a * Real(0.3)); });
}

TYPED_TEST(same_bits, log) {
  using Real = TypeParam;
  TestFixture::check([](Real a, Real) { return math::log(a); });
  TestFixture::check([](Real a, Real b) { return math::log(a * b); });
  TestFixture::check([](Real a, Real) { return math::log(math::abs(a) * Real(0.3)); });
}

TYPED_TEST(same_bits, max_and_min) {
  using Real = TypeParam;
  TestFixture::check([](Real a, Real b) { return math::max(a, b); });
  TestFixture::check([](Real a, Real b) { return math::min(a, b); });
  TestFixture::check([](Real a, Real b) { return math::max(a * Real(0.3), a * b); });
  TestFixture::check([](Real a, Real b) { return math::select(a < b, a, a * b); });
}

TEST(same_bits_of_storage, narrowing_and_widening) {
  same_bits<float>::check([](float a, float) { return regroup::widen(regroup::float16(a)); });
  same_bits<float>::check([](float a, float) { return regroup::widen(regroup::bfloat16(a)); });
}

// Arithmetic on a result is the caller's; the law is that nothing inside the functions meets it.
TYPED_TEST(same_bits, results_in_a_sum) {
  using Real = TypeParam;
  TestFixture::check([](Real a, Real b) { return math::exp(a) + b; });
  TestFixture::check([](Real a, Real b) { return math::decay(-math::abs(a)) + b; });
  TestFixture::check([](Real a, Real b) { return math::exp2(a) + b; });
  TestFixture::check([](Real a, Real b) { return math::log(a) + b; });
  TestFixture::check([](Real a, Real b) { return math::max(a, b) + b; });
}

#if defined(__GNUC__) && !defined(__clang__)
TEST(same_bits_of_constants, folded_by_the_compiler) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  static_assert(math::exp(0.0f) == 1 && math::exp(-infinity) == 0 && math::exp(infinity) == infinity);
  static_assert(math::exp2(-3.0) == 0.125 && math::log(1.0f) == 0 && math::log(0.0) == -HUGE_VAL);
  static_assert(math::is_nan(math::exp(-std::numeric_limits<float>::quiet_NaN())) && math::is_nan(math::log(-1.0)));
  static_assert(math::max(-0.0f, 1.0f) == 1 && math::is_nan(math::max(std::numeric_limits<float>::quiet_NaN(), 1.0f)));
  constexpr float folded[] = {math::exp(-1.5f), math::exp2(0.3f), math::log(3.0f), math::decay(-1.5f)};
  volatile float arguments[] = {-1.5f, 0.3f, 3.0f};
  EXPECT_EQ(folded[0], math::exp(float{arguments[0]}));
  EXPECT_EQ(folded[1], math::exp2(float{arguments[1]}));
  EXPECT_EQ(folded[2], math::log(float{arguments[2]}));
  EXPECT_EQ(folded[3], math::decay(float{arguments[0]}));
  constexpr double folded_double[] = {math::exp(-1.5), math::exp2(0.3), math::log(3.0), math::decay(-1.5)};
  EXPECT_EQ(folded_double[0], math::exp(double{arguments[0]}));
  volatile double more[] = {0.3, 3.0};
  EXPECT_EQ(folded_double[1], math::exp2(double{more[0]}));
  EXPECT_EQ(folded_double[2], math::log(double{more[1]}));
  EXPECT_EQ(folded_double[3], math::decay(double{arguments[0]}));
}
#endif

}  // namespace
