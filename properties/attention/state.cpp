// SPDX-License-Identifier: Apache-2.0
// Attention states over disjoint keys: merged in any partition and order they stay within the bound, as do split ranges; the
// state of no keys changes nothing; a saved state loads as it was.
#include <algorithm>
#include <iostream>
#include <numeric>

#include "reference.hpp"

namespace {

using cases::index;
using cases::same_bits;
using cases::slice;
using cases::tensor;
using regroup::attention_state;
using regroup::dense;
using regroup::par;
using regroup::seq;

constexpr index heads = 2, queries = 5, keys = 1500, d = 8, dv = 6;

struct problem {
  tensor<float> q = cases::normal<float>({heads, queries, d}, 1, 2);
  tensor<float> k = cases::normal<float>({heads, keys, d}, 2, 2);
  tensor<float> v = cases::normal<float>({heads, keys, dv}, 3);

  [[nodiscard]] auto state(index first, index last) const {
    return attention_state(seq, q.view(), dense(slice(k.view(), 1, first, last), slice(v.view(), 1, first, last)));
  }
  [[nodiscard]] static cases::answer<float> normalised(const attention_state<float>& s) {
    cases::answer<float> a{tensor<float>({heads, queries, dv}), tensor<float>({heads, queries})};
    s.normalise(a.out.view(), a.lse.view());
    return a;
  }
  /// The worst error as a part of its bound, with `depth` merges beyond the tree.
  [[nodiscard]] double ratio(const cases::answer<float>& got, double depth) const {
    cases::worst_ratio worst;
    for (index h = 0; h < heads; ++h) {
      for (index i = 0; i < queries; ++i) {
        const auto e =
            cases::define(cases::keys_of(q.view()[h][i], k.view()[h], v.view()[h],
                                         static_cast<float>(1 / std::sqrt(8.0)), [](index, auto&) { return true; }),
                          d, dv, 0x1p-24, 0x1p-24, depth);
        worst.add(e, got.out.values.data() + (h * queries + i) * dv, got.lse.view()(h, i));
      }
    }
    return worst.ratio;
  }
};

testing::AssertionResult same_state(const attention_state<float>& a, const attention_state<float>& b) {
  for (const auto& [x, y] : {std::pair(a.m(), b.m()), std::pair(a.l(), b.l()), std::pair(a.o(), b.o())}) {
    const auto same = same_bits<float>(x, y);
    if (!same) return same;
  }
  return testing::AssertionSuccess();
}

TEST(attention_state, of_all_keys_is_attention) {
  const problem p;
  const auto once = cases::attend<float>(par, p.q.view(), dense(p.k.view(), p.v.view()));
  EXPECT_TRUE(same_bits(once, problem::normalised(p.state(0, keys))));
}

TEST(attention_state, any_partition_in_any_order) {
  const problem p;
  std::mt19937 random(7);
  double worst = 0;
  for (const std::size_t parts : {2u, 3u, 7u, 20u, 60u}) {
    std::vector<index> cuts = {0, keys};
    while (cuts.size() < parts + 1) cuts.push_back(static_cast<index>(random() % (keys + 1)));
    std::sort(cuts.begin(), cuts.end());
    std::vector<std::size_t> order(parts);
    std::iota(order.begin(), order.end(), 0u);
    for (int shuffled = 0; shuffled < 3; ++shuffled) {
      attention_state<float> left;  // a left fold of the parts
      for (const std::size_t i : order) left.merge(p.state(cuts[i], cuts[i + 1]));
      std::vector<attention_state<float>> tree;  // pairs of neighbours
      for (const std::size_t i : order) tree.push_back(p.state(cuts[i], cuts[i + 1]));
      while (tree.size() > 1) {
        std::vector<attention_state<float>> next;
        for (std::size_t i = 0; i < tree.size(); i += 2) {
          next.push_back(i + 1 < tree.size() ? merge(tree[i], tree[i + 1]) : tree[i]);
        }
        tree = std::move(next);
      }
      worst = std::max({worst, p.ratio(problem::normalised(left), static_cast<double>(parts)),
                        p.ratio(problem::normalised(tree[0]), static_cast<double>(parts))});
      std::shuffle(order.begin(), order.end(), random);
    }
  }
  std::cout << "worst " << worst << " of the bound\n";
  EXPECT_LE(worst, 1);
}

TEST(attention_state, splits) {
  const problem p;
  for (const index parts : {1, 2, 3, 64, 1499, 1500, 2000, std::numeric_limits<int>::max()}) {
    const auto got = cases::attend<float>(par, p.q.view(), dense(p.k.view(), p.v.view()), {.split = parts});
    EXPECT_LE(p.ratio(got, static_cast<double>(std::min(parts, keys))), 1) << parts;
    const auto state =
        attention_state(par.with_threads(3), p.q.view(), dense(p.k.view(), p.v.view()), {.split = parts});
    EXPECT_TRUE(same_bits(got, problem::normalised(state))) << parts;
  }
  const auto whole = cases::attend<float>(par, p.q.view(), dense(p.k.view(), p.v.view()), {.mask = regroup::causal{}});
  const auto split =
      cases::attend<float>(par, p.q.view(), dense(p.k.view(), p.v.view()), {.mask = regroup::causal{}, .split = 5});
  for (std::size_t i = 0; i < whole.out.values.size(); ++i) EXPECT_NEAR(whole.out.values[i], split.out.values[i], 1e-5);
}

TEST(attention_state, no_keys_change_nothing) {
  const problem p;
  const auto nothing = p.state(3, 3);
  EXPECT_TRUE(same_state(merge(nothing, nothing), nothing));
  EXPECT_TRUE(same_state(nothing, attention_state<float>(regroup::shape{heads, queries}, dv)));
  for (index i = 0; i < heads * queries; ++i) {
    EXPECT_EQ(nothing.m().data()[i], -std::numeric_limits<float>::infinity());
    EXPECT_EQ(nothing.l().data()[i], 0.0f);
  }
  const auto some = p.state(0, 70);
  EXPECT_TRUE(same_state(merge(nothing, some), some));
  EXPECT_TRUE(same_state(merge(some, nothing), some));
  EXPECT_TRUE(same_state(merge(attention_state<float>{}, some), some));
  EXPECT_TRUE(same_state(merge(some, attention_state<float>{}), some));
  const auto answer = problem::normalised(merge(nothing, nothing));
  for (const float x : answer.out.values) EXPECT_EQ(cases::bits(x), cases::bits(0.0f));
  for (const float x : answer.lse.values) EXPECT_EQ(x, -std::numeric_limits<float>::infinity());
  attention_state<float> neither;
  neither.merge(attention_state<float>{});
  EXPECT_TRUE(neither.is_empty());
}

/// A state of no queries has the shape of its queries, and merges with no other.
TEST(attention_state, no_queries_have_a_shape) {
  const attention_state<float> none(regroup::shape{2, 4, 0}, 8);
  attention_state<float> running;
  running.merge(none);
  EXPECT_EQ(running.o().extents(), (regroup::shape{2, 4, 0, 8}));
  EXPECT_NO_THROW(running.merge(none));
  const attention_state<float> others(regroup::shape{2, 4, 3}, 8);
  EXPECT_THROW(running.merge(others), regroup::shape_error);
  attention_state<float> some = others;
  EXPECT_THROW(some.merge(none), regroup::shape_error);
}

TEST(attention_state, has_no_negative_extents) {
  EXPECT_THROW(regroup::attention_state<float>({1, 2}, -3), regroup::shape_error);
  EXPECT_THROW(regroup::attention_state<float>({1, -2}, 3), regroup::shape_error);
}

/// One that has moved away is as one of which nothing is known.
TEST(attention_state, moved_away) {
  const problem p;
  auto a = p.state(0, 300);
  const auto kept = std::move(a);
  const auto b = p.state(300, keys);
  EXPECT_TRUE(same_state(merge(kept, a), kept));  // NOLINT: that is the test
  a.merge(b);
  EXPECT_TRUE(same_state(a, b));
}

TEST(attention_state, commutes_bitwise_and_merges_with_itself) {
  const problem p;
  const auto a = p.state(0, 300);
  const auto b = p.state(300, keys);
  EXPECT_TRUE(same_state(merge(a, b), merge(b, a)));
  auto twice = a;
  twice.merge(twice);
  EXPECT_TRUE(same_state(twice, merge(a, a)));
}

TEST(attention_state, aligned_pieces_merge_to_the_bits_of_the_whole) {
  const problem p;
  EXPECT_TRUE(same_state(merge(p.state(0, 1024), p.state(1024, keys)), p.state(0, keys)));
}

/// What another system holds of a state, in logarithms of `Base`, and back.
template <regroup::log_base Base>
void there_and_back() {
  const problem p;
  const auto a = p.state(0, 600), b = p.state(600, keys), nothing = p.state(7, 7);
  const auto whole = problem::normalised(p.state(0, keys));
  const auto passed_on = [](const attention_state<float>& s) {
    tensor<float> o({heads, queries, dv}), lse({heads, queries});
    s.normalise<Base>(o.view(), lse.view());
    return attention_state(regroup::normalised_attention<float, Base>{o.view(), lse.view()});
  };
  const auto got = problem::normalised(merge(passed_on(a), merge(passed_on(nothing), passed_on(b))));
  EXPECT_LE(p.ratio(got, 8), 1);
  for (std::size_t i = 0; i < whole.lse.values.size(); ++i) {
    EXPECT_NEAR(got.lse.values[i], whole.lse.values[i], 4e-6);
  }
  EXPECT_TRUE(same_state(merge(passed_on(nothing), passed_on(nothing)), nothing));
  EXPECT_TRUE(same_state(merge(passed_on(nothing), a), a));
}
TEST(attention_state, natural_logarithms_of_others) { there_and_back<regroup::log_base::e>(); }
TEST(attention_state, base_2_logarithms_of_others) {
  there_and_back<regroup::log_base::two>();
  const problem p;
  tensor<float> o({heads, queries, dv}), natural({heads, queries}), base_2({heads, queries});
  p.state(0, keys).normalise(o.view(), natural.view());
  p.state(0, keys).normalise<regroup::log_base::two>(o.view(), base_2.view());
  for (std::size_t i = 0; i < natural.values.size(); ++i) {
    EXPECT_NEAR(std::exp2(base_2.values[i]), std::exp(natural.values[i]), 2e-5 * std::exp(natural.values[i]));
  }
}

TEST(attention_state, grows_as_keys_arrive) {
  const problem p;
  attention_state<float> running;
  for (index first = 0; first < keys; first += 130) {
    running.append(par, p.q.view(),
                   dense(slice(p.k.view(), 1, first, std::min(first + 130, keys)),
                         slice(p.v.view(), 1, first, std::min(first + 130, keys))));
  }
  EXPECT_LE(p.ratio(problem::normalised(running), 12), 1);
  const auto prefix = p.state(0, 1000);  // computed once, continued twice
  auto one = prefix, other = prefix;
  one.merge(p.state(1000, keys));
  other.merge(p.state(1000, 1200));
  EXPECT_TRUE(same_state(prefix, p.state(0, 1000)));
  EXPECT_LE(p.ratio(problem::normalised(one), 1), 1);
  EXPECT_FALSE(same_state(one, other));
}

TEST(attention_state, no_keys_whatever_l_and_o_hold) {
  tensor<float> m({heads, queries}), l({heads, queries}), o({heads, queries, dv});
  std::fill(m.values.begin(), m.values.end(), -HUGE_VALF);
  std::fill(l.values.begin(), l.values.end(), 3.0F);
  std::fill(o.values.begin(), o.values.end(), std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(same_state(attention_state<float>(m.view(), l.view(), o.view()), problem{}.state(3, 3)));
}

TEST(attention_state, bytes_and_arrays) {
  const problem p;
  const auto state = p.state(0, 100);
  const auto bytes = state.save();
  EXPECT_TRUE(same_state(attention_state<float>::load(bytes), state));
  EXPECT_TRUE(same_state(attention_state<float>(state.m(), state.l(), state.o()), state));
  const auto empty = attention_state<float>::load(attention_state<float>{}.save());
  EXPECT_TRUE(empty.is_empty());
  EXPECT_THROW((void)attention_state<double>::load(bytes), regroup::format_error);
  for (const std::size_t at : {std::size_t{0}, std::size_t{9}, bytes.size() / 2, bytes.size() - 1}) {
    auto broken = bytes;
    broken[at] ^= std::byte{4};
    EXPECT_THROW((void)attention_state<float>::load(broken), regroup::format_error) << at;
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{7}, bytes.size() - 8}) {
    EXPECT_THROW((void)attention_state<float>::load(std::span(bytes).first(size)), regroup::format_error) << size;
  }
}

TEST(attention_state, worked_numbers) {
  // scores [1, 2 | 3, 10], values 1: after the first chunk m = 2, l = O = 1.368; after the second m = 10, l = O = 1.00137
  const std::vector<float> one = {1}, scores = {1, 2, 3, 10}, ones = {1, 1, 1, 1};
  const auto piece = [&](index first, index last) {
    return attention_state(seq, regroup::view<const float>(one.data(), {1, 1}),
                           dense(regroup::view<const float>(scores.data() + first, {last - first, 1}),
                                 regroup::view<const float>(ones.data() + first, {last - first, 1})));
  };
  auto state = piece(0, 2);
  EXPECT_EQ(state.m()(0), 2);
  EXPECT_NEAR(state.l()(0), 1.368, 1e-3);
  EXPECT_NEAR(state.o()(0, 0), 1.368, 1e-3);
  state.merge(piece(2, 4));
  EXPECT_EQ(state.m()(0), 10);
  EXPECT_NEAR(state.l()(0), 1.00137, 1e-5);
  float result = 0;
  state.normalise(regroup::view<float>(&result, {1, 1}));
  EXPECT_EQ(result, 1.0f);
}

}  // namespace
