// SPDX-License-Identifier: Apache-2.0
#include "regroup/monoids/scaled_product.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "fold.hpp"
#include "regroup/host/seq.hpp"
#include "regroup/laws.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/reduce.hpp"
#include "regroup/scan.hpp"

namespace {

using namespace monoids;
using regroup::multiplies;
using regroup::scaled_product;

/// The product in long double, its exponent apart: mantissa 2^exponent.
struct exact_product {
  long double mantissa = 1;
  std::int64_t exponent = 0;
  template <class Real>
  void operator*=(Real x) {
    mantissa *= static_cast<long double>(x);
    if (!std::isfinite(mantissa) || mantissa == 0) return;
    int e = 0;
    mantissa = std::frexp(mantissa, &e);
    exponent += e;
  }
  [[nodiscard]] long double value() const {
    return std::ldexp(mantissa, static_cast<int>(std::clamp<std::int64_t>(exponent, -8000, 8000)));
  }
};

/// A float of any exponent, denormal too, and now and then 0 or infinite.
template <class Real>
Real any_real(std::mt19937_64& draw, int specials) {
  using limits = std::numeric_limits<Real>;
  const Real signed_one = draw() % 2 == 0 ? Real(1) : Real(-1);
  if (specials > 0 && draw() % 300 == 0) return signed_one * Real(0);
  if (specials > 1 && draw() % 300 == 0) return signed_one * limits::infinity();
  const int range = limits::max_exponent - limits::min_exponent + limits::digits;
  const int e = limits::min_exponent - limits::digits + static_cast<int>(draw() % static_cast<unsigned>(range));
  const Real fraction = Real(1) + static_cast<Real>(draw() >> 11) * Real(0x1p-53);
  return signed_one * std::ldexp(std::fmin(fraction, Real(2) - limits::epsilon()), e);
}

template <class Real>
void expect_close(Real found, const exact_product& exact, std::size_t n) {
  using limits = std::numeric_limits<Real>;
  const long double wanted = exact.value();
  const long double relative = 1.01L * static_cast<long double>(n + 1) * limits::epsilon() / 2;
  if (std::isnan(wanted)) {
    ASSERT_TRUE(std::isnan(found));
  } else if (std::fabs(wanted) * (1 + relative) >= limits::max()) {
    ASSERT_TRUE(std::fabs(found) >= limits::max() * (1 - 2 * relative)) << found << " for " << wanted;
    ASSERT_EQ(std::signbit(found), std::signbit(wanted));
  } else {
    ASSERT_LE(std::fabs(found - wanted), relative * std::fabs(wanted) + limits::denorm_min()) << n;
    ASSERT_EQ(std::signbit(found), std::signbit(wanted));
  }
}

/// Elements of every size, in an order that stays in range for nobody, then their reciprocals' powers of two, so that
/// the whole comes back to about 1 or to the edges of the range.
template <class Real>
std::vector<Real> wide(std::mt19937_64& draw, std::size_t n, int specials) {
  std::vector<Real> xs;
  std::int64_t exponent = 0;
  while (xs.size() < n) {
    xs.push_back(any_real<Real>(draw, specials));
    if (std::isfinite(xs.back()) && xs.back() != 0) exponent += std::ilogb(xs.back());
  }
  using limits = std::numeric_limits<Real>;
  const std::int64_t aim =
      static_cast<int>(draw() % 3 - 1) * (limits::max_exponent + static_cast<int>(draw() % 30) - 5);
  while (exponent != aim) {
    const auto step = std::clamp<std::int64_t>(aim - exponent, limits::min_exponent, limits::max_exponent - 1);
    xs.push_back(std::ldexp(Real(1), static_cast<int>(step)));
    exponent += step;
  }
  return xs;
}

template <class Real>
void expect_products_of_wide_ranges() {
  std::mt19937_64 draw(5);
  const scaled_product<Real> m;
  for (const std::size_t n : {1u, 2u, 3u, 10u, 60u, 127u, 129u, 700u, 4097u, 9000u}) {
    for (int specials = 0; specials < 3; ++specials) {
      for (int twice = 0; twice < (n < 1000 ? 20 : 3); ++twice) {
        std::vector<Real> xs = wide<Real>(draw, n, specials);
        exact_product exact;
        for (const Real x : xs) exact *= x;
        const auto states = regroup::laws::lift_all(m, std::span<const Real>(xs));
        for (const std::uint64_t word : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, draw() | 4}) {
          expect_close(m.lower(regroup::laws::fold(m, states.all(), {word})), exact, xs.size());
        }
        expect_close(regroup::reduce(regroup::seq, xs, m), exact, xs.size());
        std::shuffle(xs.begin(), xs.end(), draw);
        expect_close(regroup::reduce(regroup::seq, xs, m), exact, xs.size());
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

/// Wherever nothing leaves the range on the way, in reduce and in every prefix of a scan.
template <class Real>
void expect_the_bits_of_multiplies() {
  std::mt19937_64 draw(6);
  std::uniform_real_distribution<double> about_1(0.7, 1.4);
  for (const std::size_t n : {0u, 1u, 2u, 100u, 128u, 4096u, 4097u, 20000u}) {
    std::vector<Real> xs(n);
    for (Real& x : xs) x = static_cast<Real>(draw() % 2 == 0 ? about_1(draw) : -1 / about_1(draw));
    EXPECT_TRUE(same(regroup::reduce(regroup::seq, xs, scaled_product<Real>{}),
                     regroup::reduce(regroup::seq, xs, multiplies<Real>{})));
    std::vector<Real> scaled(n), plain(n);
    regroup::inclusive_scan(regroup::seq, xs, scaled, scaled_product<Real>{});
    regroup::inclusive_scan(regroup::seq, xs, plain, multiplies<Real>{});
    EXPECT_TRUE(same(scaled, plain));
  }
  for (int i = 0; i < 100'000; ++i) {  // of two, the answer's own overflow and underflow are those of a product
    const std::vector<Real> xs{any_real<Real>(draw, 2), any_real<Real>(draw, 2)};
    const Real product = xs[0] * xs[1];
    const Real found = fold(scaled_product<Real>{}, xs);
    if (std::fpclassify(product) == FP_SUBNORMAL) {
      ASSERT_LE(std::fabs(found - product), std::numeric_limits<Real>::denorm_min());
    } else {
      ASSERT_TRUE(same(found, product) || std::fabs(found) <= std::numeric_limits<Real>::min()) << found;
    }
  }
}

/// One element comes back as it is.
template <class Real>
void expect_elements_unchanged() {
  std::mt19937_64 draw(8);
  const scaled_product<Real> m;
  for (const Real x : special_values<Real>()) EXPECT_TRUE(same(m.lower(m.lift(x)), x));
  for (int i = 0; i < 100'000; ++i) {
    const Real x = any_real<Real>(draw, 2);
    ASSERT_TRUE(same(m.lower(m.lift(x)), x));
  }
}

static_assert(scaled_product<float>{}.lower(scaled_product<float>{}.identity()) == 1.0F);
static_assert([] {
  const scaled_product<double> m;
  return m.lower(m(m(m.lift(1e300), m.lift(1e300)), m(m.lift(0x1p-1074), m.lift(0x1p-1000))));
}() == 1e300 * (1e300 * 0x1p-1000) * 0x1p-1000 * 0x1p-74);

}  // namespace

TEST(scaled_product, of_wide_ranges_float) { expect_products_of_wide_ranges<float>(); }
TEST(scaled_product, of_wide_ranges_double) { expect_products_of_wide_ranges<double>(); }
TEST(scaled_product, has_the_bits_of_multiplies_float) { expect_the_bits_of_multiplies<float>(); }
TEST(scaled_product, has_the_bits_of_multiplies_double) { expect_the_bits_of_multiplies<double>(); }
TEST(scaled_product, leaves_one_element_alone) {
  expect_elements_unchanged<float>();
  expect_elements_unchanged<double>();
}

TEST(scaled_product, special_values) {
  const auto product = [](std::vector<float> xs) { return regroup::reduce(regroup::seq, xs, scaled_product<float>{}); };
  const float inf = infinity<float>;
  EXPECT_TRUE(same(product({0, 1e30F, 0, 1e30F}), 0.0F));
  EXPECT_TRUE(same(product({-0.0F, 1e30F, 1, 1e30F}), -0.0F));
  EXPECT_EQ(product({1e20F, 1e-20F, 1e20F, 1e-20F}), 1);
  EXPECT_EQ(product({0x1p-149F, 0x1p-149F, 0x1p+127F, 0x1p+127F, 0x1p+44F}), 1);
  EXPECT_EQ(product({0x1p-149F, 0.75F}), 0x1p-149F);  // rounded
  EXPECT_EQ(product({0x1p-149F, 0.5F}), 0);           // a tie, to even
  EXPECT_EQ(product({1e-30F, -1e30F, 1e-30F, 1e30F, inf}), -inf);
  EXPECT_TRUE(std::isnan(product({inf, 1, 0})));
  EXPECT_TRUE(std::isnan(product({not_a_number<float>, 0})));
  EXPECT_EQ(product({1e30F, 1e30F}), inf);
  EXPECT_TRUE(same(product({1e-30F, -1e-30F}), -0.0F));
  std::vector<float> pairs;
  for (int i = 0; i < 16384; ++i) pairs.insert(pairs.end(), {2.0F, 0.5F});
  EXPECT_EQ(product(pairs), 1);
  std::vector<float> prefixes(pairs.size());
  regroup::inclusive_scan(regroup::seq, pairs, prefixes, scaled_product<float>{});
  for (std::size_t i = 0; i < prefixes.size(); ++i) ASSERT_EQ(prefixes[i], i % 2 == 0 ? 2 : 1);
}
