// SPDX-License-Identifier: Apache-2.0
// Lawful monoids as users would write them, without an error_bound. They are accepted; a law that holds only for finite numbers
// is noted and does not count as a failure.
#include "holds.hpp"
#include "max_sum.hpp"

namespace regroup::laws {
namespace {

TEST(users, max_sum) {
  EXPECT_TRUE(holds(check_laws(max_sum{})));
  // The other usual repair: what is empty stays out. At +inf it is still NaN, which the report notes.
  struct skips_empty : obvious_max_sum {
    state operator()(state a, state b) const {
      if (a.m == identity().m) return b;
      if (b.m == identity().m) return a;
      return obvious_max_sum::operator()(a, b);
    }
  };
  const report r = check_laws<float>(skips_empty{});
  EXPECT_TRUE(holds(r));
}

struct average {
  struct state {
    double sum;
    long count;
  };
  state identity() const { return {0, 0}; }
  state lift(double x) const { return {x, 1}; }
  state operator()(state a, state b) const { return {a.sum + b.sum, a.count + b.count}; }
  double lower(state s) const { return s.sum / static_cast<double>(s.count); }
};
TEST(users, average) {
  const report r = check_laws(average{});
  EXPECT_TRUE(holds(r));
  law_options all = strictly();
  EXPECT_FALSE(check_laws(average{}, all).passed()) << "identity 0 loses the sign of -0, which strict asks for";
}

struct running_mean {  // Welford's, as textbooks merge it
  struct state {
    long n;
    double mean;
  };
  static constexpr bool is_commutative = true;
  state identity() const { return {0, 0}; }
  state lift(double x) const { return {1, x}; }
  state operator()(state a, state b) const {
    const long n = a.n + b.n;
    if (n == 0) return identity();
    return {n, a.mean + (b.mean - a.mean) * static_cast<double>(b.n) / static_cast<double>(n)};
  }
};
TEST(users, running_mean) {
  const reals<double> tame{-1e6, 1e6};
  const report r = check_laws(running_mean{}, tame);
  // a.mean + (b.mean - a.mean) is not always b.mean: the identity is not exact, and the report says so.
  EXPECT_TRUE(falls(r, "identity on the left"));
  struct repaired : running_mean {
    state operator()(state a, state b) const {
      if (a.n == 0) return b;
      if (b.n == 0) return a;
      return running_mean::operator()(a, b);
    }
  };
  EXPECT_TRUE(holds(check_laws(repaired{}, tame)));
}

/// Its own bound: looser than ours would be, and believed.
struct rounded_to_hundredths {
  float identity() const { return 0; }
  float operator()(float a, float b) const { return std::round((a + b) * 100) / 100; }
  float error_bound(std::span<const float> xs, index depth) const {
    float size = 0;
    for (const float x : xs) size += std::fabs(x);
    return static_cast<float>(depth) * (0.02f + 4e-7f * size);
  }
};
TEST(users, with_their_own_bound) {
  const auto hundredths = [](choices& from) { return static_cast<float>(from.integer(-999, 999)) / 100; };
  EXPECT_TRUE(holds(check_laws(rounded_to_hundredths{}, hundredths)));
}

TEST(users, of_nothing) {
  EXPECT_THROW(check_laws(max_sum{}, {.cases = 0}), argument_error);
  EXPECT_THROW(check_laws(max_sum{}, std::vector<float>{}), argument_error);
}

}  // namespace
}  // namespace regroup::laws
