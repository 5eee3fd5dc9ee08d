// SPDX-License-Identifier: Apache-2.0
// Attention's states on cuda::device have the bits of the host's attention_state: computed, merged and normalised, also in a
// captured graph. On tensor cores the states of a call, normalised, have the bits of its output. Without a GPU this only
// compiles and links.
#include <algorithm>
#include <vector>

#include "../order/digest.hpp"
#include "gpu.cuh"
#include "regroup/cuda/attention.cuh"
#include "regroup/host/seq.hpp"

namespace {

using order::digest_of;
using regroup::index;
using regroup::shape;
using regroup::view;
namespace cuda = regroup::cuda;

constexpr index batches = 2, heads = 4, key_heads = 2, queries = 37, d = 40, dv = 150, rows = batches * heads * queries;

template <class T>
std::vector<T> elements(index n, std::uint64_t seed) {
  std::vector<T> xs;
  for (const float x : order::numbers<float>(order::kind::plain, n, seed)) xs.push_back(T(x));
  return xs;
}
template <class T>
cuda::device_view<const T> keys_of(const gpu::array<T>& all, index first, index last, index count, index width) {
  return {all.data() + first * width, {batches, key_heads, last - first, width},
          regroup::row_major({batches, key_heads, count, width})};
}

/// States in device memory.
struct states {
  gpu::array<float> m{std::vector<float>(rows)}, l{std::vector<float>(rows)}, o{std::vector<float>(rows * dv)};
  [[nodiscard]] cuda::attention_states<float> all() const {
    const shape outer{batches, heads, queries};
    return {{m.data(), outer}, {l.data(), outer}, {o.data(), {batches, heads, queries, dv}}};
  }
};
std::vector<float> values(const view<const float>& x) { return {x.data(), x.data() + x.size()}; }

void merged_and_normalised(const cuda::device& on) {
  constexpr index count = 2500;
  const auto q = elements<float>(rows * d, 1), k = elements<float>(batches * key_heads * count * d, 2),
             v = elements<float>(batches * key_heads * count * dv, 3);
  const gpu::array<float> q_there(q), k_there(k), v_there(v), out(std::vector<float>(rows * dv));
  const shape full{batches, heads, queries, dv};
  const cuda::device_view<const float> queries_there(q_there.data(), {batches, heads, queries, d});
  const view<const float> q_here(q.data(), {batches, heads, queries, d});
  const states whole, part;
  regroup::attention_state<float> expected;
  index first = 0;
  for (const index last : {1100, 1100, 2500}) {
    regroup::attention(on, queries_there,
              cuda::dense(keys_of(k_there, first, last, count, d), keys_of(v_there, first, last, count, dv)),
              first == 0 ? whole.all() : part.all());
    if (first > 0) regroup::merge_into(on, part.all(), whole.all());
    const view<const float> k_here(k.data() + first * d, {batches, key_heads, last - first, d},
                                   regroup::row_major({batches, key_heads, count, d}));
    const view<const float> v_here(v.data() + first * dv, {batches, key_heads, last - first, dv},
                                   regroup::row_major({batches, key_heads, count, dv}));
    expected.append(regroup::seq, q_here, regroup::dense(k_here, v_here));
    on.synchronize();
    gpu::expect(digest_of(whole.m.values()) == digest_of(values(expected.m())), "m", last);
    gpu::expect(digest_of(whole.l.values()) == digest_of(values(expected.l())), "l", last);
    gpu::expect(digest_of(whole.o.values()) == digest_of(values(expected.o())), "o", last);
    first = last;
  }
  regroup::normalise_into(on, whole.all(), cuda::device_view<float>(out.data(), full));
  std::vector<float> answers(rows * dv);
  expected.normalise(view<float>(answers.data(), full));
  on.synchronize();
  gpu::expect(digest_of(out.values()) == digest_of(answers), "normalised");
}

void on_tensor_cores(const cuda::device& plain) {
  using T = regroup::bfloat16;
  constexpr index count = 1100;
  const gpu::array<T> q(elements<T>(rows * d, 1)), k(elements<T>(batches * key_heads * count * d, 2)),
      v(elements<T>(batches * key_heads * count * dv, 3));
  const gpu::array<float> out(std::vector<float>(rows * dv)), again(std::vector<float>(rows * dv));
  const shape full{batches, heads, queries, dv};
  const auto on = plain.with(cuda::tensor_cores);
  const cuda::device_view<const T> queries_there(q.data(), {batches, heads, queries, d});
  const auto keys = cuda::dense(keys_of(k, 0, count, count, d), keys_of(v, 0, count, count, dv));
  const states whole;
  regroup::attention(on, queries_there, keys, cuda::device_view<float>(out.data(), full));
  regroup::attention(on, queries_there, keys, whole.all());
  regroup::normalise_into(plain, whole.all(), cuda::device_view<float>(again.data(), full));
  on.synchronize();
  gpu::expect(digest_of(out.values()) == digest_of(again.values()), "tensor cores");
}

/// Attention, its states over two parts of the keys, their merge and its division, all in one graph.
void captured_in_a_graph() {
  constexpr index count = 2500, half = 1100;
  const cuda::device on;
  const gpu::array<float> q(elements<float>(rows * d, 1)), k(elements<float>(batches * key_heads * count * d, 2)),
      v(elements<float>(batches * key_heads * count * dv, 3));
  const shape outer{batches, heads, queries}, full{batches, heads, queries, dv};
  const cuda::device_view<const float> queries_there(q.data(), {batches, heads, queries, d});
  const auto keys = [&](index first, index last) {
    return cuda::dense(keys_of(k, first, last, count, d), keys_of(v, first, last, count, dv));
  };
  struct results {
    gpu::array<float> whole{std::vector<float>(rows * dv)}, merged{std::vector<float>(rows * dv)};
    gpu::array<float> lse{std::vector<float>(rows)};
    states first, second;
  };
  const results expected, got;
  const auto out = [&](const gpu::array<float>& x) { return cuda::device_view<float>(x.data(), full); };
  const auto put_states = [&](const cuda::device& where, const results& r) {
    regroup::merge_into(where, r.second.all(), r.first.all());
    regroup::normalise_into(where, r.first.all(), out(r.merged), cuda::device_view<float>(r.lse.data(), outer));
  };
  regroup::attention(on, queries_there, keys(0, count), out(expected.whole));
  regroup::attention(on, queries_there, keys(0, half), expected.first.all());
  regroup::attention(on, queries_there, keys(half, count), expected.second.all());
  put_states(on, expected);
  on.synchronize();

  const std::size_t bytes =
      std::max({regroup::attention_workspace(on, queries_there, keys(0, count), out(got.whole)),
                regroup::attention_workspace(on, queries_there, keys(0, half), got.first.all()),
                regroup::attention_workspace(on, queries_there, keys(half, count), got.second.all())});
  const gpu::array<double> memory(std::vector<double>(bytes / sizeof(double) + 1));
  const cuda::workspace w{memory.data(), bytes};
  gpu::in_a_graph(
      [&](const cuda::device& captured) {
        regroup::attention_into(captured, queries_there, keys(0, count), out(got.whole), w);
        regroup::attention_into(captured, queries_there, keys(0, half), got.first.all(), w);
        regroup::attention_into(captured, queries_there, keys(half, count), got.second.all(), w);
        put_states(captured, got);
      },
      [&] {
        const auto same = [](const gpu::array<float>& a, const gpu::array<float>& b) {
          const bool is_same = digest_of(a.values()) == digest_of(b.values());
          a.forget();
          return is_same;
        };
        gpu::expect(same(got.whole, expected.whole), "attention in a graph");
        gpu::expect(same(got.second.o, expected.second.o), "states in a graph");
        gpu::expect(same(got.first.o, expected.first.o) && same(got.first.l, expected.first.l) &&
                        same(got.first.m, expected.first.m),
                    "merged in a graph");
        gpu::expect(same(got.merged, expected.merged) && same(got.lse, expected.lse), "normalised in a graph");
      });
}

}  // namespace

int main() {
  return gpu::main_of([] {
    const cuda::device on;
    merged_and_normalised(on);
    on_tensor_cores(on);
    captured_in_a_graph();
  });
}
