// SPDX-License-Identifier: Apache-2.0
// Attention beside a plain blocked loop and beside the attention that materialises the matrix, in one run: GFLOP/s (causal
// counts half), and bytes of keys and values a second for decoding.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "regroup/algorithms/attention.hpp"
#include "regroup/algorithms/attention_baseline.hpp"
#include "regroup/host/par.hpp"
#include "regroup/host/seq.hpp"

namespace {

using regroup::index;
using tensor = regroup::view<float>;
using const_tensor = regroup::view<const float>;

struct inputs {
  std::vector<float> q, k, v, out;
  tensor q_view, k_view, v_view, out_view;

  inputs(index heads, index queries, index keys, index d) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    const auto fill = [&](std::vector<float>& x, index n) {
      x.resize(static_cast<std::size_t>(heads * n * d));
      for (float& y : x) y = normal(random);
      return tensor(x.data(), {heads, n, d});
    };
    q_view = fill(q, queries);
    k_view = fill(k, keys);
    v_view = fill(v, keys);
    out_view = fill(out, queries);
  }
};

/// What one writes first: 32 queries by 64 keys, online softmax, plain loops with std::exp.
void plain_blocked(const inputs& in, bool causal) {
  const index heads = in.q_view.extent(0), n = in.q_view.extent(1), keys = in.k_view.extent(1), d = in.q_view.extent(2);
  const float scale = 1 / std::sqrt(static_cast<float>(d));
  constexpr index rows = 32, columns = 64;
  std::vector<float> s(rows * columns), o(static_cast<std::size_t>(rows * d)), m(rows), l(rows);
  for (index h = 0; h < heads; ++h) {
    for (index first = 0; first < n; first += rows) {
      std::fill(o.begin(), o.end(), 0.0f);
      std::fill(m.begin(), m.end(), -std::numeric_limits<float>::infinity());
      std::fill(l.begin(), l.end(), 0.0f);
      const index limit = causal ? std::min(keys, first + rows + keys - n) : keys;
      for (index tile = 0; tile < limit; tile += columns) {
        for (index i = 0; i < rows; ++i) {
          const float* const q = &in.q_view(h, first + i, 0);
          float* const row = s.data() + i * columns;
          for (index j = 0; j < columns; ++j) {
            const float* const k = &in.k_view(h, tile + j, 0);
            float sum = 0;
            for (index c = 0; c < d; ++c) sum += q[c] * k[c];
            row[j] = causal && tile + j > first + i + keys - n ? -std::numeric_limits<float>::infinity() : sum * scale;
          }
          float highest = m[static_cast<std::size_t>(i)];
          for (index j = 0; j < columns; ++j) highest = std::max(highest, row[j]);
          const float factor = std::exp(m[static_cast<std::size_t>(i)] - highest);
          m[static_cast<std::size_t>(i)] = highest;
          float* const to = o.data() + i * d;
          float total = l[static_cast<std::size_t>(i)] * factor;
          for (index c = 0; c < d; ++c) to[c] *= factor;
          for (index j = 0; j < columns; ++j) {
            const float w = std::exp(row[j] - highest);
            total += w;
            const float* const v = &in.v_view(h, tile + j, 0);
            for (index c = 0; c < d; ++c) to[c] += w * v[c];
          }
          l[static_cast<std::size_t>(i)] = total;
        }
      }
      for (index i = 0; i < rows; ++i) {
        for (index c = 0; c < d; ++c) {
          in.out_view(h, first + i, c) = o[static_cast<std::size_t>(i * d + c)] / l[static_cast<std::size_t>(i)];
        }
      }
    }
  }
}

template <class Body>
void prefill(benchmark::State& state, const Body& body) {
  const index n = state.range(0), d = state.range(1);
  const bool causal = state.range(2) != 0;
  const inputs in(8, n, n, d);
  const auto mask = causal ? regroup::attention_mask(regroup::causal{}) : regroup::attention_mask();
  for (auto _ : state) body(in, mask, causal);
  const double flops = 4.0 * 8 * static_cast<double>(n * n * d) / (causal ? 2 : 1);
  state.counters["GFLOP/s"] = benchmark::Counter(flops / 1e9, benchmark::Counter::kIsIterationInvariantRate);
}

void ours_1_thread(benchmark::State& state) {
  prefill(state, [](const inputs& in, const regroup::attention_mask& mask, bool) {
    regroup::attention(regroup::seq, in.q_view, regroup::dense(in.k_view, in.v_view), in.out_view, {.mask = mask});
  });
}
void ours_all_threads(benchmark::State& state) {
  prefill(state, [](const inputs& in, const regroup::attention_mask& mask, bool) {
    regroup::attention(regroup::par, in.q_view, regroup::dense(in.k_view, in.v_view), in.out_view, {.mask = mask});
  });
}
void plain_blocked_loop_1_thread(benchmark::State& state) {
  prefill(state, [](const inputs& in, const regroup::attention_mask&, bool causal) { plain_blocked(in, causal); });
}
void materialised_1_thread(benchmark::State& state) {
  prefill(state, [](const inputs& in, const regroup::attention_mask& mask, bool) {
    regroup::materialised_attention(regroup::seq, in.q_view, regroup::dense(in.k_view, in.v_view), in.out_view,
                                    {.mask = mask});
  });
}
void shapes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"N", "d", "causal"})->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();
  for (const index causal : {0, 1}) {
    b->Args({1024, 64, causal})->Args({4096, 64, causal});
  }
  b->Args({1024, 128, 0});
}
BENCHMARK(ours_1_thread)->Apply(shapes);
BENCHMARK(plain_blocked_loop_1_thread)->Apply(shapes);
BENCHMARK(materialised_1_thread)->Apply(shapes);
BENCHMARK(ours_all_threads)->Apply(shapes)->UseRealTime();

/// One query, `group` query heads a key head: bytes of K and V a second.
void decode(benchmark::State& state) {
  const index key_heads = 8, keys = 8192, d = 128, group = state.range(0);
  inputs in(key_heads * group, 1, keys, d);
  const const_tensor k(in.k.data(), {key_heads, keys, d});
  const const_tensor v(in.v.data(), {key_heads, keys, d});
  for (auto _ : state) {
    regroup::attention(regroup::seq, in.q_view, regroup::dense(k, v), in.out_view);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * key_heads * keys * d * 8);
}
BENCHMARK(decode)->ArgName("group")->Arg(1)->Arg(4)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
