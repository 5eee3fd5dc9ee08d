// SPDX-License-Identifier: Apache-2.0
// Rules of scores in any combination (windows, softcap, ALiBi, masks, a user's own, sinks) against attention by definition
// in long double, within the bound; whole, split, and as states of any partition of the keys merged in any tree.
#include <atomic>
#include <functional>
#include <iostream>
#include <memory>
#include <numeric>

#include "reference.hpp"

namespace {

using cases::index;
using cases::same_bits;
using cases::slice;
using cases::tensor;
using regroup::attention_mask;
using regroup::attention_options;
using regroup::attention_state;
using regroup::dense;
using regroup::par;
using regroup::seq;

constexpr index heads = 4, key_heads = 2, d = 8, dv = 5;

/// One combination: the rules as the library takes them, and what they do to an exact score; false where hidden.
struct combination {
  std::vector<attention_mask> rules;
  std::vector<std::function<bool(cases::seen_key&, index head, index query, index key)>> steps;
  std::vector<float> sinks;

  [[nodiscard]] attention_mask mask() const { return attention_mask::all(rules); }
};

struct problem {
  index queries, keys;
  tensor<float> q, k, v, bias;
  std::vector<char> seen;
  std::vector<float> slopes = {0.5F, 0.125F, -0.03125F, 0.0F};

  problem(index n_queries, index n_keys, unsigned seed)
      : queries(n_queries),
        keys(n_keys),
        q(cases::normal<float>({heads, queries, d}, seed, 2)),
        k(cases::normal<float>({key_heads, keys, d}, seed + 1, 2)),
        v(cases::normal<float>({key_heads, keys, dv}, seed + 2)),
        bias(cases::normal<float>({queries, keys}, seed + 3)) {
    std::mt19937 random(seed);
    for (index j = 0; j < keys; ++j) seen.push_back(random() % 4 != 0);
    for (float& x : bias.values) x = random() % 5 == 0 ? float{regroup::hidden} : x;
  }

  /// The options whose bits `chosen` has.
  [[nodiscard]] combination choose(unsigned chosen) const {
    combination c;
    const index shift = keys - queries;
    const auto add = [&](const attention_mask& rule, auto step) {
      c.rules.push_back(rule);
      c.steps.emplace_back(step);
    };
    const auto rounded = [](cases::seen_key& key, long double score) {
      key.magnitude += 2 * std::abs(score);
      key.score = score;
      return true;
    };
    if (chosen & 1) {
      add(regroup::softcap{3}, [=](cases::seen_key& key, index, index, index) {
        return rounded(key, 3 * std::tanh(key.score / 3));
      });
    }
    if (chosen & 2) {
      add(regroup::alibi(slopes), [=, this](cases::seen_key& key, index h, index i, index j) {
        return rounded(key, key.score + slopes[static_cast<std::size_t>(h)] * static_cast<long double>(j - i - shift));
      });
    }
    if (chosen & 4) {
      add(regroup::additive(bias.view()), [=, this](cases::seen_key& key, index, index i, index j) {
        const float b = bias.view()(i, j);
        return rounded(key, key.score + b) && b != float{regroup::hidden};
      });
    }
    if (chosen & 8) {
      add([](auto score, index, index, index, index key) { return score + (key % 3 == 0 ? decltype(score){1} : 0); },
          [=](cases::seen_key& key, index, index, index j) { return rounded(key, key.score + (j % 3 == 0)); });
    }
    if (chosen & 16) {
      add(regroup::boolean(seen),
          [this](cases::seen_key&, index, index, index j) { return seen[static_cast<std::size_t>(j)] != 0; });
    }
    if (chosen & 32) {
      add(regroup::causal{}, [=](cases::seen_key&, index, index i, index j) { return j <= i + shift; });
    }
    if (chosen & 64) {
      const index left = keys / 3, right = 7;
      add(regroup::window{left, right}, [=](cases::seen_key&, index, index i, index j) {
        return -left <= j - i - shift && j - i - shift <= right;
      });
    }
    if (chosen & 128) c.sinks = {1.5F, -2, float{regroup::hidden}, 6};
    return c;
  }

