// SPDX-License-Identifier: Apache-2.0
// Attention on a device has the bits of the host's: any extents, element type, strides, pages, lengths, rule, sinks and
// special values; whatever the plan, the grid and the order in which threads run.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "attentions.hpp"
#include "folds.hpp"

namespace {

using cases::same_bits;
using cases::tensor;
using emulated::machine;
using emulated::on_device;
using emulated::schedule;
using regroup::causal;
using regroup::view;
namespace cuda = regroup::cuda;

using regroup::index;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

struct extents {
  index batches, heads, key_heads, queries, keys, d, dv;
};

/// bfloat16 goes to float.
template <class T>
using out_of = std::conditional_t<std::same_as<T, regroup::bfloat16>, float, T>;

template <class T>
struct problem {
  tensor<T> q, k, v;
  explicit problem(const extents& e, unsigned seed = 1)
      : q(cases::normal<T>({e.batches, e.heads, e.queries, e.d}, seed, 1.5)),
        k(cases::normal<T>({e.batches, e.key_heads, e.keys, e.d}, seed + 1, 1.5)),
        v(cases::normal<T>({e.batches, e.key_heads, e.keys, e.dv}, seed + 2)) {}
  template <class Mask = regroup::no_mask>
  [[nodiscard]] auto emulated(machine on = machine(schedule::random, 5), const Mask& mask = {}, int processors = 1,
                              index blocks = 1 << 20) const {
    return emulated::attend<T, out_of<T>>(on, q.view(), cuda::dense(on_device(k), on_device(v)),
                               cuda::attention_options<Mask>{.mask = mask}, processors, blocks);
  }
  [[nodiscard]] auto on_the_host(const regroup::attention_mask& mask = {}) const {
    return emulated::on_the_host<T, out_of<T>>(q.view(), regroup::dense(k.view(), v.view()), {.mask = mask});
  }
};

template <class T>
void any_extents() {
  std::vector<extents> all = {{1, 1, 1, 1, 1, 1, 1},     {1, 1, 1, 3, 65, 5, 3},     {2, 4, 2, 9, 70, 33, 40},
                              {1, 6, 2, 13, 130, 64, 65}, {1, 2, 1, 5, 1030, 3, 130}, {1, 8, 1, 1, 2100, 8, 16},
                              {2, 1, 1, 40, 64, 70, 64},  {1, 2, 2, 0, 7, 4, 4},      {1, 1, 1, 4, 0, 4, 5},
                              {1, 1, 1, 3, 7, 0, 4},      {1, 1, 1, 70, 130, 0, 4},   {1, 1, 1, 3, 7, 4, 0}};
  if (order::small() || !std::same_as<T, float>) all.resize(5);
  unsigned seed = 1;
  for (const extents& e : all) {
    const problem<T> p(e, ++seed);
    ASSERT_TRUE(same_bits(p.emulated(machine(schedule::random, 5), causal{}), p.on_the_host(causal{})))
        << e.queries << " queries, " << e.keys << " keys, d " << e.d << ", dv " << e.dv;
  }
}

/// Rules of the library, of which each is a host's and a device's.
struct rules_of {
  tensor<float> bias{cases::normal<float>({2, 1, 90}, 7)};
  std::vector<unsigned char> seen = std::vector<unsigned char>(90, 1);
  std::vector<float> slopes = {0.5f, 0.25f};
  rules_of() {
    for (const index j : {0, 5, 64, 88}) seen[static_cast<std::size_t>(j)] = 0;
    bias.view()(0, 0, 3) = -infinity;
    bias.view()(1, 0, 80) = -infinity;
  }
};
struct every_third {
  template <class Real>
  constexpr Real operator()(Real s, index batch, index head, index query, index key) const {
    return (key + query + head + batch) % 3 == 0 ? Real{regroup::hidden} : s;
  }
};

template <class Mask>
void expect_same(const problem<float>& p, const Mask& on_device_mask, const regroup::attention_mask& mask,
                 const char* what) {
  EXPECT_TRUE(same_bits(p.emulated(machine(schedule::random, 9), on_device_mask), p.on_the_host(mask))) << what;
}

TEST(device_attention, any_extents_of_float) { any_extents<float>(); }
TEST(device_attention, any_extents_of_float16) { any_extents<regroup::float16>(); }
TEST(device_attention, any_extents_of_bfloat16) { any_extents<regroup::bfloat16>(); }

TEST(device_attention, no_schedule_plan_or_grid_changes_a_bit) {
  if (order::small()) GTEST_SKIP() << "the memory is the same";
  const problem<float> p({1, 3, 1, 11, 1100, 9, 7});
  const auto expected = p.on_the_host(causal{});
  for (auto [name, on] : emulated::machines()) EXPECT_TRUE(same_bits(p.emulated(on, causal{}), expected)) << name;
  for (const int processors : {1, 4, 132}) {
    for (const index blocks : {index{1}, index{3}}) {
      EXPECT_TRUE(same_bits(p.emulated(machine(), causal{}, processors, blocks), expected)) << processors << ", " << blocks;
    }
  }
}

/// Queries, each with keys of its own, some of them with leaves at both ends and in between that it alone sees nothing of.
struct far_apart {
  [[nodiscard]] constexpr regroup::key_range range(index, index head, index query) const {
    constexpr index first[] = {0, 1500, 3000, 5000, 0, 0, 2047, 4096}, last[] = {6000, 1501, 3000, 6000, 1, 900, 2049, 5120};
    const auto i = static_cast<std::size_t>(query / 8 * 2 + head * 2 + query % 2) % 8;
    return {first[i], last[i]};
  }
};
TEST(device_attention, leaves_in_parts_of_any_reach) {
  const problem<float> p({1, 2, 1, 9, 6000, 4, 5});
  const auto expected = p.on_the_host(far_apart{});
  tensor<float> out({1, 2, 9, 5});
  const cuda::attention_options<far_apart> options;
  const auto work = cuda::attention_work_of<float>(on_device(p.q), cuda::dense(on_device(p.k), on_device(p.v)),
                                                   cuda::device_view<float>(out.values.data(), out.extents), options);
  ASSERT_EQ(work.leaves, 6);
  const emulated::any_rule::of<far_apart> rule({});
  for (const index reach : {1, 2, 4, 8}) {
    auto plan = cuda::plan_attention(work.call, work.leaves, 0);
    ASSERT_EQ(plan.parts, 1);
    plan.reach = reach;
    plan.parts = (work.leaves + reach - 1) / reach;
    plan.blocks = std::min<index>(3, plan.units * plan.parts);
    cuda::plain_arithmetic::with_shape<float>(plan, [&]<class Shape>(Shape) { plan.place_workspace<Shape>(); });
    machine on;
    std::fill(out.values.begin(), out.values.end(), -1.0f);
    emulated::attend(on, emulated::any_work<float, float>{work.call, {&rule}, work.put, work.leaves}, plan);
    EXPECT_TRUE(same_bits(out, expected.out)) << reach;
  }
}

TEST(device_attention, every_rule) {
  const problem<float> p({2, 2, 1, 7, 90, 6, 5});
  const rules_of r;
  const view<const unsigned char> seen(r.seen);
  for (const auto corner : {regroup::top_left, regroup::bottom_right}) {
    expect_same(p, causal{corner}, causal{corner}, "causal");
  }
  for (const auto& w : {regroup::window{3, 2}, {-1, 0}, {0, -1}, {20, 0}}) expect_same(p, w, w, "window");
  const regroup::softcap cap{1.5};
  expect_same(p, cap, cap, "softcap");
  expect_same(p, cuda::alibi{on_device(r.slopes)}, regroup::alibi(r.slopes), "alibi");
  expect_same(p, cuda::additive(on_device(r.bias)), regroup::additive(r.bias.view()), "additive");
  expect_same(p, cuda::boolean(on_device(seen)), regroup::boolean(seen), "boolean");
  expect_same(p, every_third{}, every_third{}, "a user's");
  expect_same(p, cap & cuda::additive(on_device(r.bias)) & every_third{} & causal{},
              cap & regroup::additive(r.bias.view()) & every_third{} & causal{}, "several");
}

TEST(device_attention, pages_of_any_size_and_lengths) {
  const problem<float> p({3, 2, 2, 5, 210, 6, 5});
  const std::vector<int> lengths = {210, 131, 0};
  const auto expected =
      emulated::on_the_host<float>(p.q.view(), regroup::dense(p.k.view(), p.v.view(), lengths), {.mask = causal{}});
  const regroup::window last_20{20, 0};
  const auto expected_in_window =
      emulated::on_the_host<float>(p.q.view(), regroup::dense(p.k.view(), p.v.view(), lengths), {.mask = last_20});
  const cuda::attention_options<causal> options{.mask = {}};
  const cuda::attention_options<regroup::window> windowed{.mask = last_20};
  machine on(schedule::random, 3);
  EXPECT_TRUE(same_bits(emulated::attend<float>(on, p.q.view(),
                                                cuda::dense(on_device(p.k), on_device(p.v), on_device(lengths)), options),
                        expected));
  for (const index size : {1, 7, 16, 64, 100, 300}) {
    const index pages = (210 + size - 1) / size;
    std::vector<int> table(static_cast<std::size_t>(3 * pages));
    std::iota(table.begin(), table.end(), 0);
    std::shuffle(table.begin(), table.end(), std::mt19937(static_cast<unsigned>(size)));
    tensor<float> k({3 * pages, 2, size, 6}), v({3 * pages, 2, size, 5});
    for (auto* const pool : {&k, &v}) std::fill(pool->values.begin(), pool->values.end(), not_a_number);
    for (index b = 0; b < 3; ++b) {
      for (index j = 0; j < lengths[static_cast<std::size_t>(b)]; ++j) {
        const index page = table[static_cast<std::size_t>(b * pages + j / size)];
        for (index h = 0; h < 2; ++h) {
          for (index c = 0; c < 6; ++c) k.view()(page, h, j % size, c) = p.k.view()(b, h, j, c);
          for (index c = 0; c < 5; ++c) v.view()(page, h, j % size, c) = p.v.view()(b, h, j, c);
        }
      }
    }
    for (index i = (131 + size - 1) / size; i < pages; ++i)
      table[static_cast<std::size_t>(pages + i)] = -7;  // never looked at
    const cuda::device_view<const int> pages_of(table.data(), {3, pages});
    EXPECT_TRUE(same_bits(
        emulated::attend<float>(on, p.q.view(),
                                cuda::paged(on_device(k), on_device(v), pages_of, on_device(lengths)), options),
        expected))
        << "pages of " << size;
    for (index b = 0; b < 2; ++b) {  // a window has left these behind
      for (index i = 0; (i + 1) * size <= lengths[static_cast<std::size_t>(b)] - 5 - 20; ++i)
        table[static_cast<std::size_t>(b * pages + i)] = -7;
    }
    EXPECT_TRUE(same_bits(
        emulated::attend<float>(on, p.q.view(),
                                cuda::paged(on_device(k), on_device(v), pages_of, on_device(lengths)), windowed),
        expected_in_window))
        << "pages of " << size << ", in a window";
  }
}

TEST(device_attention, strides_ranks_and_sinks) {
  const problem<regroup::float16> p({1, 4, 2, 6, 70, 8, 9});
  const std::vector<float> sinks = {0.5f, -infinity, 3, -2};
  const auto expected = emulated::on_the_host<regroup::float16>(p.q.view(), regroup::dense(p.k.view(), p.v.view()),
                                                                {.scale = -0.3, .sinks = sinks});
  const cuda::attention_options<> options{.scale = -0.3, .sinks = on_device(sinks)};
  machine on(schedule::random, 4);
  EXPECT_TRUE(same_bits(emulated::attend<regroup::float16>(
                            on, p.q.view(), cuda::dense(on_device(p.k), on_device(p.v)), options),
                        expected));
  // (keys, heads, d) seen as (heads, keys, d), backwards in memory
  const auto turned = [](const tensor<regroup::float16>& x, std::vector<regroup::float16>& memory) {
    const index heads = x.extents[1], n = x.extents[2], d = x.extents[3];
    memory.resize(x.values.size());
    const view<regroup::float16> to(memory.data() + memory.size() - 1, {heads, n, d}, {-d, -heads * d, -1});
    for (index h = 0; h < heads; ++h) {
      for (index j = 0; j < n; ++j) {
        for (index c = 0; c < d; ++c) to(h, j, c) = x.view()(0, h, j, c);
      }
    }
    return view<const regroup::float16>(to);
  };
  std::vector<regroup::float16> q_memory, k_memory, v_memory;
  const auto q = turned(p.q, q_memory), k = turned(p.k, k_memory), v = turned(p.v, v_memory);
  const auto got = emulated::attend<regroup::float16>(on, q, cuda::dense(on_device(k), on_device(v)), options);
  EXPECT_TRUE(cases::same_bits<regroup::float16>(got.out.view(), expected.out.view()[0]));
  EXPECT_TRUE(cases::same_bits<float>(got.lse.view(), expected.lse.view()[0]));
}

TEST(device_attention, special_values) {
  const extents e{1, 2, 2, 5, 140, 4, 6};
  const auto both = [](const problem<float>& p, const char* what) {
    for (const auto& [name, on] : emulated::machines()) {
      EXPECT_TRUE(same_bits(p.emulated(on, causal{}), p.on_the_host(causal{}))) << name << ", " << what;
      EXPECT_TRUE(same_bits(p.emulated(on, every_third{}), p.on_the_host(every_third{}))) << name << ", " << what;
    }
  };
  for (const float x : {not_a_number, infinity, -infinity, 3e38f, -0.0f, 1e-44f}) {
    const std::string what = std::to_string(x);
    for (const index j : {63, 138}) {
      problem<float> value(e), key(e);
      value.v.view()(0, 1, j, 2) = x;
      both(value, ("a value of " + what).c_str());
      for (index c = 0; c < 4; ++c) key.k.view()(0, 1, j, c) = x;
      both(key, ("a key of " + what).c_str());
    }
    problem<float> query(e), all(e);
    query.q.view()(0, 1, 4, 1) = x;
    both(query, ("a query of " + what).c_str());
    for (float& y : all.k.values) y = x;
    for (float& y : all.q.values) y = 1;
    both(all, ("every key " + what).c_str());
    for (float& y : all.v.values) y = x;
    both(all, ("every value too " + what).c_str());
  }
  problem<float> huge(e);
  for (float& x : huge.q.values) x *= 1e4f;
  both(huge, "huge scores");
  const auto nothing = [](auto, index, index, index, index) { return float{regroup::hidden}; };
  const auto none = huge.emulated(machine(), nothing);
  for (const float x : none.out.values) EXPECT_EQ(cases::bits(x), cases::bits(0.0f));
  for (const float x : none.lse.values) EXPECT_EQ(x, -infinity);
}

}  // namespace
