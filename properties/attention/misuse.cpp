// SPDX-License-Identifier: Apache-2.0
// Arguments that do not fit give typed exceptions with a sentence, before anything is written.
#include "cases.hpp"
#include "regroup/algorithms/attention_baseline.hpp"

namespace {

using cases::index;
using regroup::dense;
using regroup::par;
using regroup::shape;
using regroup::view;

std::vector<float> memory(4096, 1.0f);
std::vector<float> results(4096, 7.0f);

view<const float> in(const shape& s) { return {memory.data(), s}; }
view<float> out(const shape& s) { return {results.data(), s}; }

template <class Error, class F>
void refused(const F& f) {
  cases::refused<Error>(f);
  EXPECT_EQ(std::count(results.begin(), results.end(), 7.0f), 4096);
}

template <class Error = regroup::shape_error>
void refused(const shape& q, const shape& k, const shape& v, const shape& o,
             const regroup::attention_options& options = {}) {
  refused<Error>([&] { regroup::attention(par, in(q), dense(in(k), in(v)), out(o), options); });
}

TEST(attention_misuse, shapes) {
  refused({4}, {5, 4}, {5, 3}, {3});
  refused({1, 1, 1, 2, 4}, {1, 1, 1, 5, 4}, {1, 1, 1, 5, 3}, {1, 1, 1, 2, 3});
  refused({2, 4}, {1, 5, 4}, {1, 5, 3}, {2, 3});  // ranks
  refused({2, 4}, {5, 4}, {1, 5, 3}, {2, 3});
  refused({2, 4}, {5, 6}, {5, 3}, {2, 3});              // d
  refused({2, 4}, {5, 4}, {6, 3}, {2, 3});              // number of keys
  refused({3, 2, 4}, {2, 5, 4}, {2, 5, 3}, {3, 2, 3});  // 3 heads on 2 key heads
  refused({3, 2, 4}, {0, 5, 4}, {0, 5, 3}, {3, 2, 3});
  refused({2, 2, 4}, {2, 5, 4}, {1, 5, 3}, {2, 2, 3});
  refused({2, 1, 2, 4}, {3, 1, 5, 4}, {3, 1, 5, 3}, {2, 1, 2, 3});  // batches
  refused({2, 4}, {5, 4}, {5, 3}, {2, 4});                          // output
  refused({2, 4}, {5, 4}, {5, 3}, {2, 3, 1});
  refused({2, 4}, {5, 4}, {5, 3}, {3, 2});
}

TEST(attention_misuse, masks) {
  const std::vector<float> bias(100, 0.0f);
  for (const shape& s : {shape{3}, {5, 2}, {2, 5, 1}, {1, 2, 5}, {2, 6}}) {
    refused({2, 4}, {5, 4}, {5, 3}, {2, 3}, {.mask = regroup::additive(view<const float>(bias.data(), s))});
    refused({2, 4}, {5, 4}, {5, 3}, {2, 3},
            {.mask = regroup::causal{} & regroup::boolean(view<const float>(bias.data(), s))});
  }
}

TEST(attention_misuse, logsumexp_scale_and_split) {
  std::vector<double> doubles(2);
  refused({2, 4}, {5, 4}, {5, 3}, {2, 3}, {.logsumexp = view<float>(results.data() + 1000, {3})});
  refused({2, 4}, {5, 4}, {5, 3}, {2, 3}, {.logsumexp = view<float>(results.data() + 1000, {1, 2})});
  refused<regroup::argument_error>({2, 4}, {5, 4}, {5, 3}, {2, 3}, {.logsumexp = doubles});
  for (const double scale : {HUGE_VAL, -HUGE_VAL, std::nan(""), 1e300}) {
    refused<regroup::argument_error>({2, 4}, {5, 4}, {5, 3}, {2, 3}, {.scale = scale});
  }
  for (const index split : {0, -1}) refused<regroup::argument_error>({2, 4}, {5, 4}, {5, 3}, {2, 3}, {.split = split});
  refused<regroup::argument_error>([&] {
    std::vector<float> lse(2);
    regroup::attention_state(par, in({2, 4}), dense(in({5, 4}), in({5, 3})), {.logsumexp = lse});
  });
}

TEST(attention_misuse, rules_sinks_and_pieces) {
  using regroup::argument_error;
  const std::vector<float> three(3);
  for (const double cap : {0.0, -1.0, HUGE_VAL, std::nan("")}) {
    refused<argument_error>({2, 4}, {5, 4}, {5, 3}, {2, 3}, {.mask = regroup::softcap{cap}});
  }
  refused<argument_error>({2, 4}, {5, 4}, {5, 3}, {2, 3}, {.mask = regroup::window{-2, 0}});
  refused<argument_error>({2, 4}, {5, 4}, {5, 3}, {2, 3}, {.mask = regroup::causal{} & regroup::window{0, -2}});
  refused({2, 4}, {5, 4}, {5, 3}, {2, 3}, {.mask = regroup::alibi(three)});
  refused({2, 2, 4}, {1, 5, 4}, {1, 5, 3}, {2, 2, 3}, {.mask = regroup::alibi(three)});
  refused({2, 4}, {5, 4}, {5, 3}, {2, 3}, {.sinks = three});
  refused({2, 2, 4}, {1, 5, 4}, {1, 5, 3}, {2, 2, 3}, {.split = 2, .sinks = three});
  refused<regroup::shape_error>([&] { regroup::alibi(view<const float>(three.data(), {1, 3})); });
  for (const regroup::key_piece& piece : {regroup::key_piece{-1, 9}, {5, 9}, {0, 4}, {9, 5}}) {
    refused<argument_error>({2, 4}, {5, 4}, {5, 3}, {2, 3}, {.piece = piece});
  }
  refused({2, 4}, {5, 4}, {5, 3}, {2, 3}, {.piece = regroup::key_piece{0, 9, {7, 7}}});
  for (const index length : {index{-1}, index{10}, std::numeric_limits<index>::min(), std::numeric_limits<index>::max()}) {
    refused<argument_error>({2, 4}, {5, 4}, {5, 3}, {2, 3},
                            {.mask = regroup::causal{}, .piece = regroup::key_piece{0, 9, {length}}});
  }
  refused<argument_error>([&] {
    regroup::attention_state(par, in({2, 4}), dense(in({5, 4}), in({5, 3})), {.sinks = std::vector<float>(1)});
  });
}

TEST(attention_misuse, overlaps) {
  const auto refuse = [](view<float> q, view<float> k, view<float> v, view<float> o, view<float> lse) {
    refused<regroup::overlap_error>([&] { regroup::attention(par, q, dense(k, v), o, {.logsumexp = lse}); });
  };
  float* const p = results.data();
  const auto at = [&](index offset, const shape& s) { return view<float>(p + offset, s); };
  refuse(at(0, {2, 3}), at(100, {5, 3}), at(200, {5, 3}), view<float>(p + 50, {2, 3}, {0, 1}), at(300, {2}));
  refuse(at(0, {2, 3}), at(100, {5, 3}), at(200, {5, 3}), at(50, {2, 3}), view<float>(p + 300, {2}, {0}));
  refuse(at(0, {2, 3}), at(100, {5, 3}), at(200, {5, 3}), at(0, {2, 3}), at(300, {2}));
  refuse(at(0, {2, 3}), at(100, {5, 3}), at(200, {5, 3}), at(114, {2, 3}), at(300, {2}));
  refuse(at(0, {2, 3}), at(100, {5, 3}), at(200, {5, 3}), at(198, {2, 3}), at(300, {2}));
  refuse(at(0, {2, 3}), at(100, {5, 3}), at(200, {5, 3}), at(400, {2, 3}), at(405, {2}));
  refuse(at(0, {2, 3}), at(100, {5, 3}), at(200, {5, 3}), at(400, {2, 3}), at(200, {2}));
}

TEST(attention_misuse, lengths_and_pages) {
  const auto lengths = [](const std::vector<int>& n) {
    return [n] {
      regroup::attention(par, in({2, 1, 2, 4}), dense(in({2, 1, 5, 4}), in({2, 1, 5, 3}), n), out({2, 1, 2, 3}));
    };
  };
  refused<regroup::shape_error>(lengths({5}));
  refused<regroup::shape_error>(lengths({5, 5, 5}));
  refused<regroup::argument_error>(lengths({5, 6}));
  refused<regroup::argument_error>(lengths({-1, 5}));
  const auto pages = [](const std::vector<int>& table, const shape& s, const std::vector<index>& n) {
    return [=] {
      regroup::attention(par, in({2, 1, 2, 4}),
                         regroup::paged(in({3, 1, 4, 4}), in({3, 1, 4, 3}), view<const int>(table.data(), s), n),
                         out({2, 1, 2, 3}));
    };
  };
  refused<regroup::argument_error>(pages({0, 1, 2, 3}, {2, 2}, {8, 8}));
  refused<regroup::argument_error>(pages({0, 1, -1, 2}, {2, 2}, {8, 1}));
  refused<regroup::argument_error>(pages({0, 1, 2, 0}, {2, 2}, {9, 1}));
  refused<regroup::shape_error>(pages({0, 1, 2, 0}, {1, 4}, {8, 1}));
  refused<regroup::shape_error>(pages({0, 1, 2, 0}, {4}, {8, 1}));
  refused<regroup::shape_error>([] {
    const std::vector<int> table = {0};
    regroup::attention(par, in({2, 4}),
                       regroup::paged(in({3, 4, 4}), in({3, 4, 3}), view<const int>(table.data(), {1, 1})),
                       out({2, 3}));
  });
  refused<regroup::shape_error>([] {  // 2^60 pages of 16 keys: no batch, so no table
    regroup::attention(par, in({0, 1, 2, 4}),
                       regroup::paged(in({3, 1, 16, 4}), in({3, 1, 16, 3}),
                                      view<const int>(nullptr, {0, index{1} << 60})),
                       out({0, 1, 2, 3}));
  });
  refused<regroup::argument_error>([] {
    const std::vector<int> table = {0};
    regroup::materialised_attention(
        par, in({2, 4}), regroup::paged(in({3, 1, 4, 4}), in({3, 1, 4, 3}), view<const int>(table.data(), {1, 1})),
        out({2, 3}));
  });
  refused<regroup::argument_error>(
      [] { regroup::materialised_attention(par, in({2, 4}), dense(in({5, 4}), in({5, 3})), out({2, 3}), {.split = 2}); });
  refused<regroup::argument_error>([] {
    regroup::materialised_attention(par, in({2, 4}), dense(in({5, 4}), in({5, 3})), out({2, 3}),
                                    {.piece = regroup::key_piece{.first = 0, .of = 9}});
  });
  std::vector<float> memory(20, 1.0F);
  const view<float> all(memory.data(), {5, 4});
  std::vector<float> apart(8);
  regroup::materialised_attention(par, view<float>(memory.data(), {2, 4}), dense(all, all), view<float>(apart.data(), {2, 4}));
  EXPECT_EQ(apart, std::vector<float>(8, 1.0F));
  refused<regroup::overlap_error>(
      [&] { regroup::materialised_attention(par, in({2, 4}), dense(all, all), view<float>(memory.data(), {2, 4})); });
}

TEST(attention_misuse, states) {
  regroup::attention_state<float> a(shape{2, 3}, 4);
  refused<regroup::shape_error>([&] { a.merge(regroup::attention_state<float>(shape{3, 2}, 4)); });
  refused<regroup::shape_error>([&] { a.merge(regroup::attention_state<float>(shape{2, 3}, 5)); });
  refused<regroup::shape_error>([&] { a.normalise(out({2, 3, 5})); });
  refused<regroup::shape_error>([&] { a.normalise(out({2, 3, 4}), out({2})); });
  refused<regroup::shape_error>([&] { regroup::attention_state<float>(shape{1, 1, 2, 3}, 4); });
  refused<regroup::shape_error>([&] { regroup::attention_state<float>(in({2, 3}), in({2, 4}), in({2, 3, 4})); });
  refused<regroup::shape_error>([&] { regroup::attention_state<float>(in({2, 3}), in({2, 3}), in({2, 4})); });
}

TEST(attention_misuse, what_an_exception_in_a_mask_does) {
  struct trouble {};
  const auto mask = [](auto score, index, index, index query, index) {
    if (query == 3) throw trouble{};
    return score;
  };
  EXPECT_THROW(regroup::attention(par, in({40, 4}), dense(in({70, 4}), in({70, 3})), out({40, 3}), {.mask = mask}),
               trouble);
  std::fill(results.begin(), results.end(), 7.0f);
}

}  // namespace
