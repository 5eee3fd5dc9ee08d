// SPDX-License-Identifier: Apache-2.0
// Claims about whole algorithms: safe softmax where the naive one breaks, three passes as two and as one, and FlashAttention
// and PagedAttention as this reduction, with a tile or a page of keys as the chunk.
#include <array>
#include <random>

#include "holds.hpp"
#include "regroup/algorithms/attention.hpp"
#include "regroup/algorithms/softmax.hpp"
#include "regroup/algorithms/softmax_baselines.hpp"

namespace regroup::laws {
namespace {

std::vector<float> normals(std::size_t n, unsigned seed, float scale) {
  std::mt19937 draw(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> xs(n);
  for (float& x : xs) x = normal(draw);
  return xs;
}

TEST(seeds_algorithms, claim_4_naive_softmax_breaks_in_fp16_and_safe_does_not) {
  const std::vector<float> large{15, 16, 17, 18};
  std::vector<float> naive(4);
  std::vector<float> safe(4);
  naive_softmax<float16>(large, naive);
  three_pass_softmax<float16>(large, safe);
  EXPECT_TRUE(std::isnan(naive[3]));  // infinite / infinite
  float total = 0;
  for (const float p : safe) total += p;
  EXPECT_NEAR(total, 1, 4 * 0x1p-11);
}

/// exp(x - lse) in long double, and each probability's bound: u [(1 + slope) (M - x) + 2 c + 3] + rel(s), times it.
TEST(seeds_algorithms, claim_5_three_passes_are_two) {
  const auto xs = normals(1024, 1, 4);
  std::vector<float> three(xs.size());
  std::vector<float> two(xs.size());
  std::vector<float> library(xs.size());
  three_pass_softmax<float>(xs, three);
  online_softmax<float>(xs, two);
  softmax(seq, view<const float>(xs.data(), {1024}), view<float>(library.data(), {1024}));

  using lse = log_sum_exp<float>;
  const auto weights = bound<lse>::weigh(std::span<const float>(xs), 1024);
  const auto highest = static_cast<long double>(*std::ranges::max_element(xs));
  const long double relative = weights.error / weights.sum;
  constexpr auto slope = static_cast<long double>(math::decay_slope<float>);
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const long double below = highest - static_cast<long double>(xs[i]);
    const long double p = std::exp(-below) / weights.sum;
    const long double allowed =
        1.01L * p * (0x1p-24L * ((1 + slope) * below + static_cast<long double>(math::exp_error<float>) + 2) + relative);
    for (const auto* y : {&three, &two, &library}) {
      ASSERT_LE(std::fabs(static_cast<long double>((*y)[i]) - p), allowed) << i;
    }
  }
  // And one pass for logsumexp: nothing is stored but (m, s).
  const float one = reduce(seq, xs, lse{});
  EXPECT_LE(std::fabs(static_cast<long double>(one) - (highest + std::log(weights.sum))),
            bound<lse>::answer(lse{}, std::span<const float>(xs), 1024)[0]);
}

/// Attention of made queries, keys and values, and the same as reduce with softmax_mean over the same float scores.
struct attention_case {
  static constexpr index queries = 5, n = 1000, d = 8, page = 16;
  std::vector<float> q = normals(queries * d, 1, 1);
  std::vector<float> k = normals(n * d, 2, 1);
  std::vector<float> v = normals(n * d, 3, 1);
  float scale = 0.5f;

  [[nodiscard]] view<const float> qs() const { return view<const float>(q.data(), {queries, d}); }
  [[nodiscard]] view<const float> ks() const { return view<const float>(k.data(), {n, d}); }
  [[nodiscard]] view<const float> vs() const { return view<const float>(v.data(), {n, d}); }

