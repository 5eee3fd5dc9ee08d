// SPDX-License-Identifier: Apache-2.0
// Concatenated requests: each has the bits that it has alone, with any keys (ragged, paged, padded) and rules; a
// prefix shared by all of them is folded once and their own keys appended (cascade).
#include "reference.hpp"

namespace {

using cases::index;
using cases::refused;
using cases::same_bits;
using cases::tensor;
using regroup::attention_mask;
using regroup::attention_options;
using regroup::attention_state;
using regroup::dense;
using regroup::par;
using regroup::ragged;
using regroup::view;

constexpr index heads = 4, key_heads = 2, d = 8, dv = 5;
const std::vector<index> query_offsets = {0, 3, 3, 40, 41, 46};
const std::vector<index> key_offsets = {0, 70, 75, 1300, 1300, 1364};

struct batch {
  index tokens = query_offsets.back(), keys = key_offsets.back();
  tensor<float> q = cases::normal<float>({tokens, heads, d}, 1);
  tensor<float> k = cases::normal<float>({keys, key_heads, d}, 2);
  tensor<float> v = cases::normal<float>({keys, key_heads, dv}, 3);

  /// Request b's part of an array, (heads, its tokens, last extent).
  static view<const float> part(const tensor<float>& x, const std::vector<index>& offsets, std::size_t b) {
    return cases::slice(x.view(), 0, offsets[b], offsets[b + 1]).permuted({1, 0, 2});
  }
  static constexpr std::size_t requests = 5;

