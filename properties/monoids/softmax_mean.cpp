// SPDX-License-Identifier: Apache-2.0
#include "regroup/monoids/softmax_mean.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <stdexcept>

#include "fold.hpp"

namespace {
using namespace monoids;
using pair = regroup::fixed_vector<float, 2>;
using key = regroup::scored<float, pair>;
using fixed = regroup::softmax_mean<float, pair>;
constexpr float inf = infinity<float>;
constexpr float none = not_a_number<float>;

struct row {
  std::vector<key> keys;
  pair mean;
};
const std::vector<row> table{
    {{}, {0, 0}},
    {{{-inf, {1, 2}}, {-inf, {none, inf}}}, {0, 0}},   // a hidden key is the identity, whatever it holds
    {{{3, {1, -0.0F}}, {-inf, {none, inf}}}, {1, 0}},  // no -0 in answers
    {{{-1e30F, {1, 2}}}, {1, 2}},
    {{{inf, {1, 2}}, {0, {1, 2}}}, {none, none}},
    {{{none, {1, 2}}, {0, {1, 2}}}, {none, none}},
    {{{0, {none, 2}}, {0, {1, 2}}}, {none, 2}},  // a NaN value stays in its column
    {{{0, {inf, -inf}}, {0, {1, inf}}}, {inf, none}},
    {{{1e4F, {1, 3}}, {1e4F, {3, 5}}}, {2, 4}},
    {{{-0.0F, {1e-45F, 0}}}, {1e-45F, 0}},
};

/// A user's own O: one number, and nothing of ours but the four names.
struct scalar {
  double value;
  static constexpr scalar filled(regroup::index, double x) { return {x}; }
  friend constexpr scalar axpy(scalar low, double f, scalar high) {
    return {regroup::math::fma(low.value, f, high.value)};
  }
  friend constexpr scalar scale(scalar v, double f) { return {v.value * f}; }
  friend constexpr scalar divide(scalar v, double l) { return {v.value / l + 0}; }
};

double expected(double x) { return (2 * std::exp(-x) + 3) / (std::exp(-x) + 1); }
}  // namespace

TEST(softmax_mean, special_values) {
  for (const row& r : table) {
    EXPECT_TRUE(same(fold(fixed{}, r.keys), r.mean)) << regroup::laws::text_of(r.keys);
    std::vector<regroup::scored<float, std::span<const float>>> spans;
    for (const key& k : r.keys) spans.push_back({k.score, {k.value.values, 2}});
    const auto mean = fold(regroup::softmax_mean<float>{.d = 2}, spans);
    EXPECT_TRUE(same(mean.values, std::vector<float>{r.mean[0], r.mean[1]})) << "d at run time";
  }
}

TEST(softmax_mean, states) {
  const fixed m;
  const auto nothing = m.identity();
  EXPECT_TRUE(same(nothing, regroup::state_of<fixed>{-inf, 0, {-0.0F, -0.0F}}));
  EXPECT_TRUE(same(m.lift(key{-inf, {none, 1}}), nothing));
  EXPECT_TRUE(same(m.lift(key{none, {1, 1}}), regroup::state_of<fixed>{none, none, {none, none}}));
  EXPECT_TRUE(same(m.lift(key{-0.0F, {-0.0F, 1}}), regroup::state_of<fixed>{0, 1, {-0.0F, 1}}));
  static_assert(std::is_trivially_copyable_v<regroup::state_of<fixed>>);
}

TEST(softmax_mean, worked_numbers) {
  using one = regroup::fixed_vector<double, 1>;
  const regroup::softmax_mean<double, one> m;
  using keys = std::vector<regroup::scored<double, one>>;
  const auto first = state(m, keys{{1, {1}}, {2, {1}}});
  EXPECT_EQ(first.m, 2);
  EXPECT_NEAR(first.l, 1.368, 5e-4);
  EXPECT_NEAR(first.o[0], 1.368, 5e-4);
  const auto both = m(first, state(m, keys{{3, {1}}, {10, {1}}}));
  EXPECT_EQ(both.m, 10);
  EXPECT_NEAR(both.l, 1.00137, 5e-6);
  EXPECT_NEAR(both.o[0], 1.00137, 5e-6);
  EXPECT_EQ(m.lower(both)[0], 1);
  EXPECT_NEAR(fold(m, keys{{0, {2}}, {5, {3}}})[0], expected(5), 1e-15);
}

TEST(softmax_mean, O_is_a_parameter) {
  const regroup::softmax_mean<double, scalar> m;
  const std::vector<regroup::scored<double, scalar>> keys{{0, {2}}, {5, {3}}};
  EXPECT_NEAR(fold(m, keys).value, expected(5), 1e-15);
  EXPECT_EQ(scale(fold(m, keys), 0).value, 0);
}

