// SPDX-License-Identifier: Apache-2.0
// The contract of attention's order (algorithms/attention_fold.hpp) against an independent, naive transcription of it:
// one query at a time, one key at a time, leaves combined by softmax_mean itself. Bitwise.
#include <cmath>
#include <functional>
#include <optional>

#include "reference.hpp"

namespace {

using cases::index;
using regroup::view;
constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

using cases::mean;
using cases::perfect;

/// `masked(score, key)` is the score after masks, -inf where the key is hidden.
mean::state fold(view<const float> q, view<const float> k, view<const float> v, float scale,
                 const std::function<float(float, index)>& masked) {
  const index dv = v.extent(1);
  const mean m{dv};
  std::vector<cases::leaf_state> leaves;
  for (index leaf = 0; leaf * 1024 < k.extent(0); ++leaf) {
    float highest = minus_infinity;
    float l = 0;
    std::vector<float> o(static_cast<std::size_t>(dv), 0.0f);
    for (index tile = leaf * 1024; tile < std::min(k.extent(0), leaf * 1024 + 1024); tile += 64) {
      std::vector<float> scores;
      float top = highest;
      for (index j = tile; j < std::min(k.extent(0), tile + 64); ++j) {
        float s = 0;
        for (index c = 0; c < q.extent(0); ++c) s = std::fma(q(c) * scale, k(j, c), s);
        scores.push_back(masked(s, j));
        top = std::max(top, scores.back());
      }
      if (top > highest) {
        const float factor = highest == minus_infinity ? 0.0f : regroup::math::decay(highest - top);
        l *= factor;
        for (float& x : o) x *= factor;
        highest = top;
      }
      for (std::size_t j = 0; j < scores.size(); ++j) {
        if (scores[j] == minus_infinity) continue;
        const float w = scores[j] == highest ? 1.0f : regroup::math::decay(scores[j] - highest);
        l += w;
        for (index c = 0; c < dv; ++c) {
          float& x = o[static_cast<std::size_t>(c)];
          x = std::fma(w, v(tile + static_cast<index>(j), c), x);
        }
      }
    }
    if (highest == minus_infinity) {
      leaves.push_back(std::nullopt);
    } else {
      leaves.push_back(mean::state{highest, l, {o}});
    }
  }
  return perfect(m, leaves, 0, std::bit_ceil(std::max<std::size_t>(leaves.size(), 1))).value_or(m.identity());
}

struct shapes {
  index heads, key_heads, queries, keys, d, dv;
};

template <class Masked>
void compare(const shapes& s, const regroup::attention_mask& mask, const Masked& masked, unsigned seed,
             double width = 1) {
  const auto q = cases::normal<float>({s.heads, s.queries, s.d}, seed, width);
  const auto k = cases::normal<float>({s.key_heads, s.keys, s.d}, seed + 1, width);
  const auto v = cases::normal<float>({s.key_heads, s.keys, s.dv}, seed + 2);
  const auto got = cases::attend<float>(regroup::par, q.view(), regroup::dense(k.view(), v.view()), {.mask = mask});
  const auto state =
      regroup::attention_state(regroup::seq, q.view(), regroup::dense(k.view(), v.view()), {.mask = mask});
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(s.d)));
  for (index h = 0; h < s.heads; ++h) {
    for (index i = 0; i < s.queries; ++i) {
      const index kh = h / (s.heads / s.key_heads);
      const auto wanted =
          fold(q.view()[h][i], k.view()[kh], v.view()[kh], scale, [&](float x, index j) { return masked(x, h, i, j); });
      ASSERT_EQ(cases::bits(state.m()(h, i)), cases::bits(wanted.m + 0)) << h << " " << i;
      ASSERT_EQ(cases::bits(state.l()(h, i)), cases::bits(wanted.l)) << h << " " << i;
      const auto answer = mean{s.dv}.lower(wanted);
      for (index c = 0; c < s.dv; ++c) {
        const float o = wanted.o[static_cast<std::size_t>(c)];
        ASSERT_EQ(cases::bits(state.o()(h, i, c) + 0), cases::bits(o + 0)) << h << " " << i << " " << c;
        ASSERT_EQ(cases::bits(got.out.view()(h, i, c)), cases::bits(answer[static_cast<std::size_t>(c)]));
      }
      const float lse = regroup::log_sum_exp<float>{}.lower({wanted.m, wanted.l});
      ASSERT_EQ(cases::bits(got.lse.view()(h, i)), cases::bits(lse));
    }
  }
}

float everything(float score, index, index, index) { return score; }