  /// The worst error as a part of its bound, with `depth` merges beyond the tree.
  [[nodiscard]] double ratio(const combination& c, const cases::answer<float>& got, double depth = 0) const {
    cases::worst_ratio worst;
    const float scale = static_cast<float>(1 / std::sqrt(static_cast<double>(d)));
    for (index h = 0; h < heads; ++h) {
      for (index i = 0; i < queries; ++i) {
        const index kh = h / (heads / key_heads);
        auto visible = cases::keys_of(q.view()[h][i], k.view()[kh], v.view()[kh], scale, [&](index j, auto& key) {
          bool is_seen = true;
          for (const auto& step : c.steps) is_seen = step(key, h, i, j) && is_seen;
          return is_seen;
        });
        if (!c.sinks.empty() && c.sinks[static_cast<std::size_t>(h)] != float{regroup::hidden}) {
          visible.push_back({c.sinks[static_cast<std::size_t>(h)], 0, std::vector<long double>(dv, 0)});
        }
        const auto e = cases::define(visible, d, dv, 0x1p-24, 0x1p-24, depth);
        worst.add(e, got.out.values.data() + (h * queries + i) * dv, got.lse.view()(h, i));
      }
    }
    return worst.ratio;
  }
  [[nodiscard]] auto keys_of(index first, index last) const {
    return dense(slice(k.view(), 1, first, last), slice(v.view(), 1, first, last));
  }
};

attention_options options_of(const combination& c, index split = 1) {
  attention_options options{.mask = c.mask(), .split = split};
  if (!c.sinks.empty()) options.sinks = c.sinks;
  return options;
}

TEST(attention_options, every_combination) {
  double worst = 0;
  for (unsigned chosen = 0; chosen < 256; ++chosen) {
    const problem p(chosen % 3 == 0 ? 33 : 5, chosen % 5 == 0 ? 1100 : 90, chosen);
    const combination c = p.choose(chosen);
    const auto got =
        cases::attend<float>(par, p.q.view(), dense(p.k.view(), p.v.view()), options_of(c, chosen % 7 == 0 ? 3 : 1));
    const double ratio = p.ratio(c, got, 3);
    EXPECT_LE(ratio, 1) << chosen;
    worst = std::max(worst, ratio);
  }
  std::cout << "worst " << worst << " of the bound\n";
}

TEST(attention_options, any_partition_in_any_tree_and_order) {
  std::mt19937 random(5);
  double worst = 0;
  for (unsigned chosen = 0; chosen < 256; chosen += 5) {
    const problem p(5, 700, chosen + 1000);
    const combination c = p.choose(chosen | 128);
    for (const std::size_t parts : {2U, 6U}) {
      std::vector<index> cuts = {0, p.keys};
      while (cuts.size() < parts + 1) cuts.push_back(static_cast<index>(random() % 701));
      std::sort(cuts.begin(), cuts.end());
      std::vector<attention_state<float>> states;
      for (std::size_t i = 0; i < parts; ++i) {
        attention_options options{.mask = c.mask(), .split = 1 + static_cast<index>(i % 2)};
        options.piece = {.first = cuts[i], .of = p.keys};
        states.emplace_back(seq, p.q.view(), p.keys_of(cuts[i], cuts[i + 1]), options);
      }
      std::shuffle(states.begin(), states.end(), random);
      while (states.size() > 1) {  // any tree: a random pair of neighbours merges
        const std::size_t at = random() % (states.size() - 1);
        states[at].merge(states[at + 1]);
        states.erase(states.begin() + static_cast<std::ptrdiff_t>(at) + 1);
      }
      cases::answer<float> got{tensor<float>({heads, p.queries, dv}), tensor<float>({heads, p.queries})};
      states[0].normalise(got.out.view(), got.lse.view(), c.sinks);
      worst = std::max(worst, p.ratio(c, got, static_cast<double>(2 * parts)));
    }
  }
  std::cout << "worst " << worst << " of the bound\n";
  EXPECT_LE(worst, 1);
}

TEST(attention_options, the_bits_do_not_depend_on_how_rules_are_put_together) {
  const problem p(40, 1300, 3);
  const auto run = [&](const attention_mask& m) {
    return cases::attend<float>(par, p.q.view(), dense(p.k.view(), p.v.view()), {.mask = m});
  };
  const auto own = [](auto score, index, index head, index, index key) { return key % 7 == head ? score / 2 : score; };
  const regroup::softcap cap{5};
  const regroup::alibi slopes(p.slopes);
  const regroup::window near{300, 4};
  const auto at_once = run(regroup::masks{cap, slopes, own, regroup::additive(p.bias.view()), near});
  EXPECT_TRUE(same_bits(at_once, run(cap & slopes & own & regroup::additive(p.bias.view()) & near)));
  EXPECT_TRUE(same_bits(
      at_once, run(attention_mask(cap) & slopes & own & (attention_mask(regroup::additive(p.bias.view())) & near))));
  EXPECT_TRUE(same_bits(
      at_once, run(regroup::masks{attention_mask(cap), regroup::masks{slopes, own}, regroup::additive(p.bias.view()), near})));
  EXPECT_TRUE(same_bits(at_once, run(attention_mask::all({cap, slopes, own, regroup::additive(p.bias.view()), near}))));
  for (const int threads : {1, 3}) {
    const auto again = cases::attend<float>(par.with_threads(threads), p.q.view(), dense(p.k.view(), p.v.view()),
                                            {.mask = cap & slopes & own & regroup::additive(p.bias.view()) & near});
    EXPECT_TRUE(same_bits(at_once, again));
  }
}

/// Hides even keys.
struct odd_keys {
  struct bound final : regroup::bound_mask {
    [[nodiscard]] regroup::key_range range(index, index, index) const override { return {}; }
    [[nodiscard]] bool has_function() const noexcept override { return true; }
    void apply(const regroup::score_tile<float>& t) const override { hide(t); }
    void apply(const regroup::score_tile<double>& t) const override { hide(t); }
    template <class Real>
    static void hide(const regroup::score_tile<Real>& t) {
      for (index i = 0; i < t.keys * t.lanes; ++i) {
        if ((t.first_key + i / t.lanes) % 2 == 0) t.scores[i] = regroup::hidden;
      }
    }
  };
  [[nodiscard]] auto bind(const regroup::attention_extents&) const { return std::make_shared<const bound>(); }
};

/// A rule may be bound to whatever is a bound mask.
TEST(attention_options, a_bound_mask_of_ones_own) {
  const problem p(5, 200, 4);
  const auto run = [&](const attention_mask& m) {
    return cases::attend<float>(par, p.q.view(), dense(p.k.view(), p.v.view()), {.mask = m});
  };
  const auto odd = [](auto score, index, index, index, index key) {
    return key % 2 != 0 ? score : decltype(score){regroup::hidden};
  };
  const auto wanted = run(odd);
  EXPECT_TRUE(same_bits(wanted, run(odd_keys{})));
  EXPECT_TRUE(same_bits(run(regroup::masks{odd, regroup::softcap{5}}), run(regroup::masks{odd_keys{}, regroup::softcap{5}})));
}

TEST(attention_options, what_one_rule_hides_no_later_one_shows) {
  const problem p(5, 200, 4);
  const auto odd = [](auto score, index, index, index, index key) {
    return key % 2 != 0 ? score : decltype(score){regroup::hidden};
  };
  const auto finite = [](auto score, index, index, index, index) { return std::isfinite(score) ? score : 0; };
  const auto run = [&](const attention_mask& m) {
    return cases::attend<float>(par, p.q.view(), dense(p.k.view(), p.v.view()), {.mask = m});
  };
  const auto wanted = run(odd);
  EXPECT_TRUE(same_bits(wanted, run(regroup::masks{odd, finite})));
  EXPECT_TRUE(same_bits(wanted, run(attention_mask(odd) & finite)));
  EXPECT_FALSE(same_bits(wanted, run(finite)));
}

TEST(attention_options, hidden_keys_leak_through_no_rule) {
  const problem clean(6, 300, 5);
  const combination c = clean.choose(1 | 2 | 8 | 16 | 32 | 64 | 128);
  const auto wanted = cases::attend<float>(par, clean.q.view(), dense(clean.k.view(), clean.v.view()), options_of(c));
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), HUGE_VALF, -HUGE_VALF}) {
    problem spoilt = clean;
    for (index j = 0; j < clean.keys; ++j) {
      if (clean.seen[static_cast<std::size_t>(j)] != 0 && j >= clean.keys - 6 - clean.keys / 3) continue;
      for (index h = 0; h < key_heads; ++h) {
        for (index i = 0; i < d; ++i) spoilt.k.view()(h, j, i) = bad;
        for (index i = 0; i < dv; ++i) spoilt.v.view()(h, j, i) = bad;
      }
    }
    EXPECT_TRUE(same_bits(wanted, cases::attend<float>(par, spoilt.q.view(), dense(spoilt.k.view(), spoilt.v.view()),
                                                       options_of(c))))
        << bad;
  }
}

