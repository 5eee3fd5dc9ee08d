// SPDX-License-Identifier: Apache-2.0
// Every result lies within the bound computed from its input (definition.hpp), for every element
// type, on random problems and on a trained transformer's queries, keys and values. The worst ratio is printed.
#include <iostream>

#include "algorithms/npy.hpp"
#include "reference.hpp"
#include "regroup/algorithms/attention_baseline.hpp"

namespace {

using cases::index;
using cases::tensor;
using regroup::dense;
using regroup::par;
using regroup::view;

template <class T>
constexpr double output_u = std::same_as<T, double>             ? 0x1p-53
                            : std::same_as<T, float>            ? 0x1p-24
                            : std::same_as<T, regroup::float16> ? 0x1p-11
                                                                : 0x1p-8;
template <class T>
constexpr double accumulation_u = std::same_as<T, double> ? 0x1p-53 : 0x1p-24;

template <class T>
class attention_bounds : public testing::Test {};
using types = testing::Types<float, double, regroup::float16, regroup::bfloat16>;

/// The repository's layer 0: 12 heads of 512 tokens, d = 32, q, k, v in float32 and results in float64.
struct layer {
  std::vector<float> q = properties::example_data<float>("minilm/layer0_q.npy");
  std::vector<float> k = properties::example_data<float>("minilm/layer0_k.npy");
  std::vector<float> v = properties::example_data<float>("minilm/layer0_v.npy");
  static constexpr index heads = 12, tokens = 512, d = 32;
  [[nodiscard]] static view<const float> seen(const std::vector<float>& x) { return {x.data(), {1, heads, tokens, d}}; }
};

/// Against the stored float64 results; of the causal ones logsumexp is stored, and the output is as defined in long double.
void meet_the_real_reference(bool is_causal, const cases::answer<float>& got, const layer& in) {
  const auto out = properties::example_data<double>("minilm/layer0_out.npy");
  const auto lse =
      properties::example_data<double>(is_causal ? "minilm/layer0_lse_causal.npy" : "minilm/layer0_lse.npy");
  cases::worst_ratio worst;
  double worst_error = 0;
  for (index h = 0; h < in.heads; ++h) {
    for (index i = h % 4; i < in.tokens; i += 4) {  // a quarter of the queries, for time
      const index row = h * in.tokens + i;
      auto e = cases::define(cases::keys_of(in.seen(in.q)[0][h][i], in.seen(in.k)[0][h], in.seen(in.v)[0][h],
                                            1 / std::sqrt(32.0L), [&](index j, auto&) { return !is_causal || j <= i; }),
                             in.d, in.d, 0x1p-24, 0x1p-24);
      EXPECT_NEAR(static_cast<double>(e.lse), lse[static_cast<std::size_t>(row)], 1e-12);
      e.lse = lse[static_cast<std::size_t>(row)];
      for (index c = 0; c < in.d; ++c) {
        long double& wanted = e.out[static_cast<std::size_t>(c)];
        const auto at = static_cast<std::size_t>(row * in.d + c);
        if (!is_causal) {
          EXPECT_NEAR(static_cast<double>(wanted), out[at], 1e-12);
          wanted = out[at];
        }
        worst_error = std::max(worst_error, std::abs(static_cast<double>(got.out.values[at] - wanted)));
      }
      worst.add(e, got.out.values.data() + row * in.d, got.lse.values[static_cast<std::size_t>(row)]);
    }
  }
  std::cout << (is_causal ? "causal: " : "full: ") << "worst error " << worst_error << ", " << worst.ratio
            << " of its bound\n";
  EXPECT_LE(worst.ratio, 1);
}

TYPED_TEST_SUITE(attention_bounds, types);

TYPED_TEST(attention_bounds, random_problems) {
  using T = TypeParam;
  cases::worst_ratio worst;
  cases::worst_ratio worst_of_baseline;
  unsigned seed = 1;
  struct extents {
    index heads, key_heads, queries, keys, d, dv;
    double width;
  };
  for (const extents& s :
       {extents{2, 1, 5, 300, 8, 5, 1}, {1, 1, 3, 2500, 16, 4, 3}, {3, 3, 2, 70, 40, 6, 2}, {1, 1, 4, 1, 3, 2, 1}}) {
    for (const bool is_causal : {false, true}) {
      const auto q = cases::normal<T>({s.heads, s.queries, s.d}, ++seed, s.width);
      const auto k = cases::normal<T>({s.key_heads, s.keys, s.d}, ++seed, s.width);
      const auto v = cases::normal<T>({s.key_heads, s.keys, s.dv}, ++seed);
      const auto bias = cases::normal<float>({s.queries, s.keys}, ++seed);
      const regroup::attention_mask mask =
          is_causal ? regroup::attention_mask(regroup::causal{} & regroup::additive(bias.view()))
                    : regroup::attention_mask();
      const auto got = cases::attend<T, T>(par, q.view(), dense(k.view(), v.view()), {.scale = 0.3, .mask = mask});
      auto baseline = got;
      regroup::materialised_attention(par, q.view(), dense(k.view(), v.view()), baseline.out.view(),
                                      {.scale = 0.3, .mask = mask, .logsumexp = baseline.lse.view()});
      const long double scale = std::same_as<T, double> ? 0.3 : 0.3f;
      for (index h = 0; h < s.heads; ++h) {
        for (index i = 0; i < s.queries; ++i) {
          const index kh = h / (s.heads / s.key_heads);
          const auto see = [&](index j, cases::seen_key& key) {
            if (!is_causal) return true;
            if (j > i + s.keys - s.queries) return false;
            key.score += bias.view()(i, j);
            key.magnitude += std::abs(key.score);
            return true;
          };
          const auto e = cases::define(cases::keys_of(q.view()[h][i], k.view()[kh], v.view()[kh], scale, see), s.d,
                                       s.dv, accumulation_u<T>, output_u<T>, 0, cases::weight_u<T>(),
                                       cases::products_of<T>());
          const index row = h * s.queries + i;
          worst.add(e, got.out.values.data() + row * s.dv, got.lse.values[static_cast<std::size_t>(row)]);
          // one chain over all keys: deeper than a leaf
          const auto flat = cases::define(cases::keys_of(q.view()[h][i], k.view()[kh], v.view()[kh], scale, see), s.d,
                                          s.dv, accumulation_u<T>, output_u<T>, static_cast<double>(s.keys));
          worst_of_baseline.add(flat, baseline.out.values.data() + row * s.dv,
                                baseline.lse.values[static_cast<std::size_t>(row)]);
        }
      }
    }
  }
  std::cout << "worst " << worst.ratio << " of the bound; materialised " << worst_of_baseline.ratio << "\n";
  EXPECT_LE(worst.ratio, 1);
  EXPECT_LE(worst_of_baseline.ratio, 1);
}

TEST(attention_real_data, meets_the_float64_reference) {
  const layer in;
  for (const bool is_causal : {false, true}) {
    const auto mask = is_causal ? regroup::attention_mask(regroup::causal{}) : regroup::attention_mask();
    meet_the_real_reference(
        is_causal, cases::attend<float>(par, in.seen(in.q), dense(in.seen(in.k), in.seen(in.v)), {.mask = mask}), in);
  }
}

TEST(attention_values, linear_in_v_and_inside_its_columns) {
  const auto q = cases::normal<double>({3, 8}, 1), k = cases::normal<double>({200, 8}, 2);
  const auto a = cases::normal<double>({200, 4}, 3), b = cases::normal<double>({200, 4}, 4);
  auto both = a;
  for (std::size_t i = 0; i < both.values.size(); ++i) both.values[i] = 2 * a.values[i] + b.values[i];
  const auto of = [&](const tensor<double>& v) {
    return cases::attend<double>(par, q.view(), dense(k.view(), v.view())).out;
  };
  const auto of_a = of(a), of_b = of(b), of_both = of(both);
  for (index i = 0; i < 3; ++i) {
    for (index c = 0; c < 4; ++c) {
      EXPECT_NEAR(of_both.view()(i, c), 2 * of_a.view()(i, c) + of_b.view()(i, c), 1e-12);
      double low = a.view()(0, c), high = low;
      for (index j = 0; j < 200; ++j) {
        low = std::min(low, a.view()(j, c));
        high = std::max(high, a.view()(j, c));
      }
      EXPECT_LE(low, of_a.view()(i, c));
      EXPECT_LE(of_a.view()(i, c), high);
    }
  }
}

TEST(attention_values, half_precision_into_float) {
  const auto q = cases::normal<regroup::float16>({9, 8}, 1), k = cases::normal<regroup::float16>({200, 8}, 2);
  const auto v = cases::normal<regroup::float16>({200, 4}, 3);
  const auto wide = cases::attend<regroup::float16, float>(par, q.view(), dense(k.view(), v.view()));
  const auto narrow = cases::attend<regroup::float16>(par, q.view(), dense(k.view(), v.view()));
  for (std::size_t i = 0; i < wide.out.values.size(); ++i) {
    EXPECT_EQ(narrow.out.values[i].bits, regroup::float16(wide.out.values[i]).bits);
  }
}

}  // namespace
