// SPDX-License-Identifier: Apache-2.0
// Attention's states on a device, emulated, have the bits of the host's attention_state: computed, merged and normalised;
// and a merge with its barrier left out is caught.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "attentions.hpp"
#include "faults.hpp"
#include "folds.hpp"
#include "said.hpp"

namespace {

using cases::same_bits;
using cases::tensor;
using emulated::machine;
using emulated::on_device;
using emulated::schedule;
using regroup::shape;
using regroup::view;
namespace cuda = regroup::cuda;
using host_state = regroup::attention_state<float>;

/// States in memory that holds no answer yet.
struct states {
  tensor<float> m, l, o;
  states(const shape& outer, std::int64_t dv) : m(outer), l(outer) {
    shape full = outer;
    full.push_back(dv);
    o = tensor<float>(full);
    for (auto* const x : {&m, &l, &o}) std::fill(x->values.begin(), x->values.end(), emulated::untouched);
  }
  [[nodiscard]] cuda::attention_states<float> all() {
    const auto of = [](tensor<float>& x) { return cuda::device_view<float>(x.values.data(), x.extents); };
    return {of(m), of(l), of(o)};
  }
  [[nodiscard]] cuda::attention_states<const float> read() const { return {on_device(m), on_device(l), on_device(o)}; }
};
testing::AssertionResult same(const states& a, const host_state& b) {
  for (const auto& both : {std::pair(a.m.view(), b.m()), std::pair(a.l.view(), b.l()), std::pair(a.o.view(), b.o())}) {
    if (const auto result = same_bits<float>(both.first, both.second); !result) return result;
  }
  return testing::AssertionSuccess();
}

template <class Mask = regroup::no_mask>
states computed(const shape& outer, const cuda::attention_queries<float>& q, const cuda::attention_keys<float>& keys,
                const Mask& mask = {}) {
  states to(outer, keys.v.extents()[keys.v.rank() - 1]);
  const auto own = cuda::attention_work_of<float>(q, keys, to.all(), cuda::attention_options<Mask>{.mask = mask});
  const emulated::any_rule::of<std::remove_const_t<decltype(own.rule)>> rule(own.rule);
  const emulated::any_work<float, cuda::attention_states<float>> work{own.call, {&rule}, own.put, own.leaves};
  machine on(schedule::random, 3);
  emulated::attend(on, work, cuda::plan_attention(work.call, work.leaves, 1));
  return to;
}

struct problem {
  tensor<float> q, k, v;
  shape outer;
  problem(const shape& qs, std::int64_t key_heads, std::int64_t keys, std::int64_t dv)
      : q(cases::normal<float>(qs, 1, 1.5)),
        k(cases::normal<float>({qs[0], key_heads, keys, qs[3]}, 2, 1.5)),
        v(cases::normal<float>({qs[0], key_heads, keys, dv}, 3)),
        outer{qs[0], qs[1], qs[2]} {}
  template <class Mask = regroup::no_mask>
  [[nodiscard]] states of_keys(std::int64_t first, std::int64_t last, const Mask& mask = {}) const {
    return computed(outer, on_device(q),
                    cuda::dense(on_device(cases::slice(k.view(), 2, first, last)),
                                on_device(cases::slice(v.view(), 2, first, last))), mask);
  }
  [[nodiscard]] host_state on_the_host(std::int64_t first, std::int64_t last,
                                       const regroup::attention_mask& mask = {}) const {
    return host_state(regroup::seq, q.view(),
                      regroup::dense(cases::slice(k.view(), 2, first, last), cases::slice(v.view(), 2, first, last)),
                      {.mask = mask});
  }
};

}  // namespace

TEST(raised, is_the_combine_with_a_maximum_alone) {
  using monoid = regroup::softmax_mean<float, regroup::fixed_vector<float, 3>>;
  const float infinity = std::numeric_limits<float>::infinity();
  const monoid m;
  for (const float own : {-infinity, -3e38f, -90.f, -0.0f, 0.0f, 1e-44f, 1.5f, 3e38f, infinity}) {
    monoid::state s{own, 3.3f, {{-0.0f, 1e-38f, -7.7f}}};
    if (own == -infinity) s = m.identity();
    for (const float top : {-infinity, -3e38f, -89.f, -0.0f, 0.0f, 0.3f, 88.f, 3e38f, infinity}) {
      if (top < own) continue;
      const auto got = cuda::raised(s, top), expected = m(s, {top, 0, m.identity().o});
      EXPECT_EQ(got.m, expected.m);
      EXPECT_EQ(cases::bits(got.l), cases::bits(expected.l)) << own << " to " << top;
      for (std::size_t k = 0; k < 3; ++k) EXPECT_EQ(cases::bits(got.o[k]), cases::bits(expected.o[k])) << own << ", " << top;
    }
  }
}

TEST(attention_states, have_the_hosts_bits) {
  for (const auto& [q, key_heads, keys, dv] : std::vector<std::tuple<shape, std::int64_t, std::int64_t, std::int64_t>>{
           {{2, 4, 9, 33}, 2, 70, 40}, {{1, 2, 5, 3}, 1, 1030, 130}, {{1, 1, 4, 4}, 1, 0, 5}, {{1, 2, 3, 4}, 2, 7, 0}}) {
    const problem p(q, key_heads, keys, dv);
    EXPECT_TRUE(same(p.of_keys(0, keys), p.on_the_host(0, keys))) << to_string(q) << ", " << keys << " keys";
  }
  const problem p({1, 2, 9, 8}, 1, 4, 5);  // more queries than keys: causal, the first ones see none
  EXPECT_TRUE(same(p.of_keys(0, 4, regroup::causal{}), p.on_the_host(0, 4, regroup::causal{})));
}