TEST(attention_options, sinks_count_once_and_stand_alone) {
  const problem p(5, 64, 6);
  const std::vector<double> sinks = {2, -1, 0, -HUGE_VAL};
  const auto nothing = [](auto score, index, index, index, index) { return decltype(score){regroup::hidden}; };
  for (const index split : {1, 3}) {
    const auto got = cases::attend<float>(par, p.q.view(), dense(p.k.view(), p.v.view()),
                                          {.mask = nothing, .split = split, .sinks = sinks});
    for (const float x : got.out.values) EXPECT_EQ(cases::bits(x), cases::bits(0.0F));
    for (index h = 0; h < heads; ++h) {
      for (index i = 0; i < p.queries; ++i) EXPECT_EQ(got.lse.view()(h, i), sinks[static_cast<std::size_t>(h)]);
    }
  }
  const std::vector<float> none(heads, float{regroup::hidden});
  EXPECT_TRUE(same_bits(cases::attend<float>(par, p.q.view(), dense(p.k.view(), p.v.view()), {.sinks = none}),
                        cases::attend<float>(par, p.q.view(), dense(p.k.view(), p.v.view()))));
}

/// How many scores a call computes, counted by a rule.
index scores_of(const attention_mask& m, index queries, index keys) {
  std::atomic<index> count = 0;
  const auto counting = [&count](auto score, index, index, index, index) {
    count.fetch_add(1, std::memory_order_relaxed);
    return score;
  };
  const auto q = cases::normal<float>({1, queries, 2}, 1), k = cases::normal<float>({1, keys, 2}, 2);
  tensor<float> out({1, queries, 2});
  regroup::attention(par, q.view(), dense(k.view(), k.view()), out.view(), {.mask = m & attention_mask(counting)});
  return count;
}

TEST(attention_options, tiles_out_of_range_are_never_computed) {
  constexpr index keys = 32768;
  for (const index queries : {1, 64}) {
    const index full = scores_of(attention_mask(), queries, keys);
    EXPECT_GE(full, queries * keys);
    EXPECT_LE(scores_of(regroup::window{1023, 0}, queries, keys) * 16, full) << queries;
    EXPECT_LE(scores_of(regroup::window{0, 1023}, queries, keys) * 16, full) << queries;
    EXPECT_LE(scores_of(regroup::causal{regroup::top_left}, queries, keys) * 16, full) << queries;
  }
  const index square = scores_of(attention_mask(), 2048, 2048);
  EXPECT_LE(scores_of(regroup::causal{}, 2048, 2048) * 100, square * 56);
  EXPECT_LE(scores_of(regroup::window{127, 0}, 2048, 2048) * 8, square);
}

}  // namespace
