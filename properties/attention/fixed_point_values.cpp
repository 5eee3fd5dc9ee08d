// SPDX-License-Identifier: Apache-2.0
// Attention in fixed point over rows that have no integers, bitwise against its transcription (fixed_point.hpp); the largest
// sums; and its error on inputs that are hard for it, within the bound.
#include "fixed_point.hpp"

namespace {

using namespace fixed_points;
using cases::index;

template <class T>
class fixed_point_values : public where_it_is<T> {};
TYPED_TEST_SUITE(fixed_point_values, types);

/// Rows 3, 64, 77 and 1030 of `x`: all of them, or every step-th number.
template <class T>
void spoil(tensor<T>& x, float value, index step) {
  for (const index j : {3, 64, 77, 1030}) fill(x, j, value, step);
}

TYPED_TEST(fixed_point_values, keys_and_values_that_are_not_finite) {
  using T = TypeParam;
  std::vector<char> seen(1100, 1);
  for (const index j : {3, 64, 77, 1030}) seen[static_cast<std::size_t>(j)] = 0;
  const std::vector<int> lengths = {60};
  for (const float value : {not_a_number, infinity, -infinity}) {
    for (const index queries : {1, 5, 40}) {
      for (const bool in_keys : {true, false}) {
        const problem<T> clean({2, 1, queries, 1100, 6, 5}, 1000);
        for (const index step : {1, 100}) {
          problem<T> p = clean;
          tensor<T>& x = in_keys ? p.k : p.v;
          spoil(x, value, step);
          compare(p);
          compare(p, regroup::causal{.corner = regroup::top_left}, causal_from(0));
          compare(p, regroup::causal{}, causal_from(1100 - queries));
          compare(p, regroup::boolean(view<const char>(seen)),
                  [&](float s, index, index, index j) { return seen[static_cast<std::size_t>(j)] ? s : -infinity; });
          EXPECT_TRUE(same_bits(p.answer({.mask = regroup::boolean(view<const char>(seen))}),
                                clean.answer({.mask = regroup::boolean(view<const char>(seen))})));
          fill(p.k, 3, 1);
          fill(p.v, 3, 1);
          const auto shorter = cases::attend<T, float>(par, p.q.view(), dense(p.k.view(), p.v.view(), lengths));
          compare(p, shorter, everything, static_cast<float>(1 / std::sqrt(6.0)), 60);
        }
      }
    }
  }
}

TYPED_TEST(fixed_point_values, infinite_scores) {
  for (const index queries : {1, 5, 40}) {
    problem<TypeParam> p({1, 1, queries, 1100, 6, 5}, 1100);
    for (index i = 0; i < queries; i += 2) p.q.view()(0, i, 0) = TypeParam(0.5f);
    for (index i = 1; i < queries; i += 2) p.q.view()(0, i, 0) = TypeParam(-0.5f);
    for (const index j : {9, 1030}) p.k.view()(0, j, 0) = TypeParam(infinity);  // for half the queries -inf: hidden
    for (const index j : {9, 1030}) p.v.view()(0, j, 2) = TypeParam(not_a_number);
    const auto got = p.answer();
    for (index i = 0; i < queries; ++i) {
      EXPECT_EQ(got.lse.view()(0, i) == infinity, i % 2 == 0) << i;
      for (index c = 0; c < 5; ++c) EXPECT_EQ(std::isnan(got.out.view()(0, i, c)), i % 2 == 0) << i;
    }
    compare(p);
  }
}

TYPED_TEST(fixed_point_values, queries_that_are_not_finite) {
  for (const float value : {not_a_number, infinity, -infinity}) {
    for (const index queries : {1, 5, 40, 70}) {
      const problem<TypeParam> clean({2, 1, queries, 300, 6, 5}, 1200);
      problem<TypeParam> p = clean;
      for (const index i : {0, 17, 38, 69}) {
        if (i < queries) p.q.view()(i % 2, i, 2) = TypeParam(value);
      }
      compare(p);
      const auto got = p.answer(), wanted = clean.answer();
      for (index i = 0; i < queries; ++i) {
        for (index h = 0; h < 2; ++h) {
          if (h == i % 2 && (i == 0 || i == 17 || i == 38 || i == 69)) continue;
          EXPECT_TRUE(cases::same_bits<float>(got.out.view()[h][i], wanted.out.view()[h][i])) << h << " " << i;
          EXPECT_EQ(got.lse.view()(h, i), wanted.lse.view()(h, i));
        }
      }
    }
  }
}

/// Rows too large, or too small, for integers: of bfloat16, whose exponents go so far.
class fixed_point_sizes : public where_it_is<regroup::bfloat16> {};

TEST_F(fixed_point_sizes, rows_without_integers) {
  using T = regroup::bfloat16;
  for (const int exponent : {60, -60, 46, -49, 44, -44, -80, -120, -130}) {
    const float size = std::ldexp(1.0f, exponent);
    for (const index queries : {1, 5, 16, 40}) {
      for (const bool is_lone : {true, false}) {  // some rows, or all
        SCOPED_TRACE("2^" + std::to_string(exponent) + (is_lone ? " of some" : " of all"));
        const auto is_chosen = [&](index j) { return !is_lone || j % 37 == 3; };
        problem<T> p({2, 1, queries, 200, 6, 5}, 1300);
        for (index j = 0; j < 200; ++j) {
          if (is_chosen(j)) multiply(p.v, j, size);
        }
        compare(p);
        compare(p, regroup::causal{}, causal_from(200 - queries));
        p = problem<T>({2, 1, queries, 200, 6, 5}, 1310);
        for (index j = 0; j < 200; ++j) {
          if (is_chosen(j)) multiply(p.k, j, size);
        }
        for (index i = 0; i < queries; ++i) multiply(p.q, i, 1 / std::clamp(size, 0x1p-40f, 0x1p+40f));
        compare(p);
        p = problem<T>({2, 1, queries, 200, 6, 5}, 1320);
        for (index i = 0; i < queries; ++i) {
          if (is_chosen(i)) multiply(p.q, i, size);
        }
        for (index j = 0; j < 200; ++j) multiply(p.k, j, 1 / std::clamp(size, 0x1p-40f, 0x1p+40f));
        compare(p);
      }
    }
  }
}

/// A number of exactly the largest size, the smallest, and those next to them.
TEST_F(fixed_point_sizes, the_limits) {
  using T = regroup::bfloat16;
  for (const float size : {0x1p+45f, 0x1.02p+45f, 0x1.fep+44f, 0x1p-45f, 0x1.02p-45f, 0x1.fep-46f}) {
    for (const index queries : {1, 40}) {
      problem<T> p({1, 1, queries, 70, 1, 1}, 1400);
      fill(p.k, 5, size);
      fill(p.q, 0, size < 1 ? 1.1f / size : 1.7f / size);
      compare(p);
      fill(p.v, 5, size);
      compare(p);
      fill(p.q, 0, size);
      fill(p.k, 5, 1.7f / size);
      compare(p);
    }
  }
}

/// 64 equal weights of values all at a limit, and keys parallel to their query: sums of integers as large as they get.
TYPED_TEST(fixed_point_values, largest_sums_of_integers) {
  using T = TypeParam;
  const float largest = 65504;
  for (const index d : {1, 64, 128, 500}) {
    for (const float sign : {1.0f, -1.0f}) {
      for (const index keys : {64, 65, 128, 61}) {  // all weights equal
        problem<T> p({1, 1, 40, keys, d, d}, 1500);
        std::ranges::fill(p.k.values, T(0.0f));
        std::ranges::fill(p.v.values, T(sign * largest));
        compare(p);
        for (std::size_t i = 0; i < p.k.values.size(); ++i) p.k.values[i] = p.q.values[i % static_cast<std::size_t>(d)];
        compare(p);  // and K parallel to a query
        for (T& x : p.k.values) x = T(-widen(x));
        compare(p);
        std::ranges::fill(p.q.values, T(largest));
        std::ranges::fill(p.k.values, T(sign * largest));
        compare(p);
        const auto got = p.template answer<T>();
        for (const T x : got.out.values) EXPECT_TRUE(std::isfinite(widen(x))) << keys << " keys, d " << d;
      }
    }
  }
}

/// Any number of equal weights and of the largest values: rounded up together, they still do not overflow float16.
TYPED_TEST(fixed_point_values, equal_weights_of_any_number) {
  using T = TypeParam;
  double worst = 0;
  for (index keys = 1; keys <= 130; ++keys) {
    problem<T> p({1, 1, 40, keys, 4, 3}, 1600);
    std::ranges::fill(p.k.values, T(0.0f));
    std::ranges::fill(p.v.values, T(65504.0f));
    compare(p);
    const double v = widen(p.v.values[0]);
    for (const float x : p.answer().out.values) worst = std::max(worst, std::abs(x / v - 1));
    const auto narrow = p.template answer<T>();
    for (const T x : narrow.out.values) EXPECT_TRUE(std::isfinite(widen(x))) << keys;
  }
  std::cout << "a constant is wrong by up to 2^" << std::log2(worst) << "\n";
}

/// The worst of error / bound, and of error / the largest value.
template <class T>
void stay_within_bounds(const char* name, const problem<T>& p) {
  const extents& s = p.s;
  const auto got = p.answer();
  cases::worst_ratio worst;
  double error = 0, error_of_lse = 0;
  long double largest = 0;
  for (const T x : p.v.values) largest = std::max(largest, std::abs(static_cast<long double>(widen(x))));
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(s.d)));
  const auto see = [](index, cases::seen_key&) { return true; };
  for (index i = 0; i < s.queries; ++i) {
    const auto e = cases::define(cases::keys_of(p.q.view()[0][i], p.k.view()[0], p.v.view()[0], scale, see), s.d, s.dv,
                                 0x1p-24, 0x1p-24, 0, 0, cases::products_of<T>());
    worst.add(e, got.out.values.data() + i * s.dv, got.lse.view()(0, i));
    error_of_lse = std::max(error_of_lse, static_cast<double>(std::abs(got.lse.view()(0, i) - e.lse)));
    for (index c = 0; c < s.dv; ++c) {
      const long double x = got.out.view()(0, i, c);
      const long double bound = e.out_bound[static_cast<std::size_t>(c)];
      error = std::max(error, static_cast<double>(std::abs(x - e.out[static_cast<std::size_t>(c)]) / largest));
      long double low = std::numeric_limits<long double>::infinity(), high = -low;
      for (index j = 0; j < s.keys; ++j) {
        const long double value = widen(p.v.view()(0, j, c));
        low = std::min(low, value);
        high = std::max(high, value);
      }
      EXPECT_LE(low - bound, x) << name;
      EXPECT_LE(x, high + bound) << name;
    }
  }
  std::cout << name << ": worst " << worst.ratio << " of the bound; error 2^" << std::log2(error)
            << " of the largest value, of logsumexp " << error_of_lse << "\n";
  EXPECT_LE(worst.ratio, 1) << name;
}