  [[nodiscard]] cases::answer<float> answer(const auto& keys_of_all, attention_options options,
                                            const auto& ex) const {
    cases::answer<float> result{tensor<float>({tokens, heads, dv}), tensor<float>({tokens, heads})};
    options.logsumexp = result.lse.view();
    regroup::attention(ex, ragged(q.view(), query_offsets), keys_of_all, result.out.view(), options);
    return result;
  }
  void expect_each_alone(const cases::answer<float>& got, const attention_options& options) const {
    for (std::size_t b = 0; b < requests; ++b) {
      const auto alone = cases::attend<float>(par, part(q, query_offsets, b),
                                              dense(part(k, key_offsets, b), part(v, key_offsets, b)), options);
      EXPECT_TRUE(same_bits<float>(alone.out.view(), part(got.out, query_offsets, b))) << b;
      const auto lse = cases::slice(got.lse.view(), 0, query_offsets[b], query_offsets[b + 1]).permuted({1, 0});
      EXPECT_TRUE(same_bits<float>(alone.lse.view(), lse)) << b;
    }
  }
};

/// The sentence with which `call` is refused.
std::string said(const auto& call) {
  try {
    call();
  } catch (const regroup::shape_error& e) {
    return e.what();
  }
  return "nothing";
}

std::vector<attention_options> all_options() {
  const std::vector<float> slopes = {0.5F, 0.25F, 0.125F, 0};
  return {{},
          {.mask = regroup::causal{}},
          {.scale = 0.2, .mask = regroup::softcap{4} & regroup::alibi(slopes) & regroup::window{50, 3}},
          {.mask = regroup::causal{regroup::top_left}, .split = 3},
          {.mask = regroup::causal{}, .sinks = slopes}};
}

TEST(attention_ragged, each_request_has_the_bits_it_has_alone) {
  const batch all;
  const auto keys = ragged(all.k.view(), all.v.view(), key_offsets);
  for (const attention_options& options : all_options()) {
    const auto got = all.answer(keys, options, par);
    all.expect_each_alone(got, options);
    EXPECT_TRUE(same_bits(got, all.answer(keys, options, regroup::seq)));
    EXPECT_TRUE(same_bits(got, all.answer(keys, options, par.with_threads(3))));
  }
}

TEST(attention_ragged, paged_and_padded_keys) {
  const batch all;
  constexpr index page = 16, pages = 77;
  std::vector<int> table(batch::requests * pages, -1);
  tensor<float> k_pool({90, key_heads, page, d}), v_pool({90, key_heads, page, dv});
  tensor<float> k_padded({5, key_heads, page * pages, d}), v_padded({5, key_heads, page * pages, dv});
  std::vector<index> lengths;
  int next = 89;
  for (std::size_t b = 0; b < batch::requests; ++b) {
    lengths.push_back(key_offsets[b + 1] - key_offsets[b]);
    for (index j = 0; j < lengths[b]; ++j) {
      if (j % page == 0) table[b * pages + static_cast<std::size_t>(j / page)] = next--;
      const index at = table[b * pages + static_cast<std::size_t>(j / page)];
      for (index h = 0; h < key_heads; ++h) {
        for (index c = 0; c < d; ++c) {
          const float x = all.k.view()(key_offsets[b] + j, h, c);
          k_pool.view()(at, h, j % page, c) = k_padded.view()(static_cast<index>(b), h, j, c) = x;
        }
        for (index c = 0; c < dv; ++c) {
          const float x = all.v.view()(key_offsets[b] + j, h, c);
          v_pool.view()(at, h, j % page, c) = v_padded.view()(static_cast<index>(b), h, j, c) = x;
        }
      }
    }
  }
  for (const attention_options& options : all_options()) {
    if (options.split > 1) continue;  // ranges of other lengths
    const auto wanted = all.answer(ragged(all.k.view(), all.v.view(), key_offsets), options, par);
    const auto paged = regroup::paged(k_pool.view(), v_pool.view(), view<const int>(table.data(), {5, pages}), lengths);
    EXPECT_TRUE(same_bits(wanted, all.answer(paged, options, par)));
    EXPECT_TRUE(same_bits(wanted, all.answer(dense(k_padded.view(), v_padded.view(), lengths), options, par)));
  }
}

TEST(attention_ragged, rules_see_the_request_as_their_batch) {
  const batch all;
  const auto own = [](auto score, index batch, index head, index query, index key) {
    return (batch + head + query + key) % 3 == 0 ? decltype(score){regroup::hidden} : score;
  };
  const auto got = all.answer(ragged(all.k.view(), all.v.view(), key_offsets), {.mask = own}, par);
  const auto bias = cases::normal<float>({5, 1, 1, 1225}, 9);  // keys of the longest request
  const auto biased =
      all.answer(ragged(all.k.view(), all.v.view(), key_offsets), {.mask = regroup::additive(bias.view())}, par);
  for (std::size_t b = 0; b < batch::requests; ++b) {
    const auto keys = dense(batch::part(all.k, key_offsets, b), batch::part(all.v, key_offsets, b));
    const auto seen = [=](auto score, index, index head, index query, index key) {
      return own(score, static_cast<index>(b), head, query, key);
    };
    const auto alone = cases::attend<float>(par, batch::part(all.q, query_offsets, b), keys, {.mask = seen});
    EXPECT_TRUE(same_bits<float>(alone.out.view(), batch::part(got.out, query_offsets, b))) << b;
    const auto row = view<const float>(&bias.view()(static_cast<index>(b), 0, 0, 0), {keys.k.extent(1)});
    const auto with_bias =
        cases::attend<float>(par, batch::part(all.q, query_offsets, b), keys, {.mask = regroup::additive(row)});
    EXPECT_TRUE(same_bits<float>(with_bias.out.view(), batch::part(biased.out, query_offsets, b))) << b;
  }
}

TEST(attention_ragged, cascade) {
  const batch all;
  constexpr index prefix = 300;
  const auto k = cases::normal<float>({key_heads, prefix, d}, 11), v = cases::normal<float>({key_heads, prefix, dv}, 12);
  // Every token sees the prefix, then its request's keys up to its own.
  attention_state state(par, all.q.view().permuted({1, 0, 2}), dense(k.view(), v.view()));
  state.append(par, ragged(all.q.view(), query_offsets), ragged(all.k.view(), all.v.view(), key_offsets),
               {.mask = regroup::causal{}});
  cases::answer<float> got{tensor<float>({heads, all.tokens, dv}), tensor<float>({heads, all.tokens})};
  state.normalise(got.out.view(), got.lse.view());
  cases::worst_ratio worst;
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(d)));
  for (std::size_t b = 0; b < batch::requests; ++b) {
    const index queries = query_offsets[b + 1] - query_offsets[b], keys = key_offsets[b + 1] - key_offsets[b];
    for (index h = 0; h < heads; ++h) {
      for (index i = 0; i < queries; ++i) {
        const auto q = batch::part(all.q, query_offsets, b)[h][i];
        const index kh = h / 2;
        auto seen = cases::keys_of(q, k.view()[kh], v.view()[kh], scale, [](index, auto&) { return true; });
        const auto own = cases::keys_of(q, batch::part(all.k, key_offsets, b)[kh], batch::part(all.v, key_offsets, b)[kh],
                                        scale, [&](index j, auto&) { return j <= i + keys - queries; });
        seen.insert(seen.end(), own.begin(), own.end());
        const auto e = cases::define(seen, d, dv, 0x1p-24, 0x1p-24, 1);
        const index token = query_offsets[b] + i;
        worst.add(e, &got.out.view()(h, token, 0), got.lse.view()(h, token));
      }
    }
  }
  EXPECT_LE(worst.ratio, 1);
}

