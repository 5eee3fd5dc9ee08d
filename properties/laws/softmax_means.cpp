// SPDX-License-Identifier: Apache-2.0
// Attention's monoid (m, l, O), O of a fixed and of a run-time dimension: its laws, linearity in V, and every output in
// the hull of its column of V.
#include <array>

#include "holds.hpp"

namespace regroup::laws {
namespace {

template <class Real, std::size_t D>
using key = scored<Real, std::array<Real, D>>;

/// softmax(scores) V in long double; scores and values finite, or hidden keys.
template <class Real, std::size_t D>
struct long_softmax_mean {
  struct answer {
    std::array<double, D> values;
  };
  answer operator()(std::span<const key<Real, D>> keys) const {
    long double highest = -std::numeric_limits<long double>::infinity();
    for (const auto& k : keys) highest = std::fmax(highest, static_cast<long double>(k.score));
    answer o{};
    for (std::size_t column = 0; column < D; ++column) {
      long double l = 0;
      long double sum = 0;
      for (const auto& k : keys) {
        if (std::isinf(k.score)) continue;
        const long double w = std::exp(static_cast<long double>(k.score) - highest);
        l += w;
        sum += w * static_cast<long double>(k.value[column]);
      }
      o.values[column] = l == 0 ? 0 : static_cast<double>(sum / l);
    }
    return o;
  }
};

template <class Real>
struct tame_key {
  key<Real, 2> operator()(choices& from) const {
    const reals<Real> number{-100, 100};
    const Real score = from.flag() && from.special() ? -std::numeric_limits<Real>::infinity() : number(from);
    const Real first = number(from);
    return {score, {first, number(from)}};
  }
};

template <class Real>
using pairs = softmax_mean<Real, fixed_vector<Real, 2>>;

TEST(softmax_means, fixed_dimension) {
  EXPECT_TRUE(holds(check_laws<key<float, 2>>(pairs<float>{}, strictly())));
  EXPECT_TRUE(holds(check_laws<key<double, 2>>(pairs<double>{}, strictly())));
}
TEST(softmax_means, run_time_dimension) {
  EXPECT_TRUE(holds(check_laws<key<float, 3>>(softmax_mean<float>{.d = 3}, strictly())));
}
TEST(softmax_means, are_softmax_times_values) {
  EXPECT_TRUE(holds(check_laws(pairs<float>{}, tame_key<float>{}, strictly(), long_softmax_mean<float, 2>{})));
  EXPECT_TRUE(holds(check_laws(pairs<double>{}, tame_key<double>{}, strictly(), long_softmax_mean<double, 2>{})));
}

/// Keys of made scores, and values `v(i)`.
template <class V>
std::vector<key<float, 2>> keys_with(std::uint64_t seed, const V& v) {
  std::vector<key<float, 2>> keys;
  for (std::uint64_t i = 0; i < 1 + seed % 50; ++i) {
    const float score = static_cast<float>(mix(seed * 64 + i) % 2000) / 50.0f;
    keys.push_back({score, v(i)});
  }
  return keys;
}
std::array<float, 2> some_value(std::uint64_t word) {
  return {static_cast<float>(mix(word) % 1000) / 100.0f - 5, static_cast<float>(mix(word + 7) % 1000) / 100.0f - 5};
}

TEST(softmax_means, stay_in_the_hull_of_their_column) {
  const pairs<float> m;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto keys = keys_with(seed, [&](std::uint64_t i) { return some_value(seed + i); });
    const auto allowed = bound<pairs<float>>::answer(m, std::span<const key<float, 2>>(keys), 64);
    const auto o = reduce(seq, keys, m);
    for (std::size_t k = 0; k < 2; ++k) {
      const auto at = [&](const key<float, 2>& x) { return x.value[k]; };
      const auto [low, high] = std::ranges::minmax(keys, {}, at);
      EXPECT_GE(static_cast<long double>(o[k]), static_cast<long double>(low.value[k]) - allowed[k]);
      EXPECT_LE(static_cast<long double>(o[k]), static_cast<long double>(high.value[k]) + allowed[k]);
    }
  }
}

TEST(softmax_means, are_linear_in_the_values) {
  const pairs<float> m;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto v = [&](std::uint64_t i) { return some_value(seed + i); };
    const auto w = [&](std::uint64_t i) { return some_value(seed * 3 + i + 99); };
    const auto both = [&](std::uint64_t i) {  // 2 v - 4 w: the products are exact, the difference is rounded once
      return std::array<float, 2>{2 * v(i)[0] - 4 * w(i)[0], 2 * v(i)[1] - 4 * w(i)[1]};
    };
    const auto of_v = keys_with(seed, v);
    const auto of_w = keys_with(seed, w);
    const auto of_both = keys_with(seed, both);
    const auto allowed = [&](const auto& keys, std::size_t k) {
      return bound<pairs<float>>::answer(m, std::span<const key<float, 2>>(keys), 64)[k];
    };
    const auto o_v = reduce(seq, of_v, m);
    const auto o_w = reduce(seq, of_w, m);
    const auto o_both = reduce(seq, of_both, m);
    for (std::size_t k = 0; k < 2; ++k) {
      const long double expected = 2 * static_cast<long double>(o_v[k]) - 4 * static_cast<long double>(o_w[k]);
      const long double rounding = 30 * 0x1p-24L;  // of 2 v - 4 w, each at most 30
      EXPECT_LE(std::fabs(static_cast<long double>(o_both[k]) - expected),
                allowed(of_both, k) + 2 * allowed(of_v, k) + 4 * allowed(of_w, k) + rounding);
    }
  }
}

}  // namespace
}  // namespace regroup::laws
