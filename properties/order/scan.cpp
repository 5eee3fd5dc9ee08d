// SPDX-License-Identifier: Apache-2.0
// Both scans at every edge of the order: every prefix has the contract's tree, which for every monoid is that of contiguous
// pieces; also in place.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "scans.hpp"

TEST(scan, contiguous_pieces) { order::expect_scans_at_every_edge<order::hashed<order::rule::pieces>>(); }

namespace {
/// Integers combine quickly, and in squares, unless they say otherwise.
struct slow : order::hashed<order::rule::pieces> {
  static constexpr bool is_quick = false;
};
}  // namespace
TEST(scan, by_lanes) { order::expect_scans_at_every_edge<slow>(); }
TEST(scan, declared_commutative) { order::expect_scans_at_every_edge<order::hashed<order::rule::striped>>(); }
TEST(scan, a_tile_lift_never_enters) { order::expect_scans_at_every_edge<order::hashed<order::rule::tile>>(); }

TEST(scan, every_short_length) {
  for (std::int64_t n = 0; n <= 300; ++n) order::expect_scans<order::hashed<order::rule::striped, order::word>>(n);
}

namespace {
/// A product of complex numbers, or of pairs: products that are added and subtracted side by side, which g++ 12 contracts in a
/// loop over states as they lie, even where it is told not to.
template <class Number>
struct product {
  Number identity() const { return {1, 0}; }
  Number operator()(const Number& a, const Number& b) const {
    if constexpr (requires { a.re; }) {
      return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
    } else {
      return a * b;
    }
  }
};
template <class Real>
struct pair_of {
  Real re, im;
  bool operator==(const pair_of&) const = default;
};

template <class Number, class Real>
void expect_prefixes() {
  const product<Number> m;
  std::vector<Number> xs;
  for (int i = 0; i < 20'000; ++i) {
    const auto angle = static_cast<Real>(1 + i % 977);
    xs.push_back({std::cos(angle), std::sin(angle)});
  }
  std::vector<Number> whole(xs.size()), some(xs.size());
  regroup::inclusive_scan(regroup::seq, xs, whole, m);
  for (const int length : {31, 33, 4095, 4097, 8200, 12'289, 20'000}) {
    const auto n = static_cast<std::size_t>(length);
    regroup::inclusive_scan(regroup::par.with_threads(2), std::span(xs).first(n), std::span(some).first(n), m);
    std::int64_t differing = 0;
    for (std::size_t i = 0; i < n; ++i) differing += some[i] == whole[i] ? 0 : 1;
    EXPECT_EQ(differing, 0) << "of the first " << n;
    regroup::exclusive_scan(regroup::seq, std::span(xs).first(n), std::span(some).first(n), m);
    for (std::size_t i = 1; i < n; ++i) differing += some[i] == whole[i - 1] ? 0 : 1;
    EXPECT_EQ(differing, 0) << "exclusive, of the first " << n;
  }
}
}  // namespace
TEST(scan, products_that_a_compiler_joins) {
  expect_prefixes<std::complex<double>, double>();
  expect_prefixes<pair_of<double>, double>();
  expect_prefixes<pair_of<float>, float>();
}
