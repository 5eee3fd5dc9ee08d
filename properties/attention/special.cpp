// SPDX-License-Identifier: Apache-2.0
// Special values: hidden keys that hold NaN or infinity, queries that see nothing, infinite scores, empty extents.
#include "reference.hpp"

namespace {

using cases::attend;
using cases::index;
using cases::tensor;
using regroup::causal;
using regroup::dense;
using regroup::par;
using regroup::view;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr index heads = 2, queries = 40, keys = 1200, d = 8, dv = 9;

struct problem {
  tensor<float> q = cases::normal<float>({heads, queries, d}, 1);
  tensor<float> k = cases::normal<float>({heads, keys, d}, 2);
  tensor<float> v = cases::normal<float>({heads, keys, dv}, 3);
  [[nodiscard]] auto answer(const regroup::attention_mask& mask = {}) const {
    return attend<float>(par, q.view(), dense(k.view(), v.view()), {.mask = mask});
  }
};

/// Writes `value` to some or all elements of key j.
void spoil(problem& p, index j, float value, bool keys_too) {
  for (index h = 0; h < heads; ++h) {
    for (index c = 0; c < dv; c += 4) p.v.view()(h, j, c) = value;
    for (index c = 0; keys_too && c < d; ++c) p.k.view()(h, j, c) = value;
  }
}

TEST(attention_special, a_hidden_key_is_the_identity_whatever_it_holds) {
  std::vector<char> seen(keys, 1);
  std::vector<float> bias(keys, 0.0f);
  for (const index j : {0, 3, 64, 700, 1023, 1024, 1199}) {
    seen[static_cast<std::size_t>(j)] = 0;
    bias[static_cast<std::size_t>(j)] = -infinity;
  }
  const problem clean;
  const auto through_boolean = clean.answer(regroup::boolean(seen));
  EXPECT_TRUE(same_bits(through_boolean, clean.answer(regroup::additive(bias))));
  for (const float value : {not_a_number, infinity, -infinity, 3e38f}) {
    for (const bool keys_too : {false, true}) {
      problem spoilt;
      for (const index j : {0, 3, 64, 700, 1023, 1024, 1199}) spoil(spoilt, j, value, keys_too);
      EXPECT_TRUE(same_bits(through_boolean, spoilt.answer(regroup::boolean(seen)))) << value;
      EXPECT_TRUE(same_bits(through_boolean, spoilt.answer(regroup::additive(bias)))) << value;
      const auto own = [&](auto score, index, index, index, index key) {
        return seen[static_cast<std::size_t>(key)] ? score : regroup::hidden;
      };
      EXPECT_TRUE(same_bits(through_boolean, spoilt.answer(own))) << value;
    }
  }
}

TEST(attention_special, causal_hides_what_later_keys_hold) {
  const problem clean;
  const auto wanted = clean.answer(causal{});
  problem spoilt;
  spoil(spoilt, keys - 3, not_a_number, true);
  spoil(spoilt, keys - 2, infinity, false);
  const auto got = spoilt.answer(causal{});
  for (index h = 0; h < heads; ++h) {
    for (index i = 0; i < queries; ++i) {
      const bool sees = i >= queries - 3;
      EXPECT_EQ(cases::bits(got.lse.view()(h, i)),
                sees ? cases::bits(not_a_number) : cases::bits(wanted.lse.view()(h, i)))
          << i;
      for (index c = 0; c < dv; ++c) {
        const float x = got.out.view()(h, i, c);
        EXPECT_EQ(cases::bits(x), sees ? cases::bits(not_a_number) : cases::bits(wanted.out.view()(h, i, c))) << i;
      }
    }
  }
}

TEST(attention_special, lengths_end_what_is_read) {
  const problem clean;
  problem spoilt;
  for (index j = 1000; j < keys; ++j) spoil(spoilt, j, not_a_number, true);
  const std::vector<int> lengths = {1000};
  EXPECT_TRUE(same_bits(
      attend<float>(par, clean.q.view(), dense(clean.k.view(), clean.v.view(), lengths), {.mask = causal{}}),
      attend<float>(par, spoilt.q.view(), dense(spoilt.k.view(), spoilt.v.view(), lengths), {.mask = causal{}})));
}

TEST(attention_special, nan_stays_in_the_queries_that_see_it) {
  const problem clean;
  const auto wanted = clean.answer();
  problem spoilt;
  spoilt.q.view()(1, 5, 2) = not_a_number;
  spoilt.v.view()(0, 77, 3) = not_a_number;  // one column of one head
  const auto got = spoilt.answer();
  for (index h = 0; h < heads; ++h) {
    for (index i = 0; i < queries; ++i) {
      for (index c = 0; c < dv; ++c) {
        const bool spoils = (h == 1 && i == 5) || (h == 0 && c == 3);
        EXPECT_EQ(cases::bits(got.out.view()(h, i, c)),
                  cases::bits(spoils ? not_a_number : wanted.out.view()(h, i, c)));
      }
      EXPECT_EQ(cases::bits(got.lse.view()(h, i)),
                cases::bits(h == 1 && i == 5 ? not_a_number : wanted.lse.view()(h, i)));
    }
  }
}

TEST(attention_special, no_visible_key) {
  problem p;
  spoil(p, 0, not_a_number, true);
  const auto nothing = p.answer([](auto, index, index, index, index) { return float{regroup::hidden}; });
  for (const float x : nothing.out.values) EXPECT_EQ(cases::bits(x), cases::bits(0.0f));
  for (const float x : nothing.lse.values) EXPECT_EQ(x, -infinity);
  tensor<float> out({heads, queries, dv});
  std::fill(out.values.begin(), out.values.end(), 7.0f);
  const std::vector<int> no_length = {0};
  regroup::attention(par, p.q.view(), dense(p.k.view(), p.v.view(), no_length), out.view());
  for (const float x : out.values) EXPECT_EQ(cases::bits(x), cases::bits(0.0f));
}

TEST(attention_special, infinite_scores) {
  problem p;
  for (index c = 0; c < d; ++c) p.q.view()(0, 0, c) = 1;
  spoil(p, 9, infinity, false);
  p.k.view()(0, 100, 0) = infinity;   // a score of +inf for query (0, 0)
  p.k.view()(1, 100, 0) = -infinity;  // -inf: the identity, for those whose q is positive there
  p.v = cases::normal<float>({heads, keys, dv}, 3);
  p.v.view()(1, 100, 0) = not_a_number;
  for (index i = 0; i < queries; ++i) p.q.view()(1, i, 0) = 1;
  const auto got = p.answer();
  EXPECT_EQ(got.lse.view()(0, 0), infinity);
  for (index c = 0; c < dv; ++c) EXPECT_TRUE(std::isnan(got.out.view()(0, 0, c)));
  const problem clean;
  problem without = p;
  for (index c = 0; c < dv; ++c) without.v.view()(1, 100, c) = 0;
  const auto hides =
      without.answer([](auto s, index, index h, index, index j) { return h == 1 && j == 100 ? regroup::hidden : s; });
  EXPECT_TRUE(cases::same_bits<float>(got.out.view()[1], hides.out.view()[1]));
  problem all = clean;  // every key's score +inf
  for (float& x : all.k.values) x = infinity;
  for (float& x : all.q.values) x = 1;
  const auto infinite = all.answer();
  for (const float x : infinite.lse.values) EXPECT_EQ(x, infinity);
  for (const float x : infinite.out.values) EXPECT_TRUE(std::isnan(x));
}

TEST(attention_special, empty_extents) {
  const auto run = [](const regroup::shape& q, const regroup::shape& k, index value_length) {
    regroup::shape v = k;
    v[v.size() - 1] = value_length;
    const auto queries_ = cases::normal<float>(q, 1), keys_ = cases::normal<float>(k, 2),
               values_ = cases::normal<float>(v, 3);
    return attend<float>(par, queries_.view(), dense(keys_.view(), values_.view()), {.mask = causal{}});
  };
  const auto no_keys = run({2, 3, 4}, {2, 0, 4}, 5);
  for (const float x : no_keys.out.values) EXPECT_EQ(cases::bits(x), cases::bits(0.0f));
  for (const float x : no_keys.lse.values) EXPECT_EQ(x, -infinity);
  EXPECT_TRUE(run({2, 0, 4}, {2, 7, 4}, 5).out.values.empty());
  EXPECT_TRUE(run({0, 2, 3, 4}, {0, 2, 7, 4}, 5).out.values.empty());
  EXPECT_TRUE(run({0, 3, 4}, {0, 7, 4}, 5).out.values.empty());
  EXPECT_TRUE(run({0, 3, 4}, {2, 7, 4}, 5).out.values.empty());
  const auto no_values = run({1, 3, 4}, {1, 7, 4}, 0);
  EXPECT_TRUE(no_values.out.values.empty());
  for (const float x : no_values.lse.values) EXPECT_TRUE(std::isfinite(x));
  const auto no_channels = run({1, 1, 0}, {1, 8, 0}, 2);  // every score is 0
  EXPECT_FLOAT_EQ(no_channels.lse.values[0], std::log(8.0f));
}

/// The worst error, in parts of what rounding may do.
double worst_of(const problem& p) {
  const auto got = p.answer();
  cases::worst_ratio worst;
  for (index h = 0; h < heads; ++h) {
    for (index i = 0; i < queries; ++i) {
      const auto seen = cases::keys_of(p.q.view()[h][i], p.k.view()[h], p.v.view()[h], 1 / std::sqrt(8.0L),
                                       [](index, const auto&) { return true; });
      const index row = h * queries + i;
      worst.add(cases::define(seen, d, dv, 0x1p-24, 0x1p-24), got.out.values.data() + row * dv,
                got.lse.values[static_cast<std::size_t>(row)]);
    }
  }
  return worst.ratio;
}

TEST(attention_special, huge_and_tiny_scores) {
  problem p;
  for (float& x : p.q.values) x *= 1e4f;
  EXPECT_LE(worst_of(p), 1);
  for (float& x : p.q.values) x *= 1e-44f;  // denormal
  EXPECT_LE(worst_of(p), 1);
}

}  // namespace
