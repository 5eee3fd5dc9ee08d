// SPDX-License-Identifier: Apache-2.0
// The cheapest fold there is, the values where bugs live, and the laws that hold bitwise, on states made by operation
// trees from a fixed seed. (Shrinking, tolerances and every other law: properties/laws.)
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <limits>
#include <random>
#include <vector>

#include "regroup/laws/image.hpp"
#include "regroup/monoid.hpp"

namespace monoids {

template <class Real>
inline constexpr Real infinity = std::numeric_limits<Real>::infinity();
template <class Real>
inline constexpr Real not_a_number = std::numeric_limits<Real>::quiet_NaN();

/// Left to right.
template <class M, class X>
regroup::state_of<M> state(const M& m, const std::vector<X>& xs) {
  auto s = m.identity();
  for (const X& x : xs) s = m(s, regroup::lift(m, x));
  return s;
}
template <class M, class X>
auto fold(const M& m, const std::vector<X>& xs) {
  return regroup::lower(m, state(m, xs));
}

/// Member by member: all NaNs are one, -0 is not +0.
template <class A, class B>
testing::AssertionResult same(const A& a, const B& b) {
  if (regroup::laws::bitwise{}(a, static_cast<A>(b))) return testing::AssertionSuccess();
  return testing::AssertionFailure() << regroup::laws::text_of(a) << " is not " << regroup::laws::text_of(b);
}

template <class Real>
std::vector<Real> special_values() {
  using limits = std::numeric_limits<Real>;
  const Real inf = infinity<Real>;
  return {not_a_number<Real>,
          inf,
          -inf,
          Real(0),
          -Real(0),
          limits::denorm_min(),
          -limits::min(),
          limits::max(),
          limits::max(),
          limits::lowest(),
          Real(1),
          Real(-1),
          Real(1e4),
          Real(88.7),
          Real(-103.9),
          Real(0.1),
          Real(1) + limits::epsilon()};
}

/// Elements of any kind made from numbers.
template <class Real, class Make>
auto elements(Make make) {
  std::mt19937_64 draw(7);
  std::uniform_real_distribution<double> uniform(-20, 20);
  std::vector<decltype(make(Real{}, regroup::index{}))> made;
  regroup::index position = 0;
  for (const Real x : special_values<Real>()) made.push_back(make(x, position++));
  for (int i = 0; i < 30; ++i) made.push_back(make(static_cast<Real>(uniform(draw)), position++));
  return made;
}

/// Identity on both sides, commutativity and associativity where declared, all bitwise.
template <class M, class X>
void expect_bitwise_laws(const M& m, const std::vector<X>& xs) {
  std::mt19937_64 draw(11);
  std::deque<regroup::state_of<M>> pool{m.identity(), m(m.identity(), m.identity())};
  for (const X& x : xs) pool.push_back(regroup::lift(m, x));
  const auto any = [&]() -> const auto& { return pool[draw() % pool.size()]; };
  for (int i = 0; i < 300; ++i) pool.push_back(m(any(), any()));
  EXPECT_TRUE(same(pool[1], m.identity()));
  for (const auto& s : pool) {
    ASSERT_TRUE(same(m(m.identity(), s), s));
    ASSERT_TRUE(same(m(s, m.identity()), s));
  }
  for (int i = 0; i < 3000; ++i) {
    const auto a = any();
    const auto b = any();
    const auto c = any();
    if constexpr (regroup::is_commutative<M>) {
      ASSERT_TRUE(same(m(a, b), m(b, a)));
    }
    if constexpr (regroup::is_exact<M>) {
      ASSERT_TRUE(same(m(m(a, b), c), m(a, m(b, c))));
    }
  }
}

}  // namespace monoids
