// SPDX-License-Identifier: Apache-2.0
// The 16-bit types over all their 65,536 patterns: widening is exact, narrowing a widened number gives it back, and
// narrowing rounds to nearest with ties to even, judged by an independent definition in integers and powers of two.
#include <regroup/float16.hpp>
#include <regroup/host/halves.hpp>

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

namespace {

using regroup::bfloat16;
using regroup::float16;
using regroup::widen;
using regroup::widened;

static_assert(sizeof(float16) == 2 && std::is_trivially_copyable_v<float16> && std::is_trivial_v<float16>);
static_assert(sizeof(bfloat16) == 2 && std::is_trivially_copyable_v<bfloat16> && std::is_trivial_v<bfloat16>);
static_assert(!std::is_convertible_v<float, float16> && !std::is_convertible_v<float, bfloat16>);
static_assert(std::is_same_v<widened<const float16&>, float> && std::is_same_v<widened<bfloat16>, float>);
static_assert(std::is_same_v<widened<double>, double> && std::is_same_v<widened<const std::string&>, std::string>);
static_assert(std::is_same_v<decltype(widen(std::declval<const std::string&>())), const std::string&>);
static_assert(widen(float16(0x1.554p-2f)) == 0x1.554p-2f && widen(bfloat16(-3.0f)) == -3.0f && widen(7) == 7);

// What a pattern means, from the definition of the format.
template <int Exponent, int Mantissa>
double meaning(unsigned bits) {
  constexpr int bias = (1 << (Exponent - 1)) - 1;
  const int exponent = static_cast<int>(bits >> Mantissa) & ((1 << Exponent) - 1);
  const auto mantissa = static_cast<double>(bits & ((1u << Mantissa) - 1));
  const double sign = bits >> 15 ? -1 : 1;
  if (exponent == (1 << Exponent) - 1) {
    return mantissa == 0 ? sign * HUGE_VAL : std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - Mantissa);
  return sign * std::ldexp(mantissa + (1 << Mantissa), exponent - bias - Mantissa);
}

template <class Half>
struct format;
template <>
struct format<float16> {
  static constexpr int exponent = 5, mantissa = 10;
};
template <>
struct format<bfloat16> {
  static constexpr int exponent = 8, mantissa = 7;
};

template <class Half>
double meaning_of(unsigned bits) {
  return meaning<format<Half>::exponent, format<Half>::mantissa>(bits);
}

template <class Half>
unsigned infinity_bits() {
  return ((1u << format<Half>::exponent) - 1) << format<Half>::mantissa;
}

template <class Half>
unsigned bits_after(float x) {
  return Half(x).bits;
}

template <class Half>
class storage : public testing::Test {};
using storages = testing::Types<float16, bfloat16>;
TYPED_TEST_SUITE(storage, storages);

TYPED_TEST(storage, widening_is_exact_and_narrowing_gives_it_back) {
  for (unsigned b = 0; b < 65536; ++b) {
    const float x = widen(TypeParam::from_bits(static_cast<std::uint16_t>(b)));
    const double meant = meaning_of<TypeParam>(b);
    if (std::isnan(meant)) {
      ASSERT_TRUE(std::isnan(x)) << b;
      ASSERT_TRUE(std::isnan(widen(TypeParam(x)))) << b;
      continue;
    }
    ASSERT_EQ(x, meant) << b;
    ASSERT_EQ(std::signbit(x), b >> 15 == 1) << b;
    ASSERT_EQ(bits_after<TypeParam>(x), b);
  }
}

// Between neighbours a < b: the midpoint goes to the even one, the floats beside the midpoint to their own side, and so do
// doubles and long doubles, most of which float would round to the midpoint.
TYPED_TEST(storage, midpoints_go_to_even) {
  for (unsigned a = 0; a < infinity_bits<TypeParam>(); ++a) {
    const double low = meaning_of<TypeParam>(a);
    // Past the largest the next number would be 2^16 or 2^128: what rounds there is infinite.
    const bool last = a + 1 == infinity_bits<TypeParam>();
    const double high = last ? 2 * low - meaning_of<TypeParam>(a - 1) : meaning_of<TypeParam>(a + 1);
    const auto middle = static_cast<float>((low + high) / 2);
    ASSERT_EQ(middle, (low + high) / 2);
    const unsigned even = a % 2 == 0 ? a : a + 1;
    const float below = std::nextafter(middle, 0.0f);
    const float above = std::nextafter(middle, HUGE_VALF);
    for (const unsigned sign : {0u, 0x8000u}) {
      const float s = sign == 0 ? 1.0f : -1.0f;
      ASSERT_EQ(bits_after<TypeParam>(s * middle), sign | even) << a;
      ASSERT_EQ(bits_after<TypeParam>(s * below), sign | a) << a;
      ASSERT_EQ(bits_after<TypeParam>(s * above), sign | (a + 1)) << a;
      const auto expect_once = [&]<class Real>(Real exact) {
        ASSERT_EQ(TypeParam(s * exact).bits, sign | even) << a;
        ASSERT_EQ(TypeParam(s * std::nextafter(exact, Real{0})).bits, sign | a) << a;
        ASSERT_EQ(TypeParam(s * std::nextafter(exact, Real{HUGE_VAL})).bits, sign | (a + 1)) << a;
      };
      expect_once((low + high) / 2);
      expect_once(static_cast<long double>(middle));
    }
  }
}

TYPED_TEST(storage, any_float_goes_to_its_nearest) {
  std::mt19937 random(1);
  for (int i = 0; i < 300000; ++i) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    const unsigned b = bits_after<TypeParam>(x);
    if (std::isnan(x)) {
      ASSERT_TRUE(std::isnan(meaning_of<TypeParam>(b)));
      continue;
    }
    ASSERT_EQ(b >> 15 == 1, std::signbit(x));
    const unsigned magnitude = b & 0x7fffu;
    ASSERT_LE(magnitude, infinity_bits<TypeParam>());
    if (magnitude == infinity_bits<TypeParam>()) continue;  // where that begins, the midpoints say
    const double error = std::abs(std::abs(x) - meaning_of<TypeParam>(magnitude));
    if (magnitude > 0) {
      ASSERT_LE(error, std::abs(std::abs(x) - meaning_of<TypeParam>(magnitude - 1)));
    }
    if (magnitude + 1 < infinity_bits<TypeParam>()) {
      ASSERT_LE(error, std::abs(std::abs(x) - meaning_of<TypeParam>(magnitude + 1)));
    }
  }
}

