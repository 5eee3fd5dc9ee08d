// SPDX-License-Identifier: Apache-2.0
#include "regroup/monoids/log_sum_exp.hpp"

#include <cmath>

#include "fold.hpp"
#include "regroup/host/lanes.hpp"

namespace {
using namespace monoids;
template <class Real>
using op = regroup::log_sum_exp<Real>;

#if !defined(__clang__)  // clang 14 evaluates no fma at compile time
template <class Real>
constexpr bool merges_while_compiling() {
  constexpr op<Real> m;
  const auto is = [](typename op<Real>::state s, Real top, Real sum) { return s.m == top && s.s == sum; };
  constexpr Real inf = infinity<Real>;
  const auto nothing = m.identity(), least = m.lift(-inf), greatest = m.lift(inf), one = m.lift(1);
  return is(m(nothing, nothing), -inf, 0) && is(m(nothing, least), -inf, 0) && is(m(one, nothing), 1, 1) &&
         is(m(greatest, greatest), inf, 2) && is(m(one, greatest), inf, 1) && is(m(one, one), 1, 2);
}
static_assert(merges_while_compiling<float>() && merges_while_compiling<double>());
#endif

template <class Real>
class log_sum_exp : public testing::Test {};
using reals = testing::Types<float, double>;
TYPED_TEST_SUITE(log_sum_exp, reals, );

template <class Real>
struct row {
  std::vector<Real> xs;
  Real answer;
};
template <class Real>
std::vector<row<Real>> table() {
  constexpr Real inf = infinity<Real>;
  constexpr Real none = not_a_number<Real>;
  constexpr Real tiny = std::numeric_limits<Real>::denorm_min();
  constexpr Real huge = std::numeric_limits<Real>::max();
  return {{{}, -inf},
          {{-inf}, -inf},
          {{-inf, -inf, -inf}, -inf},
          {{inf}, inf},
          {{inf, inf}, inf},
          {{-inf, inf}, inf},
          {{inf, 5}, inf},
          {{5, -inf}, 5},
          {{none}, none},
          {{none, inf}, none},
          {{inf, none}, none},
          {{none, -inf}, none},
          {{-inf, none, 3}, none},
          {{-0.0}, 0},
          {{tiny}, tiny},
          {{huge}, huge},
          {{huge, -huge}, huge},
          {{7}, 7},
          {{-1e4, 0}, 0}};
}

template <class Real>
regroup::state_of<op<Real>> tile(const std::vector<Real>& xs) {
  return regroup::host::leaf_of(op<Real>{}, xs.data(), static_cast<std::int64_t>(xs.size()));
}
}  // namespace

TYPED_TEST(log_sum_exp, special_values) {
  using Real = TypeParam;
  for (const auto& [xs, answer] : table<Real>()) {
    EXPECT_TRUE(same(fold(op<Real>{}, xs), answer)) << regroup::laws::text_of(xs);
    if (xs.empty()) continue;
    EXPECT_TRUE(same(tile(xs), state(op<Real>{}, xs))) << "the tile of " << regroup::laws::text_of(xs);
  }
}

TYPED_TEST(log_sum_exp, states) {
  using Real = TypeParam;
  using state_type = regroup::state_of<op<Real>>;
  const op<Real> m;
  constexpr Real inf = infinity<Real>;
  EXPECT_TRUE(same(m.lift(Real(-0.0)), state_type{0, 1}));
  EXPECT_TRUE(same(m.lift(-inf), m.identity()));
  EXPECT_TRUE(same(m.lift(inf), state_type{inf, 1}));
  EXPECT_TRUE(same(m.lift(not_a_number<Real>), state_type{not_a_number<Real>, not_a_number<Real>}));
  EXPECT_TRUE(same(m({inf, 2}, {inf, 3}), state_type{inf, 5}));  // factor 1, not exp(inf - inf)
  EXPECT_TRUE(same(m({5, 2}, {inf, 1}), state_type{inf, 1}));
  EXPECT_TRUE(same(m({4, 2}, {4, 3}), state_type{4, 5}));
  EXPECT_TRUE(same(m({0, 1}, {1e4, 1}), state_type{1e4, 1}));  // underflow is right in the limit
  EXPECT_TRUE(same(tile(std::vector<Real>(300, -inf)), m.identity()));
  EXPECT_TRUE(same(tile(std::vector<Real>(300, inf)), state_type{inf, 300}));
}

TYPED_TEST(log_sum_exp, worked_numbers) {
  using Real = TypeParam;
  const op<Real> m;
  const auto a = state(m, std::vector<Real>{1, 2, 3});
  const auto b = state(m, std::vector<Real>{4, 5});
  EXPECT_NEAR(static_cast<double>(a.s), 1.5032, 5e-5);
  EXPECT_NEAR(static_cast<double>(b.s), 1.3679, 5e-5);
  const auto both = m(a, b);
  EXPECT_EQ(both.m, 5);
  EXPECT_NEAR(static_cast<double>(both.s), 1.572, 1e-3);    // as published; it is 1.5713
  EXPECT_NEAR(static_cast<double>(a.s + b.s), 2.87, 5e-3);  // without the correction: wrong
  const auto two = m(tile(std::vector<Real>{1, 2, 3}), tile(std::vector<Real>{6, 2, 1}));
  EXPECT_EQ(two.m, 6);
  EXPECT_NEAR(static_cast<double>(two.s), 1.0999, 5e-4);
}

TYPED_TEST(log_sum_exp, a_tile_is_the_fold_of_its_elements) {
  using Real = TypeParam;
  std::mt19937_64 draw(17);
  std::uniform_real_distribution<double> uniform(-30, 30);
  for (const int n : {1, 2, 127, 128, 129, 4096}) {
    std::vector<Real> xs;
    for (int i = 0; i < n; ++i) xs.push_back(static_cast<Real>(i % 11 == 3 ? -INFINITY : uniform(draw)));
    long double m = -INFINITY;
    for (const Real x : xs) m = std::fmax(m, static_cast<long double>(x));
    long double sum = 0;
    for (const Real x : xs) sum += std::exp(x - m);
    const auto at_once = tile(xs);
    const auto one_by_one = state(op<Real>{}, xs);
    const long double u = std::numeric_limits<Real>::epsilon() / 2;
    EXPECT_EQ(at_once.m, one_by_one.m);
    EXPECT_LE(std::fabs(at_once.s - sum), u * (60 + 2 + 40) * sum) << n;  // 60: the range; 2: exp; 40: combines deep
    EXPECT_LE(std::fabs(one_by_one.s - sum), u * (60 + 2 * 20 + n) * sum) << n;
  }
}
