// SPDX-License-Identifier: Apache-2.0
// (f) Online attention needs the state of each query, O(N); the formula as written needs every score at once, O(N x N).
// Times are measurements of this machine, best of two; memory is what the program allocated, counted.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "allocations.hpp"
#include "attention_bounds.hpp"
#include "demo.hpp"
#include "pictures.hpp"
#include "regroup/algorithms/attention_baseline.hpp"
#include "regroup/host/par.hpp"
#include "trained_layer.hpp"

namespace demo {
namespace {

constexpr index tokens = 8192, channels = 64;

template <class Work>
void measure(cost& best, const Work& work) {
  const peak_allocation allocated;
  const auto start = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  best.seconds = std::min(best.seconds, seconds.count());
  best.mebibytes = std::max(best.mebibytes, static_cast<double>(allocated.bytes()) / (1 << 20));
}

struct matrix {
  std::vector<float> values = std::vector<float>(static_cast<std::size_t>(tokens * channels));
  [[nodiscard]] regroup::view<const float> view() const { return {values.data(), {tokens, channels}}; }
  [[nodiscard]] regroup::view<float> view() { return {values.data(), {tokens, channels}}; }
};
matrix normal(unsigned seed) {
  matrix x;
  std::mt19937 random(seed);
  std::normal_distribution<float> draw;
  for (float& e : x.values) e = draw(random);
  return x;
}

/// The worst error of 64 queries in parts of its bound, against double.
double worst_ratio(const matrix& q, const matrix& k, const matrix& v, const matrix& out, depth way) {
  double worst = 0;
  for (index i = 0; i < tokens; i += tokens / 64) {
    const attention_bounds exact(q.view()[i], k.view(), v.view(), 1 / std::sqrt(static_cast<double>(channels)));
    for (index c = 0; c < channels; ++c) {
      const auto at = static_cast<std::size_t>(c);
      const double error = std::fabs(static_cast<double>(out.view()(i, c)) - exact.mean(at));
      worst = worse(worst, error / exact.of(at, way));
    }
  }
  return worst;
}

}  // namespace

void section_memory() {
  heading("(f) Time and memory at 8192 tokens, one head of 64 channels");
  const matrix q = normal(1), k = normal(2), v = normal(3);
  const auto keys = regroup::dense(k.view(), v.view());
  matrix online_out, materialised_out;
  cost online, materialised;
  for (int round = 0; round < 2; ++round) {
    measure(online, [&] { regroup::attention(regroup::par, q.view(), keys, online_out.view()); });
    measure(materialised,
            [&] { regroup::materialised_attention(regroup::par, q.view(), keys, materialised_out.view()); });
  }
  std::printf("  %-34s %10s %14s\n", "", "time", "peak memory");
  std::printf("  %-34s %8.2f s %10.1f MiB\n", "attention, online", online.seconds, online.mebibytes);
  std::printf("  %-34s %8.2f s %10.1f MiB\n", "materialised_attention, N x N", materialised.seconds,
              materialised.mebibytes);
  std::printf("  %-34s %8.1fx %13.0fx\n", "ratio", materialised.seconds / online.seconds,
              materialised.mebibytes / online.mebibytes);

  const double q_k_v = 3.0 * static_cast<double>(tokens * channels * index{sizeof(float)}) / (1 << 20);
  claim(online.mebibytes < q_k_v,
        "online attention allocates less than its inputs take, " + text_of("%.0f MiB", q_k_v));
  const double ratio = worst_ratio(q, k, v, online_out, depth_of(regroup::attention_leaf_keys, 3));
  const double materialised_ratio = worst_ratio(q, k, v, materialised_out, {tokens, 0});
  claim(ratio <= 1 && materialised_ratio <= 1,
        "of 64 queries checked against float64, both are within their bounds, at worst " + text_of("%.4f", ratio) +
            " and " + text_of("%.4f", materialised_ratio) + " of them");
  bool same = true;
  for (const int threads : {1, 2, 3, 7}) {
    std::vector<float> one(static_cast<std::size_t>(channels));
    regroup::attention(regroup::par.with_threads(threads), some(q.view(), 0, tokens - 1, tokens), keys,
                       regroup::view<float>(one.data(), {1, channels}));
    same = same && std::equal(one.begin(), one.end(), online_out.values.end() - channels);
  }
  claim(same, "the last query alone, its keys shared by 1, 2, 3 or 7 threads, has the bits it has among all 8192");
  draw_cost(online, materialised);
}

}  // namespace demo