TEST(softmax_mean, elements_are_widened) {
  using half = regroup::float16;
  const std::vector<half> values{half(2.0F), half(3.0F)};
  const std::vector<regroup::scored<half, std::span<const half>>> keys{{half(1.0F), {values.data(), 1}},
                                                                       {half(6.0F), {values.data() + 1, 1}}};
  EXPECT_NEAR(fold(regroup::softmax_mean<double>{.d = 1}, keys)[0], expected(5), 1e-15);
}

template <regroup::log_base Base>
void as_others_hold_it() {
  const fixed m;
  const auto part = [&](float score, float value) { return m.lift(regroup::scored<float, pair>{score, {value, 1}}); };
  const auto a = m(part(1, 2), part(3, 5)), b = m(part(-2, 7), part(4, -1));
  const auto held = m.template normalised<Base>(a);
  const auto both = m(m.lift(held), m.lift(m.template normalised<Base>(b)));
  EXPECT_NEAR(m.lower(both)[0], m.lower(m(a, b))[0], 1e-6);
  EXPECT_NEAR(m.template normalised<regroup::log_base::e>(both).logsumexp, m.template normalised<>(m(a, b)).logsumexp, 1e-6);
  const auto nothing = m.template normalised<Base>(m.identity());
  EXPECT_EQ(nothing.logsumexp, -HUGE_VALF);
  EXPECT_EQ(nothing.o[0], 0);
  EXPECT_TRUE(same(m.lift(nothing), m.identity()));
}

TEST(softmax_mean, values_of_another_size_are_refused) {
  using scored = regroup::scored<float, std::vector<float>>;
  const auto mean_of = [](regroup::index d, const std::vector<scored>& keys) {
    return fold(regroup::softmax_mean<float>{.d = d}, keys);
  };
  EXPECT_THROW(mean_of(0, {{0, {1, 2}}, {-inf, {3, 4}}}), std::invalid_argument);  // .d forgotten
  EXPECT_THROW(mean_of(2, {{0, {1, 2}}, {1, {3}}}), std::invalid_argument);
  EXPECT_TRUE(same(mean_of(2, {{-inf, {}}, {0, {1, 2}}}).values, std::vector<float>{1, 2}));  // hidden, whatever it is
  const auto state = regroup::softmax_mean<float>{.d = 3}.lift(scored{0, {1, 2, 3}});
  const regroup::normalised_softmax<float, regroup::dynamic_vector<float>> part{state.o, 0};
  EXPECT_THROW((void)regroup::softmax_mean<float>{.d = 2}.lift(part), std::invalid_argument);
}

TEST(softmax_mean, a_normalised_state_is_an_element) {
  as_others_hold_it<regroup::log_base::e>();
  as_others_hold_it<regroup::log_base::two>();
  const auto held = fixed{}.normalised<regroup::log_base::two>(fixed{}.lift(regroup::scored<float, pair>{3, {1, 2}}));
  EXPECT_FLOAT_EQ(held.logsumexp, 3 / std::log(2.0F));
}

TEST(softmax_mean, one_definition_of_the_merge) {
  // a kernel's own update, element by element, is the public combine
  const regroup::rescale<float> merge{1.5F, 4.25F};
  const fixed m;
  const auto both = m({1.5F, 2, {3, 4}}, {4.25F, 5, {6, 7}});
  EXPECT_TRUE(same(both, regroup::state_of<fixed>{merge.m, merge(2, 5), {merge(3, 6), merge(4, 7)}}));
}

TEST(softmax_mean, one_division_of_a_row_has_the_bits_of_each) {  // as a GPU divides
  std::mt19937 engine(7);
  const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
  const auto any = [&](std::uint32_t exponents) {  // a quarter of the significands near a power of two
    const std::uint32_t bits = random() & 0x7fffff, near = random() % 4 == 0 ? (random() % 2 == 0 ? ~0xfu : 0xfu) : 0;
    const std::uint32_t significand = (near == 0xfu ? bits & near : bits | near) & 0x7fffff;
    const std::uint32_t exponent = 127 - exponents + random() % (2 * exponents + 1);
    return std::bit_cast<float>(exponent << 23 | significand | (random() & 0x80000000u));
  };
  int divided = 0;
  for (int i = 0; i < 1 << 20; ++i) {
    const float l = std::abs(any(20));
    const pair o{any(50), i % 16 == 0 ? 0 : any(50)};
    pair at_once = o;
    divided += regroup::detail::divide_at_once(at_once, l) ? 1 : 0;
    ASSERT_TRUE(same(at_once, divide(o, l))) << o[0] << ", " << o[1] << " by " << l;
  }
  EXPECT_EQ(divided, 1 << 20);
  for (const float x : special_values<float>()) {
    for (const float l : special_values<float>()) {
      pair at_once{x, 1};
      if (!regroup::detail::divide_at_once(at_once, l)) at_once = divide(at_once, l);
      EXPECT_TRUE(same(at_once, divide(pair{x, 1}, l))) << x << " by " << l;
    }
  }
}
