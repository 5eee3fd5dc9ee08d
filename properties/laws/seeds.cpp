// SPDX-License-Identifier: Apache-2.0
// The claims and worked numbers of online softmax, FlashAttention and the essays about them, each as a test: the
// recurrence in its three forms and both normalisations, any chunking, any order, any workers, no overflow, the average.
#include <algorithm>
#include <array>
#include <numeric>
#include <random>

#include "holds.hpp"

namespace regroup::laws {
namespace {

using lse = log_sum_exp<float>;
using attend = softmax_mean<float, fixed_vector<float, 1>>;
using key = scored<float, std::array<float, 1>>;

std::vector<float> logits(std::size_t n, unsigned seed = 1) {
  std::mt19937 draw(seed);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> xs(n);
  for (float& x : xs) x = normal(draw);
  return xs;
}
std::vector<key> keys(std::size_t n, unsigned seed = 1) {
  const auto scores = logits(n, seed);
  const auto values = logits(n, seed + 1);
  std::vector<key> all;
  for (std::size_t i = 0; i < n; ++i) all.push_back({scores[i], {values[i]}});
  return all;
}
long double exact_lse(std::span<const float> xs) {
  const auto highest = static_cast<long double>(*std::ranges::max_element(xs));
  long double sum = 0;
  for (const float x : xs) sum += std::exp(static_cast<long double>(x) - highest);
  return highest + std::log(sum);
}
long double exact_attention(std::span<const key> ks) {
  long double highest = -INFINITY;
  for (const key& k : ks) highest = std::max(highest, static_cast<long double>(k.score));
  long double l = 0;
  long double o = 0;
  for (const key& k : ks) {
    const long double w = std::exp(static_cast<long double>(k.score) - highest);
    l += w;
    o += w * static_cast<long double>(k.value[0]);
  }
  return o / l;
}
long double allowed_lse(std::span<const float> xs) {
  return bound<lse>::answer(lse{}, xs, static_cast<index>(xs.size()))[0];
}
long double allowed_attention(std::span<const key> ks) {
  return bound<attend>::answer(attend{}, ks, static_cast<index>(ks.size()) + 1)[0];
}
long double apart(float a, long double b) { return std::fabs(static_cast<long double>(a) - b); }

template <class M, class X>
std::vector<state_of<M>> chunk_states(const M& m, std::span<const X> xs, std::size_t size) {
  std::vector<state_of<M>> states;
  for (std::size_t i = 0; i < xs.size(); i += size) {
    accumulator<M, X> chunk{m};
    chunk.push(xs.subspan(i, std::min(size, xs.size() - i)));
    states.push_back(chunk.current());
  }
  return states;
}
template <class M>
auto merged(const M& m, const std::vector<state_of<M>>& states) {
  return regroup::lower(m, fold(m, std::span<const state_of<M>>(states)));
}

// The recurrence. ------------------------------------------------------------------------------------------------

/// m, l, O, a chunk at a time with one rescale a chunk, as the papers write it.
struct recurrence {
  float m = -INFINITY;
  float l = 0;
  float o = 0;
  void arrive(std::span<const key> chunk) {
    float highest = m;
    for (const key& k : chunk) highest = math::max(highest, k.score);
    const float alpha = m == highest ? 1 : math::exp(m - highest);
    l *= alpha;
    o *= alpha;
    for (const key& k : chunk) {
      const float w = math::exp(k.score - highest);
      l += w;
      o = math::fma(w, k.value[0], o);
    }
    m = highest;
  }
};

/// O carried normalised: o' = (l exp(m - m') o + exp(mt - m') sum exp(x - mt) v) / l'.
struct normalised {
  float m = -INFINITY;
  float l = 0;
  float o = 0;
  void arrive(std::span<const key> chunk) {
    float own = -INFINITY;
    for (const key& k : chunk) own = math::max(own, k.score);
    float l_own = 0;
    float o_own = 0;
    for (const key& k : chunk) {
      const float w = math::exp(k.score - own);
      l_own += w;
      o_own = math::fma(w, k.value[0], o_own);
    }
    const float highest = math::max(m, own);
    const float of_old = m == highest ? 1 : math::exp(m - highest);
    const float of_new = own == highest ? 1 : math::exp(own - highest);
    const float l_next = of_old * l + of_new * l_own;
    o = (l * of_old * o + of_new * o_own) / l_next;
    l = l_next;
    m = highest;
  }
};

TEST(seeds, element_tile_and_pair_agree) {
  const auto ks = keys(1000);
  const std::span<const key> all(ks);
  const long double exact = exact_attention(all);
  const long double allowed = allowed_attention(all);
  const attend m;

  recurrence element;
  for (std::size_t i = 0; i < ks.size(); ++i) element.arrive(all.subspan(i, 1));
  EXPECT_LE(apart(element.o / element.l, exact), allowed);

  recurrence tile;
  normalised carried;
  for (std::size_t i = 0; i < ks.size(); i += 64) {
    const auto chunk = all.subspan(i, std::min<std::size_t>(64, ks.size() - i));
    tile.arrive(chunk);
    carried.arrive(chunk);
  }
  EXPECT_LE(apart(tile.o / tile.l, exact), allowed);
  // Two more roundings a chunk than the unnormalised form, multiply and add apart and a division, of |o| <= max |v|.
  float largest = 0;
  for (const key& k : ks) largest = std::max(largest, std::fabs(k.value[0]));
  EXPECT_LE(apart(carried.o, exact), allowed + 16 * 6 * 0x1p-24L * static_cast<long double>(largest));

  const auto states = lift_all(m, all);
  EXPECT_LE(apart(regroup::lower(m, fold(m, states.all(), {2}))[0], exact), allowed);     // pairwise
  EXPECT_LE(apart(regroup::lower(m, fold(m, states.all()))[0], exact), allowed);          // one by one
  EXPECT_LE(apart(merged(m, chunk_states<attend, key>(m, all, 64))[0], exact), allowed);  // tiles
  EXPECT_LE(apart(reduce(seq, ks, m)[0], exact), allowed);
}

/// The recurrence one element at a time is the monoid's left fold, not only near it.
TEST(seeds, the_recurrence_is_the_monoid) {
  const auto ks = keys(500, 7);
  const attend m;
  recurrence online, sizes;  // of |O|, that is of the sum of its terms' sizes
  auto state = m.identity();
  long double arrived = 0;
  for (const key& k : ks) {
    const key size{k.score, {std::abs(k.value[0])}};
    online.arrive(std::span<const key>(&k, 1));
    sizes.arrive(std::span<const key>(&size, 1));
    state = m(state, m.lift(k));
    ASSERT_EQ(online.m, state.m);
    const long double allowed = 4 * 0x1p-24L * ++arrived;  // either rounds a sum twice at each later term
    ASSERT_LE(apart(online.l, static_cast<long double>(state.l)), allowed * static_cast<long double>(online.l));
    ASSERT_LE(apart(online.o, static_cast<long double>(state.o[0])), allowed * static_cast<long double>(sizes.o));
  }
}

/// alpha may underflow to 0: right in the limit, and nothing breaks.
TEST(seeds, alpha_underflows) {
  recurrence online;
  const std::array<key, 2> ks{key{-1000, {5}}, key{1000, {7}}};
  for (const key& k : ks) online.arrive(std::span<const key>(&k, 1));
  EXPECT_EQ(online.o / online.l, 7);
  EXPECT_EQ(reduce(seq, ks, attend{})[0], 7);
}

TEST(seeds, max_and_scaled_sum_are_a_commutative_monoid) {
  EXPECT_TRUE(holds(check_laws<float>(lse{}, algebra_options{.cases = few, .strict = true})));
  EXPECT_TRUE(holds(check_laws<key>(attend{}, algebra_options{.cases = few, .strict = true})));
  EXPECT_TRUE(bitwise{}(lse{}.identity(), lse::state{-INFINITY, 0}));
}

// The claims. ----------------------------------------------------------------------------------------------------

TEST(seeds, claim_1_any_chunking) {
  const auto xs = logits(1024);
  const long double exact = exact_lse(xs);
  for (const std::size_t size : {1u, 2u, 8u, 32u, 128u, 512u, 1024u}) {
    const float found = merged(lse{}, chunk_states<lse, float>({}, xs, size));
    EXPECT_LE(apart(found, exact), allowed_lse(xs)) << size;
    EXPECT_LE(apart(found, exact), 7.15e-07L * 4) << size;  // the published worst, at logits a few times smaller
    double total = 0;
    for (const float x : xs) total += static_cast<double>(math::exp(x - found));
    EXPECT_NEAR(total, 1.0, 2e-6) << size;  // published: 1.000000 to 1.000001
  }
}

TEST(seeds, claim_2_any_order) {
  const auto xs = logits(1000, 3);
  auto states = chunk_states<lse, float>({}, xs, 37);
  const long double exact = exact_lse(xs);
  std::ranges::reverse(states);
  EXPECT_LE(apart(merged(lse{}, states), exact), allowed_lse(xs));
  std::mt19937 draw(5);
  for (int i = 0; i < 20; ++i) {
    std::ranges::shuffle(states, draw);
    EXPECT_LE(apart(merged(lse{}, states), exact), allowed_lse(xs));
  }
}

TEST(seeds, claim_3_any_workers_and_any_tree) {
  const auto xs = logits(10000, 4);
  const long double exact = exact_lse(xs);
  for (const std::size_t workers : {1u, 2u, 3u, 7u, 16u, 100u}) {
    const auto states = chunk_states<lse, float>({}, xs, (xs.size() + workers - 1) / workers);
    for (const std::uint64_t tree : {0u, 1u, 2u, 77u}) {
      const auto state = fold(lse{}, std::span<const lse::state>(states), {tree});
      EXPECT_LE(apart(lse{}.lower(state), exact), allowed_lse(xs)) << workers;
    }
  }
  const float one = reduce(par.with_threads(1), xs, lse{});
  for (const int threads : {2, 3, 7}) EXPECT_EQ(reduce(par.with_threads(threads), xs, lse{}), one);
}

TEST(seeds, claim_4_no_overflow_in_16_bits) {
  const std::vector<float16> xs(100, float16(60000.0f));
  EXPECT_TRUE(std::isinf(static_cast<float>(float16(math::exp(11.2f)))));  // exp overflows fp16 above about 11
  EXPECT_FALSE(std::isinf(static_cast<float>(float16(math::exp(11.0f)))));
  EXPECT_TRUE(std::isinf(math::exp(89.0f)));  // and fp32 above about 88
  EXPECT_FALSE(std::isinf(math::exp(88.0f)));
  const float found = reduce(seq, xs, lse{});
  EXPECT_NEAR(found, 60000 + std::log(100.0), 0.004);
  float16 naive(0.0f);  // 8 logits of 10 sum to 176,211, past 65504
  for (int i = 0; i < 8; ++i) naive = float16(naive + static_cast<float>(float16(math::exp(10.0f))));
  EXPECT_TRUE(std::isinf(static_cast<float>(naive)));
  EXPECT_TRUE(std::isnan(static_cast<float>(naive) / static_cast<float>(naive)));
  EXPECT_NEAR(reduce(seq, std::vector<float16>(8, float16(10.0f)), lse{}), 10 + std::log(8.0), 1e-5);
}

double median(std::vector<double> xs) {
  std::ranges::sort(xs);
  const std::size_t half = xs.size() / 2;
  return xs.size() % 2 == 1 ? xs[half] : (xs[half - 1] + xs[half]) / 2;
}
struct middle_of_medians {
  static constexpr bool is_commutative = true;
  double identity() const { return 0; }
  double operator()(double a, double b) const { return (a + b) / 2; }
};
TEST(seeds, claim_7_the_median_has_no_such_state) {
  EXPECT_EQ(median({1, 2, 3}), 2);
  EXPECT_EQ(median({4, 5, 6}), 5);
  EXPECT_EQ(median({1, 2, 3, 4, 5, 6}), 3.5);
  EXPECT_EQ(median({1, 2, 9}), 2);  // the same two medians of other pieces
  EXPECT_EQ(median({1, 2, 9, 4, 5, 6}), 4.5);
  EXPECT_TRUE(is_rejected(check_laws(middle_of_medians{}, algebra_options{.cases = few})));
}

// The worked numbers. --------------------------------------------------------------------------------------------

TEST(seeds, two_chunks_of_two) {
  const std::array<key, 4> ks{key{1, {1}}, key{2, {1}}, key{3, {1}}, key{10, {1}}};
  const std::span<const key> all(ks);
  recurrence online;
  online.arrive(all.first(2));
  EXPECT_EQ(online.m, 2);
  EXPECT_NEAR(online.l, 1.368, 5e-4);
  EXPECT_EQ(online.l, online.o);
  EXPECT_NEAR(math::exp(-8.0f), 3.35e-4, 5e-7);
  online.arrive(all.subspan(2));
  EXPECT_EQ(online.m, 10);
  EXPECT_NEAR(online.l, 1.00137, 5e-5 / 10);
  EXPECT_EQ(online.o / online.l, 1);

  const attend m;
  const auto states = chunk_states<attend, key>(m, all, 2);
  EXPECT_EQ(states[0].m, 2);
  EXPECT_NEAR(states[0].l, 1.368, 5e-4);
  EXPECT_NEAR(m(states[0], states[1]).l, 1.00137, 5e-6);
  EXPECT_EQ(merged(m, states)[0], 1);
}

TEST(seeds, two_keys) {
  const std::array<key, 2> ks{key{0, {2}}, key{5, {3}}};
  const double expected = (2 * std::exp(-5.0) + 3) / (std::exp(-5.0) + 1);
  EXPECT_LE(apart(reduce(seq, ks, attend{})[0], expected), allowed_attention(ks));
}

TEST(seeds, tiles_of_three) {
  const std::array<float, 6> xs{1, 2, 3, 6, 2, 1};
  const auto states = chunk_states<lse, float>({}, xs, 3);
  EXPECT_EQ(states[0].m, 3);
  EXPECT_NEAR(states[0].s, 1.5032, 5e-5);
  const auto both = lse{}(states[0], states[1]);
  EXPECT_EQ(both.m, 6);
  EXPECT_NEAR(both.s, 1.0999, 5e-5);
}

TEST(seeds, combined_with_and_without_the_correction) {
  const std::array<float, 5> xs{1, 2, 3, 4, 5};
  const std::span<const float> all(xs);
  const auto left = fold(lse{}, lift_all(lse{}, all.first(3)).all());
  const auto right = fold(lse{}, lift_all(lse{}, all.subspan(3)).all());
  EXPECT_EQ(left.m, 3);
  EXPECT_NEAR(left.s, 1.503, 5e-4);
  EXPECT_EQ(right.m, 5);
  EXPECT_NEAR(right.s, 1.368, 5e-4);
  const auto both = lse{}(left, right);
  EXPECT_EQ(both.m, 5);
  EXPECT_NEAR(both.s, 1.572, 1e-3);           // 1.5715
  EXPECT_NEAR(left.s + right.s, 2.87, 5e-3);  // without the correction: wrong
  EXPECT_GT(left.s + right.s, both.s + 1);
}

TEST(seeds, the_average) {
  using average = mean<double>;
  const average::state first{1234567, 500000000};
  const average::state second{2345678, 500000000};
  const auto both = average{}(first, second);
  EXPECT_EQ(both.sum, 3580245);
  EXPECT_EQ(both.count, 1000000000);
  EXPECT_EQ(average{}.lower(both), 3580245.0 / 1e9);
}

}  // namespace
}  // namespace regroup::laws