TEST(attention_ragged, batches_share_keys_without_a_copy) {
  const auto q = cases::normal<float>({3, heads, 7, d}, 1);
  const auto k = cases::normal<float>({key_heads, 100, d}, 2), v = cases::normal<float>({key_heads, 100, dv}, 3);
  const auto got = cases::attend<float>(par, q.view(), dense(regroup::shared(k.view(), 3), regroup::shared(v.view(), 3)));
  for (index b = 0; b < 3; ++b) {
    const auto alone = cases::attend<float>(par, q.view()[b], dense(k.view(), v.view()));
    EXPECT_TRUE(same_bits<float>(alone.out.view(), got.out.view()[b]));
  }
}

TEST(attention_ragged, misuse) {
  const batch all;
  const auto q = all.q.view();
  for (const std::vector<int>& offsets : {std::vector<int>{}, {0}, {1, 46}, {0, 45}, {0, 47}, {0, 20, 10, 46}, {0, -1, 46}}) {
    refused<regroup::offsets_error>([&] { (void)ragged(q, offsets); });
    refused<regroup::offsets_error>([&] { (void)ragged(q, q, offsets); });
  }
  refused<regroup::shape_error>([&] { (void)ragged(q[0], query_offsets); });
  const auto keys = ragged(all.k.view(), all.v.view(), std::vector<int>{0, 1364});
  tensor<float> out({46, heads, dv}), lse({46, heads});
  refused<regroup::shape_error>([&] { regroup::attention(par, ragged(q, query_offsets), keys, out.view()); });
  const auto good = ragged(all.k.view(), all.v.view(), key_offsets);
  EXPECT_EQ(said([&] {
    regroup::attention(par, ragged(q, query_offsets), good, view<float>(out.values.data(), {heads, 46, dv}));
  }), "ragged attention's output has shape (tokens, heads, dv), here (46, 4, 5); got (4, 46, 5)");
  EXPECT_EQ(said([&] {
    regroup::attention(par, ragged(q, query_offsets), good, out.view(),
                       {.logsumexp = view<float>(lse.values.data(), {heads, 46})});
  }), "ragged logsumexp has shape (tokens, heads), here (46, 4); got (4, 46)");
  refused<regroup::shape_error>(
      [&] { regroup::attention(par, ragged(q, query_offsets), dense(all.k.view(), all.v.view()), out.view()); });
  const auto requests = static_cast<index>(query_offsets.size()) - 1;
  const auto k = cases::normal<float>({requests, key_heads, 9, d}, 4);
  const auto v = cases::normal<float>({requests, key_heads, 9, dv}, 5);
  for (const index count : {requests - 1, requests + 1}) {
    const std::vector<index> lengths(static_cast<std::size_t>(count), 9);
    refused<regroup::shape_error>(
        [&] { regroup::attention(par, ragged(q, query_offsets), dense(k.view(), v.view(), lengths), out.view()); });
  }
}

}  // namespace
