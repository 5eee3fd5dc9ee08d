// SPDX-License-Identifier: Apache-2.0
// Ragged batches on a device: each request has the host's bits, over ragged, padded and paged keys, with every rule;
// memory that belongs to no request is neither read (NaN stands before, between and behind tokens) nor written, whatever the
// offsets hold.
#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "attentions.hpp"
#include "folds.hpp"

namespace {

using cases::same_bits;
using cases::slice;
using cases::tensor;
using emulated::machine;
using emulated::on_device;
using emulated::schedule;
using regroup::causal;
using regroup::index;
using regroup::key_range;
using regroup::view;
namespace cuda = regroup::cuda;

constexpr index heads = 4, key_heads = 2, d = 6, dv = 5;
constexpr index margin = 2;  // tokens before those of the first request, and behind those of the last
constexpr float infinity = std::numeric_limits<float>::infinity();
using counts = std::vector<index>;

/// (tokens, heads, width), which stand in the middle of NaNs.
template <class T>
struct tokens {
  index count, width;
  tensor<T> memory;
  tokens(index n, index of_heads, index w, unsigned seed)
      : count(n), width(w), memory(cases::normal<T>({n + 2 * margin, of_heads, w + 1}, seed, 1.5)) {
    const index row = of_heads * (w + 1);
    for (index i = 0; i < static_cast<index>(memory.values.size()); ++i) {
      const bool is_own = i / row >= margin && i / row < margin + n && i % (w + 1) < w;
      if (!is_own) memory.values[static_cast<std::size_t>(i)] = static_cast<T>(std::numeric_limits<float>::quiet_NaN());
    }
  }
  [[nodiscard]] view<const T> all() const { return slice(memory.view(), 2, 0, width); }
  [[nodiscard]] view<const T> own() const { return slice(all(), 0, margin, margin + count); }
  /// Some of them, as (heads, tokens, width).
  [[nodiscard]] view<const T> part(const key_range& of) const {
    return slice(own(), 0, of.first, of.last).permuted({1, 0, 2});
  }
};

template <class Int>
std::vector<Int> offsets_of(const counts& of, index first) {
  std::vector<Int> offsets = {static_cast<Int>(first)};
  for (const index n : of) offsets.push_back(offsets.back() + static_cast<Int>(n));
  return offsets;
}
index sum(const counts& of) { return std::accumulate(of.begin(), of.end(), index{0}); }
index most(const counts& of) { return *std::max_element(of.begin(), of.end()); }

template <class T>
using out_of = std::conditional_t<std::same_as<T, regroup::bfloat16>, float, T>;

template <class T>
struct batch {
  using answer = cases::answer<T, out_of<T>>;
  counts of_q = {3, 0, 37, 1, 5, 2}, of_k = {70, 5, 1225, 0, 64, 1};
  tokens<T> q{sum(of_q), heads, d, 1}, k{sum(of_k), key_heads, d, 2}, v{sum(of_k), key_heads, dv, 3};
  std::vector<int> q_offsets = offsets_of<int>(of_q, margin), k_offsets = offsets_of<int>(of_k, margin);
  index most_q = most(of_q), most_k = most(of_k);