TEST(attention_order, lengths_around_every_edge) {
  unsigned seed = 1;
  for (const index keys : {1, 2, 63, 64, 65, 127, 1023, 1024, 1025, 1088, 2048, 2049, 3071, 3073, 5000}) {
    compare({1, 1, 3, keys, 5, 3}, regroup::no_mask{}, everything, seed += 3);
  }
}
TEST(attention_order, queries_around_the_width_of_a_block) {
  unsigned seed = 100;
  for (const index queries : {1, 7, 8, 9, 31, 32, 33, 65}) {
    compare({2, 1, queries, 130, 4, 2}, regroup::no_mask{}, everything, seed += 3);
  }
}
TEST(attention_order, extents_of_heads_and_values) {
  unsigned seed = 200;
  for (const index d : {1, 2, 3, 8, 15, 16, 17, 33, 64})
    compare({1, 1, 5, 100, d, 1 + d / 2}, regroup::no_mask{}, everything, seed += 3);
  for (const index dv : {1, 4, 7, 8, 9, 16, 23, 40, 64, 65, 128, 130}) {
    compare({1, 1, 5, 100, 6, dv}, regroup::no_mask{}, everything, seed += 3);
  }
}
TEST(attention_order, scores_that_spread_so_that_maxima_grow) {
  compare({2, 2, 40, 2500, 16, 6}, regroup::no_mask{}, everything, 300, 4);
}
TEST(attention_order, causal) {
  compare(
      {2, 1, 70, 1100, 8, 5}, regroup::causal{},
      [](float s, index, index i, index j) { return j <= i + 1100 - 70 ? s : minus_infinity; }, 400);
  compare(
      {2, 2, 70, 50, 8, 5}, regroup::causal{},  // the first queries see nothing
      [](float s, index, index i, index j) { return j <= i + 50 - 70 ? s : minus_infinity; }, 410);
  compare(
      {2, 1, 70, 1100, 8, 5}, regroup::causal{.corner = regroup::top_left},
      [](float s, index, index i, index j) { return j <= i ? s : minus_infinity; }, 420);
}
TEST(attention_order, masks_hide_whole_tiles_and_leaves) {
  std::vector<char> seen(2300, 0);
  for (std::size_t j = 0; j < seen.size(); ++j) seen[j] = j % 5 == 0 && j / 128 % 2 == 0 && j / 1024 != 1;
  compare(
      {2, 2, 9, 2300, 8, 5}, regroup::boolean(view<const char>(seen)),
      [&](float s, index, index, index j) { return seen[static_cast<std::size_t>(j)] ? s : minus_infinity; }, 500);
  const auto bias = cases::normal<float>({2, 9, 1}, 3, 5);
  compare(
      {2, 2, 9, 1300, 8, 5},
      regroup::causal{} & regroup::additive(bias.view()) & regroup::boolean(view<const char>(seen.data(), {1300})),
      [&](float s, index h, index i, index j) {
        const bool visible = j <= i + 1300 - 9 && seen[static_cast<std::size_t>(j)];
        return visible ? s + bias.view()(h, i, 0) : minus_infinity;
      },
      510);
}
TEST(attention_order, an_object_of_the_users) {
  compare(
      {2, 2, 9, 300, 8, 5},
      [](auto score, index, index head, index query, index key) {
        return (key + query) % 3 == head ? score : regroup::hidden;
      },
      [](float s, index h, index i, index j) { return (j + i) % 3 == h ? s : minus_infinity; }, 600);
}

/// `seq` that says it has 16 threads, and remembers how many tasks it was given.
struct counting {
  std::vector<index>* tasks;

  [[nodiscard]] int concurrency() const { return 16; }
  template <class Batch, class M, class Sink>
  void fold(const Batch& b, const M& m, const Sink& sink) const {
    regroup::seq.fold(b, m, sink);
  }
  template <class Batch, class Out, class M, class Answer>
  void scan(const Batch& b, const Out& out, const M& m, regroup::scan_kind kind, const Answer& answer) const {
    regroup::seq.scan(b, out, m, kind, answer);
  }
  template <class Body>
  void for_each(index n, double cost, const Body& body) const {
    tasks->push_back(n);
    regroup::seq.for_each(n, cost, body);
  }
};

// One query that looks back over few of many keys: a task for each leaf that it looks at, none for the others.
TEST(attention_order, windows_are_shared_by_threads) {
  constexpr index heads = 4, keys = 65536, d = 8;
  const auto q = cases::normal<float>({heads, 1, d}, 1), k = cases::normal<float>({heads, keys, d}, 2);
  const auto v = cases::normal<float>({heads, keys, d}, 3);
  const regroup::attention_options options{.mask = regroup::window{.left = 8191}};  // the last 8 leaves
  cases::tensor<float> expected({heads, 1, d}), got({heads, 1, d});
  regroup::attention(regroup::seq, q.view(), regroup::dense(k.view(), v.view()), expected.view(), options);
  std::vector<index> tasks;
  regroup::attention(counting{&tasks}, q.view(), regroup::dense(k.view(), v.view()), got.view(), options);
  ASSERT_FALSE(tasks.empty());
  EXPECT_EQ(tasks[0], heads * 8);
  EXPECT_EQ(got.values, expected.values);
}

}  // namespace
