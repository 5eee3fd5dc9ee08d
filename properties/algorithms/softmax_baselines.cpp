// SPDX-License-Identifier: Apache-2.0
// The textbook claims about softmax: where the naive version overflows and the safe ones do not; that any chunking, any order
// of chunks and any number of workers give the same answer; the worked numbers.
#include "regroup/algorithms/softmax_baselines.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "regroup/monoids/log_sum_exp.hpp"
#include "softmax_reference.hpp"

namespace properties {
namespace {

using regroup::float16;
using lse = regroup::log_sum_exp<float>;

bool any_nan(const auto& y) {
  return std::ranges::any_of(y, [](const auto& e) { return regroup::widen(e) != regroup::widen(e); });
}

/// The state of a chunk.
lse::state state_of_chunk(const std::vector<float>& x, std::size_t first, std::size_t last) {
  lse::state s = lse{}.identity();
  for (std::size_t i = first; i < last; ++i) s = lse{}(s, lse{}.lift(x[i]));
  return s;
}

}  // namespace

TEST(softmax_baselines, naive_overflows_in_fp16_above_11_and_in_fp32_above_88) {
  for (const float x : {10.0f, 11.0f, 12.0f}) {
    std::vector<float16> in = {float16(x), float16(0.0f)};
    std::vector<float16> y(2);
    regroup::naive_softmax<float16>(in, y);
    EXPECT_EQ(any_nan(y), x > 11.5f) << x;
    regroup::three_pass_softmax<float16>(in, y);
    EXPECT_EQ(y[0], 1) << x;
    regroup::online_softmax<float16>(in, y);
    EXPECT_EQ(y[0], 1) << x;
  }
  for (const float x : {88.0f, 89.0f}) {
    std::vector<float> in = {x, 0};
    std::vector<float> y(2);
    regroup::naive_softmax<float>(in, y);
    EXPECT_EQ(any_nan(y), x > 88.5f) << x;
    regroup::three_pass_softmax<float>(in, y);
    EXPECT_EQ(y[0], 1) << x;
  }
}

/// No single exp overflows here; their sum passes 65504.
TEST(softmax_baselines, naive_fp16_sum_overflows) {
  std::vector<float16> in(4, float16(10.5f));
  std::vector<float16> y(4);
  regroup::naive_softmax<float16>(in, y);
  EXPECT_EQ(y[0], 0);  // e / infinity
  regroup::three_pass_softmax<float16>(in, y);
  EXPECT_EQ(y[0], 0.25f);
  regroup::softmax(regroup::seq, in, y);
  EXPECT_EQ(y[0], 0.25f);
}

TEST(softmax_baselines, all_ways_agree_within_a_chain_of_roundings) {
  for (int kind = 0; kind < kinds; ++kind) {
    const auto x = as<float>(row_of_kind(kind, 1024, 2));
    const softmax_reference<float> reference(x);
    std::vector<float> naive(x.size()), three(x.size()), online(x.size()), ours(x.size());
    regroup::naive_softmax<float>(x, naive);
    regroup::three_pass_softmax<float>(x, three);
    regroup::online_softmax<float>(x, online);
    regroup::softmax(regroup::seq, x, ours);
    for (std::size_t j = 0; j < x.size(); ++j) {
      // A left fold of n elements: n combines, and for the online one a rescale each, at worst.
      const long double chain = reference.probability(j) * unit<float> * 1024 * (1 + regroup::math::exp_error<float>);
      const long double bound = reference.probability_bound<float>(j) + chain;
      EXPECT_LE(std::fabs(static_cast<long double>(three[j]) - reference.probability(j)), bound) << kind;
      EXPECT_LE(std::fabs(static_cast<long double>(online[j]) - reference.probability(j)), bound) << kind;
      if (kind == 0) {
        EXPECT_LE(std::fabs(static_cast<long double>(naive[j]) - reference.probability(j)), bound);
      }
    }
  }
}

TEST(softmax_baselines, in_place_views_and_special_values) {
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> x = {-inf, 1, 2};
  regroup::online_softmax<float>(x, x);
  EXPECT_EQ(x[0], 0);
  EXPECT_FLOAT_EQ(x[1] + x[2], 1);
  std::vector<float> strided = {1, 9, 2, 9, 3, 9};
  regroup::three_pass_softmax<float>(regroup::view<const float>(strided.data(), {3}, {2}),
                                     regroup::view<float>(strided.data(), {3}, {2}));
  EXPECT_FLOAT_EQ(strided[0] + strided[2] + strided[4], 1);
  EXPECT_EQ(strided[1], 9);
  std::vector<float> two(2);
  EXPECT_THROW(regroup::naive_softmax<float>(x, two), regroup::shape_error);
}

/// Block sizes of 1 to 1024 over 1024 logits, forwards, backwards, and on P workers: within the bound of any two trees.
TEST(softmax_claims, any_chunking_any_order_any_workers) {
  const auto x = as<float>(row_of_kind(1, 1024, 7));
  const softmax_reference<float> reference(x);
  // Any tree of 1024 leaves: at most 1024 combines and 1024 rescales on a path.
  const long double any_tree = unit<float> * 1024 * (1 + regroup::math::exp_error<float>);
  const auto holds = [&](const lse::state& s) {
    EXPECT_EQ(s.m, reference.m);
    EXPECT_LE(std::fabs(static_cast<long double>(s.s) - reference.s) / reference.s, reference.s_bound + any_tree);
    long double total = 0;
    for (const float e : x) total += static_cast<long double>(regroup::math::exp(e - s.m) / s.s);
    EXPECT_NEAR(static_cast<double>(total), 1.0, static_cast<double>(reference.s_bound + any_tree + unit<float> * 200));
  };
  for (const std::size_t block : {1u, 2u, 8u, 32u, 128u, 512u, 1024u}) {
    std::vector<lse::state> chunks;
    for (std::size_t first = 0; first < 1024; first += block) chunks.push_back(state_of_chunk(x, first, first + block));
    holds(std::accumulate(chunks.begin(), chunks.end(), lse{}.identity(), lse{}));
    holds(std::accumulate(chunks.rbegin(), chunks.rend(), lse{}.identity(), lse{}));
    for (const std::size_t workers : {2u, 3u, 7u}) {
      std::vector<lse::state> parts(workers, lse{}.identity());
      for (std::size_t c = 0; c < chunks.size(); ++c) parts[c % workers] = lse{}(parts[c % workers], chunks[c]);
      holds(std::accumulate(parts.begin(), parts.end(), lse{}.identity(), lse{}));
    }
  }
}

TEST(softmax_claims, worked_numbers) {
  const auto chunk = [](std::vector<float> x) { return state_of_chunk(x, 0, x.size()); };
  // X = [1, 2, 3 | 6, 2, 1]
  const lse::state one = chunk({1, 2, 3});
  EXPECT_EQ(one.m, 3);
  EXPECT_NEAR(one.s, 1.5032, 5e-5);
  const lse::state both = lse{}(one, chunk({6, 2, 1}));
  EXPECT_EQ(both.m, 6);
  EXPECT_NEAR(both.s, 1.0999, 5e-4);  // the published 1.0999 is cut, not rounded
  // [1, 2, 3] and [4, 5]
  const lse::state right = chunk({4, 5});
  EXPECT_NEAR(one.s, 1.503, 5e-4);
  EXPECT_NEAR(right.s, 1.368, 5e-4);
  const lse::state merged = lse{}(one, right);
  EXPECT_EQ(merged.m, 5);
  EXPECT_NEAR(merged.s, 1.572, 1e-3);        // published from rounded terms; 1.5713
  EXPECT_NEAR(one.s + right.s, 2.87, 5e-3);  // without the correction: wrong
  // [1, 2] then [3, 10]
  const lse::state first = chunk({1, 2});
  EXPECT_NEAR(first.s, 1.368, 5e-4);
  EXPECT_NEAR(regroup::math::exp(-8.0), 3.35e-4, 5e-7);
  const lse::state second = lse{}(first, chunk({3, 10}));
  EXPECT_EQ(second.m, 10);
  EXPECT_NEAR(second.s, 1.00137, 5e-6);
}

/// Rescaling by alpha may underflow to 0: right in the limit, and nothing breaks.
TEST(softmax_claims, a_correction_may_underflow) {
  const lse::state s = lse{}(state_of_chunk({-1000, -1000}, 0, 2), state_of_chunk({0}, 0, 1));
  EXPECT_EQ(s.m, 0);
  EXPECT_EQ(s.s, 1);
}

}  // namespace properties