  [[nodiscard]] auto queries() const { return cuda::ragged(on_device(q.all()), on_device(q_offsets), most_q); }
  [[nodiscard]] auto keys() const {
    return cuda::ragged(on_device(k.all()), on_device(v.all()), on_device(k_offsets), most_k);
  }
  template <class Arithmetic = cuda::plain_arithmetic, class Mask = regroup::no_mask>
  [[nodiscard]] answer emulated(const Mask& mask = {}, machine on = machine(schedule::random, 5), int processors = 1,
                                index blocks = 1 << 20) const {
    return emulated::attend<T, out_of<T>, Mask, Arithmetic>(
        on, queries(), keys(), cuda::attention_options<Mask>{.mask = mask}, processors, blocks);
  }
  /// The host's, which knows only the requests' own tokens.
  template <class Keys>
  [[nodiscard]] answer on_the_host(const Keys& from, regroup::attention_options options = {}) const {
    answer a{tensor<out_of<T>>({q.count, heads, dv}), tensor<float>({q.count, heads})};
    options.logsumexp = a.lse.view();
    regroup::attention(regroup::seq, regroup::ragged(q.own(), offsets_of<index>(of_q, 0)), from, a.out.view(), options);
    return a;
  }
  [[nodiscard]] auto host_keys() const { return regroup::ragged(k.own(), v.own(), offsets_of<index>(of_k, 0)); }
};

/// As the host's, and untouched before and behind.
template <class T, class Out>
testing::AssertionResult same_as_host(const cases::answer<T, Out>& got, const cases::answer<T, Out>& host) {
  const index n = host.lse.extents[0];
  const auto outside = [&](const auto& x) {
    const index row = x.view().stride(0);
    for (index i = 0; i < x.view().size(); ++i) {
      const bool is_own = i / row >= margin && i / row < margin + n;
      if (!is_own && static_cast<float>(x.values[static_cast<std::size_t>(i)]) != emulated::untouched) return false;
    }
    return true;
  };
  if (!outside(got.out) || !outside(got.lse)) return testing::AssertionFailure() << "a token of nobody's is written";
  const auto out = same_bits<Out>(slice(got.out.view(), 0, margin, margin + n), host.out.view());
  return out ? same_bits<float>(slice(got.lse.view(), 0, margin, margin + n), host.lse.view()) : out;
}

/// Requests of which each has these queries and keys, against the host's attention of each alone.
template <class T, class Out>
void expect_each_alone(const batch<T>& b, const cases::answer<T, Out>& got,
                       const std::vector<std::pair<key_range, key_range>>& requests) {
  std::vector<bool> is_written(static_cast<std::size_t>(b.q.count + 2 * margin), false);
  for (const auto& request : requests) {
    const key_range &q = request.first, &k = request.second;
    const auto alone = emulated::on_the_host<T, Out>(b.q.part(q), regroup::dense(b.k.part(k), b.v.part(k)),
                                                     {.mask = causal{}});
    const auto part = [&](const auto& x) { return slice(x.view(), 0, margin + q.first, margin + q.last); };
    EXPECT_TRUE(same_bits<Out>(part(got.out).permuted({1, 0, 2}), alone.out.view())) << q.first;
    EXPECT_TRUE(same_bits<float>(part(got.lse).permuted({1, 0}), alone.lse.view())) << q.first;
    for (index i = q.first; i < q.last; ++i) is_written[static_cast<std::size_t>(margin + i)] = true;
  }
  for (index i = 0; i < static_cast<index>(is_written.size()); ++i) {
    if (is_written[static_cast<std::size_t>(i)]) continue;
    for (index h = 0; h < heads; ++h) {
      EXPECT_EQ(got.lse.view()(i, h), emulated::untouched) << i;
      EXPECT_EQ(static_cast<float>(got.out.view()(i, h, 0)), emulated::untouched) << i;
    }
  }
}
template <class T>
std::vector<std::pair<key_range, key_range>> requests_of(const batch<T>& b) {
  const auto q = offsets_of<index>(b.of_q, 0), k = offsets_of<index>(b.of_k, 0);
  std::vector<std::pair<key_range, key_range>> all;
  for (std::size_t r = 0; r < b.of_q.size(); ++r) all.push_back({{q[r], q[r + 1]}, {k[r], k[r + 1]}});
  return all;
}

TEST(ragged_device_attention, each_request_has_the_bits_it_has_alone) {
  const batch<float> wide;
  expect_each_alone(wide, wide.emulated(causal{}), requests_of(wide));
  if (order::small()) return;
  const batch<regroup::float16> half;
  expect_each_alone(half, half.emulated(causal{}), requests_of(half));
  const batch<regroup::bfloat16> brain;
  expect_each_alone(brain, brain.emulated(causal{}), requests_of(brain));
}

TEST(ragged_device_attention, no_schedule_plan_or_grid_changes_a_bit) {
  if (order::small()) GTEST_SKIP() << "the memory is the same";
  const batch<float> b;
  const auto expected = b.on_the_host(b.host_keys(), {.mask = causal{}});
  for (auto [name, on] : emulated::machines()) EXPECT_TRUE(same_as_host(b.emulated(causal{}, on), expected)) << name;
  for (const int processors : {4, 1000}) {
    for (const index blocks : {index{1}, index{3}}) {
      EXPECT_TRUE(same_as_host(b.emulated(causal{}, machine(), processors, blocks), expected)) << processors;
    }
  }
}

struct every_third {
  template <class Real>
  constexpr Real operator()(Real s, index request, index head, index query, index key) const {
    return (key + query + head + request) % 3 == 0 ? Real{regroup::hidden} : s;
  }
};

TEST(ragged_device_attention, every_rule_counts_from_the_requests_own_lengths) {
  const batch<float> b;
  const auto expect_same = [&](const auto& mask, const regroup::attention_mask& hosts, const char* what) {
    EXPECT_TRUE(same_as_host(b.emulated(mask), b.on_the_host(b.host_keys(), {.mask = hosts}))) << what;
  };
  const std::vector<float> slopes = {0.5f, 0.25f, 0.125f, 0};
  tensor<float> bias = cases::normal<float>({6, 1, 37, 1225}, 7);
  for (index i = 0; i < 37; ++i) bias.view()(2, 0, i, 30 * i) = -infinity;
  std::vector<unsigned char> bytes(1225, 1);
  for (const index j : {0, 5, 64, 1088}) bytes[static_cast<std::size_t>(j)] = 0;
  const view<const unsigned char> seen(bytes);
  const regroup::softcap cap{1.5};
  expect_same(cuda::alibi{on_device(slopes)}, regroup::alibi(slopes), "alibi");
  expect_same(cuda::boolean(on_device(seen)), regroup::boolean(seen), "boolean");
  expect_same(cap & cuda::additive(on_device(bias)) & every_third{} & causal{},
              cap & regroup::additive(bias.view()) & every_third{} & causal{}, "several");
  if (order::small()) return;  // those that read memory
  for (const auto corner : {regroup::top_left, regroup::bottom_right}) {
    expect_same(causal{corner}, causal{corner}, "causal");
  }
  for (const auto& w : {regroup::window{3, 2}, {-1, 0}, {0, -1}, {1100, 0}}) expect_same(w, w, "window");
  expect_same(cuda::additive(on_device(bias)), regroup::additive(bias.view()), "additive");
  expect_same(every_third{}, every_third{}, "a user's");
}

TEST(ragged_device_attention, sinks_and_a_scale) {
  const batch<float> b;
  const std::vector<float> sinks = {0.5f, -infinity, 3, -2};
  machine on(schedule::random, 4);
  const auto got = emulated::attend<float>(on, b.queries(), b.keys(),
                                           cuda::attention_options<>{.scale = -0.3, .sinks = on_device(sinks)});
  EXPECT_TRUE(same_as_host(got, b.on_the_host(b.host_keys(), {.scale = -0.3, .sinks = sinks})));
}

TEST(ragged_device_attention, padded_and_paged_keys) {
  const batch<float> b;
  constexpr index page = 16, pages = 77, requests = 6;
  std::vector<int> table(requests * pages, -1), lengths;
  tensor<float> k_pool({90, key_heads, page, d}), v_pool({90, key_heads, page, dv});
  tensor<float> k_padded({requests, key_heads, page * pages, d}), v_padded({requests, key_heads, page * pages, dv});
  for (auto* const x : {&k_pool, &v_pool, &k_padded, &v_padded}) {
    std::fill(x->values.begin(), x->values.end(), std::numeric_limits<float>::quiet_NaN());
  }
  int next = 89;
  index from = 0;
  for (index r = 0; r < requests; ++r) {
    lengths.push_back(static_cast<int>(b.of_k[static_cast<std::size_t>(r)]));
    for (index j = 0; j < lengths.back(); ++j, ++from) {
      int& at = table[static_cast<std::size_t>(r * pages + j / page)];
      if (j % page == 0) at = next--;
      for (index h = 0; h < key_heads; ++h) {
        for (index c = 0; c < d; ++c) {
          k_pool.view()(at, h, j % page, c) = k_padded.view()(r, h, j, c) = b.k.own()(from, h, c);
        }
        for (index c = 0; c < dv; ++c) {
          v_pool.view()(at, h, j % page, c) = v_padded.view()(r, h, j, c) = b.v.own()(from, h, c);
        }
      }
    }
  }
  const auto expected = b.on_the_host(b.host_keys(), {.mask = causal{}});
  const cuda::attention_options<causal> options{.mask = {}};
  machine on(schedule::random, 6);
  const auto paged = cuda::paged(on_device(k_pool), on_device(v_pool),
                                 cuda::device_view<const int>(table.data(), {requests, pages}), on_device(lengths));
  EXPECT_TRUE(same_as_host(emulated::attend<float>(on, b.queries(), paged, options), expected));
  const auto padded = cuda::dense(on_device(k_padded), on_device(v_padded), on_device(lengths));
  EXPECT_TRUE(same_as_host(emulated::attend<float>(on, b.queries(), padded, options), expected));
}

TEST(ragged_device_attention, longer_requests_are_cut) {
  batch<float> b;
  b.most_q = 4;
  b.most_k = 66;
  auto requests = requests_of(b);
  for (auto& [q, k] : requests) {
    q.last = std::min(q.last, q.first + b.most_q);
    k.last = std::min(k.last, k.first + b.most_k);
  }
  expect_each_alone(b, b.emulated(causal{}), requests);
  b.most_q = b.most_k = 0;
  expect_each_alone(b, b.emulated(causal{}), {});
}

TEST(ragged_device_attention, no_offset_leads_out_of_the_tokens) {
  batch<float> b;
  b.of_q = {3, 0, 45};
  b.most_q = 1 << 10;  // more than there are
  b.q_offsets = {-5, margin + 3, margin + 3, 1 << 30};
  b.k_offsets = {-1, margin + 70, margin + 30, std::numeric_limits<int>::max()};
  const auto got = b.emulated(regroup::no_mask{});  // their NaNs are tokens like others, until the last
  EXPECT_TRUE(std::isnan(got.out.view()(0, 0, 0)));
  EXPECT_TRUE(std::isnan(got.out.view()(margin + 47 + margin, 0, 0)));
  b.q_offsets = {margin, margin + 3, margin + 3, margin + 48};
  b.k_offsets = {margin, margin + 70, margin + 30, margin + 900};  // the second has none, the third some of the first's
  expect_each_alone(b, b.emulated(causal{}), {{{0, 3}, {0, 70}}, {{3, 48}, {30, 900}}});
}

TEST(ragged_device_attention, on_tensor_cores_each_request_has_the_bits_it_has_alone) {
  const batch<regroup::bfloat16> b;
  const auto all = b.emulated<cuda::tensor_arithmetic>(causal{});
  for (auto [name, on] : emulated::machines()) {
    if (order::small()) break;
    EXPECT_TRUE(same_bits(b.emulated<cuda::tensor_arithmetic>(causal{}, on, 1, 3), all)) << name;
  }
  machine on;
  for (const auto& [q, k] : requests_of(b)) {
    if (order::small() && k.last - k.first > 100) continue;
    const auto alone = emulated::attend<regroup::bfloat16, float, causal, cuda::tensor_arithmetic>(
        on, b.q.part(q), cuda::dense(on_device(b.k.part(k)), on_device(b.v.part(k))),
        cuda::attention_options<causal>{.mask = {}});
    const auto part = [&, from = q](const auto& x) {
      return slice(x.view(), 0, margin + from.first, margin + from.last);
    };
    EXPECT_TRUE(same_bits<float>(part(all.out).permuted({1, 0, 2}), alone.out.view())) << q.first;
    EXPECT_TRUE(same_bits<float>(part(all.lse).permuted({1, 0}), alone.lse.view())) << q.first;
  }
}

}  // namespace