TEST(attention_states, merge_and_normalise_as_the_hosts) {
  const problem p({2, 4, 9, 16}, 2, 300, 131);
  states whole = p.of_keys(0, 100);
  auto expected = p.on_the_host(0, 100);
  const std::vector<float> sinks{0.5f, -std::numeric_limits<float>::infinity(), 3, 0};
  for (const auto& [first, last] : {std::pair(100, 100), std::pair(100, 230), std::pair(230, 300)}) {
    const states part = p.of_keys(first, last);
    machine on(schedule::random, 9);
    on.run(cuda::merge_of(part.read(), whole.all()), 3);
    expected.merge(p.on_the_host(first, last));
    ASSERT_TRUE(same(whole, expected)) << first;
  }
  tensor<float> out({2, 4, 9, 131}), wanted = out, lse({2, 4, 9}), wanted_lse = lse;
  machine on(schedule::random, 10);
  on.run(cuda::normalise_of<float>(whole.read(), {out.values.data(), out.extents},
                                   cuda::device_view<float>(lse.values.data(), lse.extents), on_device(sinks)),
         2);
  expected.normalise(wanted.view(), wanted_lse.view(), sinks);
  EXPECT_TRUE(same_bits(out, wanted));
  EXPECT_TRUE(same_bits(lse, wanted_lse));
  machine again(schedule::forward);
  on.run(cuda::merge_of(whole.read(), whole.all()), 1);  // with itself
  expected.merge(expected);
  EXPECT_TRUE(same(whole, expected));
}

TEST(attention_states, of_no_keys_hold_nothing) {
  const problem p({1, 2, 3, 4}, 1, 20, 5);
  states none = p.of_keys(0, 0), some = p.of_keys(0, 20);
  std::fill(none.l.values.begin(), none.l.values.end(), 1.0f);  // another's logsumexp of nothing comes so
  std::fill(none.o.values.begin(), none.o.values.end(), std::numeric_limits<float>::quiet_NaN());
  machine on(schedule::random, 2);
  on.run(cuda::merge_of(none.read(), some.all()), 1);
  EXPECT_TRUE(same(some, p.on_the_host(0, 20)));
  tensor<float> out({1, 2, 3, 5}), wanted = out;
  on.run(cuda::normalise_of<float>(none.read(), {out.values.data(), out.extents}, {}, {}), 1);
  p.on_the_host(0, 0).normalise(wanted.view());
  EXPECT_TRUE(same_bits(out, wanted));

  auto s = cuda::states_shape::monoid{}.identity();  // a neighbour's products may have made another zero of O
  for (float& x : s.o.values) x = 0;
  s = cuda::finished(s);
  for (const float x : s.o.values) EXPECT_TRUE(std::signbit(x));
}

TEST(attention_states, of_ragged_queries_are_by_head) {
  const std::vector<int> offsets{0, 3, 3, 8}, key_offsets{0, 40, 45, 50};
  const auto q = cases::normal<float>({8, 4, 6}, 1), k = cases::normal<float>({50, 2, 6}, 2);
  const auto got = computed({4, 8}, cuda::ragged(on_device(q), on_device(offsets), 5),
                            cuda::ragged(on_device(k), on_device(k), on_device(key_offsets), 40), regroup::causal{});
  const host_state expected(regroup::seq, regroup::ragged(q.view(), offsets),
                            regroup::ragged(k.view(), k.view(), key_offsets), {.mask = regroup::causal{}});
  EXPECT_TRUE(same(got, expected));
}

TEST(attention_states, refuse_what_does_not_fit) {
  states a({2, 3}, 4), b({2, 3}, 5);
  EXPECT_EQ(said<regroup::shape_error>([&] { cuda::merge_of(b.read(), a.all()); }),
            "attention states merge where they hold the same queries; got o of (2, 3, 4) and (2, 3, 5)");
  states deep({1, 1, 1, 2, 3}, 4);
  EXPECT_THROW(cuda::merge_of(deep.read(), a.all()), regroup::shape_error);
  const cuda::attention_states<float> mixed{a.all().m, b.all().o, a.all().o};
  EXPECT_EQ(said<regroup::shape_error>([&] { cuda::require_states(mixed); }),
            "an attention state has m and l of shape (..., heads, queries) and o of (..., heads, queries, dv); got (2, 3), "
            "(2, 3, 5) and (2, 3, 4)");
  const auto own = a.all();
  EXPECT_THROW(cuda::require_states(cuda::attention_states<float>{own.m, own.m, own.o}), regroup::overlap_error);
  EXPECT_THROW(cuda::normalise_of<float>(a.read(), own.o, {}, {}), regroup::overlap_error);
  EXPECT_THROW(cuda::merge_of({a.read().l, a.read().m, a.read().o}, own), regroup::overlap_error);
}

TEST(attention_states, a_merge_without_its_barrier_is_caught) {
  const problem p({1, 1, 3, 4}, 1, 20, 5);
  const states one = p.of_keys(0, 12), other = p.of_keys(12, 20);
  auto expected = p.on_the_host(0, 12);
  expected.merge(p.on_the_host(12, 20));
  const auto merges = [&](machine& on) {
    states whole = one;
    on.run(cuda::merge_of(other.read(), whole.all()), 1);
    return static_cast<bool>(same(whole, expected));
  };
  EXPECT_EQ(emulated::each_is_caught(emulated::fault::skip_barrier, merges), 2);
}