TYPED_TEST(storage, infinities_and_nan) {
  const unsigned infinity = infinity_bits<TypeParam>();
  EXPECT_EQ(bits_after<TypeParam>(HUGE_VALF), infinity);
  EXPECT_EQ(bits_after<TypeParam>(-HUGE_VALF), infinity | 0x8000u);
  EXPECT_EQ(bits_after<TypeParam>(std::numeric_limits<float>::max()), infinity);
  for (const std::uint32_t payload : {1u, 0x1fffu, 0x200000u, 0x400000u, 0x7fffffu}) {
    for (const std::uint32_t sign : {0u, 0x80000000u}) {
      const unsigned b = bits_after<TypeParam>(std::bit_cast<float>(0x7f800000u | payload | sign));
      EXPECT_GT(b & 0x7fffu, infinity);
      EXPECT_EQ(b >> 15, sign >> 31);
    }
  }
}

// By the instructions of this processor, and one by one: every pattern, NaN too, and no place past the last.
TEST(runs_of_float16, have_the_bits_of_their_elements) {
  std::vector<float16> all(65536);
  for (unsigned b = 0; b < 65536; ++b) all[b] = float16::from_bits(static_cast<std::uint16_t>(b));
  std::vector<float> wide(all.size());
  regroup::host::widen_all(all.data(), wide.data(), 65536);
  for (unsigned b = 0; b < 65536; ++b) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[b]), std::bit_cast<std::uint32_t>(widen(all[b]))) << b;
  }
  std::mt19937 random(2);
  std::vector<float> any(1 << 20);
  for (float& x : any) x = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
  for (std::size_t i = 0; i < wide.size(); ++i) {  // the halves themselves, and just beside what lies between them
    any[3 * i] = wide[i];
    any[3 * i + 1] = std::nextafter(wide[i] * 1.000244140625f, HUGE_VALF);
    any[3 * i + 2] = wide[i] + std::ldexp(static_cast<float>(i % 3) - 1, -25);
  }
  std::vector<float16> narrow(any.size());
  regroup::host::narrow_all(any.data(), narrow.data(), static_cast<regroup::index>(any.size()));
  for (std::size_t i = 0; i < any.size(); ++i) ASSERT_EQ(narrow[i].bits, float16(any[i]).bits) << any[i];
}

TEST(runs_of_float16, end_where_they_end) {
  constexpr float outside = 12345;
  for (regroup::index n = 0; n <= 100; ++n) {
    std::array<float16, 120> x, y;
    std::array<float, 120> wide;
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = float16(static_cast<float>(i) / 8), y[i] = float16(-1.0f);
    wide.fill(outside);
    regroup::host::widen_all(x.data() + 1, wide.data() + 3, n);
    regroup::host::narrow_all(wide.data() + 3, y.data() + 5, n);
    for (regroup::index i = 0; i < 115; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const bool is_in = i >= 3 && i < n + 3;
      ASSERT_EQ(wide[at], is_in ? static_cast<float>(i - 2) / 8 : outside) << n << ' ' << i;
      ASSERT_EQ(widen(y[at + 2]), is_in ? static_cast<float>(i - 2) / 8 : -1.0f) << n << ' ' << i;
    }
  }
}

}  // namespace