  using vector = fixed_vector<float, d>;
  using key = scored<float, vector>;
  [[nodiscard]] std::vector<key> keys_of(index query) const {
    std::vector<key> keys;
    for (index j = 0; j < n; ++j) {
      float score = 0;
      for (index c = 0; c < d; ++c) score = math::fma(qs()(query, c), ks()(j, c), score);
      keys.push_back({score * scale, vector::from(std::span(&v[static_cast<std::size_t>(j * d)], std::size_t{d}))});
    }
    return keys;
  }
  /// Both evaluations' bounds, and what the scores' own rounding does: each moves the weights by (d + 2) u |q| |k| scale.
  [[nodiscard]] std::vector<long double> allowed(index query) const {
    const auto keys = keys_of(query);
    using M = softmax_mean<float, vector>;
    errors e = bound<M>::answer(M{}, std::span<const key>(keys), n);
    long double longest = 0;
    for (index j = 0; j < n; ++j) {
      long double products = 0;
      for (index c = 0; c < d; ++c)
        products += std::fabs(static_cast<long double>(qs()(query, c)) * static_cast<long double>(ks()(j, c)));
      longest = std::fmax(longest, products);
    }
    long double largest = 0;
    for (const float x : v) largest = std::fmax(largest, std::fabs(static_cast<long double>(x)));
    for (long double& x : e)
      x = 2 * x + 2 * (d + 2) * 0x1p-24L * longest * static_cast<long double>(scale) * 2 * largest;
    return e;
  }
};

TEST(seeds_algorithms, claim_6_attention_is_the_reduction) {
  const attention_case c;
  std::vector<float> out(attention_case::queries * attention_case::d);
  const view<float> o(out.data(), {attention_case::queries, attention_case::d});
  attention(seq, c.qs(), dense(c.ks(), c.vs()), o, {.scale = static_cast<double>(c.scale)});
  for (index i = 0; i < attention_case::queries; ++i) {
    const auto expected = reduce(seq, c.keys_of(i), softmax_mean<float, attention_case::vector>{});
    const auto allowed = c.allowed(i);
    for (index k = 0; k < attention_case::d; ++k) {
      const auto at = static_cast<std::size_t>(k);
      ASSERT_LE(std::fabs(static_cast<long double>(o(i, k)) - static_cast<long double>(expected[at])), allowed[at]);
    }
  }
}

TEST(seeds_algorithms, claim_6_pages_are_chunks_scattered_in_memory) {
  const attention_case c;
  constexpr index pages = (attention_case::n + attention_case::page - 1) / attention_case::page;
  constexpr index each = attention_case::page * attention_case::d;
  std::vector<float> k_pool(static_cast<std::size_t>(pages * each));
  std::vector<float> v_pool(k_pool.size());
  std::vector<std::int64_t> table(static_cast<std::size_t>(pages));
  for (index p = 0; p < pages; ++p) {
    const index place = (p * 11 + 3) % pages;  // 11 and 63 have no common divisor
    table[static_cast<std::size_t>(p)] = place;
    const index count = std::min(each, attention_case::n * attention_case::d - p * each);
    std::copy_n(c.k.data() + p * each, count, k_pool.data() + place * each);
    std::copy_n(c.v.data() + p * each, count, v_pool.data() + place * each);
  }
  const auto pool = [&](const std::vector<float>& x) {
    return view<const float>(x.data(), {pages, 1, attention_case::page, attention_case::d});
  };
  const shape whole{1, 1, attention_case::queries, attention_case::d};
  const shape all_keys{1, 1, attention_case::n, attention_case::d};
  std::vector<float> dense_out(c.q.size());
  std::vector<float> paged_out(c.q.size());
  const view<const float> q(c.q.data(), whole);
  const std::vector<std::int64_t> lengths{attention_case::n};
  const view<const std::int64_t> page_table(table.data(), {1, pages});
  attention(seq, q, dense(view<const float>(c.k.data(), all_keys), view<const float>(c.v.data(), all_keys)),
            view<float>(dense_out.data(), whole));
  attention(par, q, paged(pool(k_pool), pool(v_pool), page_table, lengths), view<float>(paged_out.data(), whole));
  EXPECT_TRUE(bitwise{}(dense_out, paged_out));
}

}  // namespace
}  // namespace regroup::laws