TYPED_TEST(fixed_point_values, errors_of_hard_inputs) {
  using T = TypeParam;
  for (const index queries : {5, 40}) {
    const problem<T> plain({1, 1, queries, 1100, 64, 16}, 2000);
    stay_within_bounds("plain", plain);
    problem<T> p = plain;
    for (index j = 0; j < p.s.keys; ++j) p.k.view()(0, j, 11) = T(30 * widen(p.k.view()(0, j, 11)));
    stay_within_bounds("an outlier channel of K", p);
    for (index i = 0; i < queries; ++i) p.q.view()(0, i, 11) = T(0.0f);
    stay_within_bounds("one that no query looks at", p);
    p = plain;
    multiply(p.v, 70, 1000);
    stay_within_bounds("a value 1000 times larger", p);
    p = plain;
    for (index j = 0; j < p.s.keys; ++j) p.v.view()(0, j, 3) = T(1000 * widen(p.v.view()(0, j, 3)));
    stay_within_bounds("an outlier channel of V", p);
    p = plain;
    for (index i = 0; i < queries; ++i) p.q.view()(0, i, 0) = T(4.0f);
    for (index j = 0; j < p.s.keys; ++j) p.k.view()(0, j, 0) = T(j == 70 ? 48.0f : 0.0f);
    stay_within_bounds("a key that dominates", p);
    p = plain;
    std::ranges::fill(p.k.values, T(0.0f));
    stay_within_bounds("equal weights", p);
    p = plain;
    for (index j = 0; j < p.s.keys; ++j) {
      for (index c = 0; c < p.s.dv; ++c) p.v.view()(0, j, c) = T(0.3f * static_cast<float>(c - 7));
    }
    stay_within_bounds("constant values", p);
    std::ranges::fill(p.k.values, T(0.0f));
    stay_within_bounds("constant values of equal weights", p);
    p = plain;
    for (T& x : p.v.values) x = T(std::copysign(65504.0f, widen(x)));
    stay_within_bounds("values of the largest size", p);
    for (T& x : p.v.values) x = T(65504.0f);
    stay_within_bounds("the largest values", p);
    stay_within_bounds("wide scores", problem<T>({1, 1, queries, 1100, 64, 16}, 2100, 4));
    stay_within_bounds("many columns", problem<T>({1, 1, queries, 200, 500, 16}, 2200));
  }
}

}  // namespace
