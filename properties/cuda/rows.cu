// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax, logsumexp and cross_entropy on a device have the bits of `seq`: rows of every kind of kernel, in
// place, scaled, in a captured graph. Without a GPU it has compiled and linked, and says so.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "../order/digest.hpp"
#include "gpu.cuh"
#include "regroup/cuda/cross_entropy.cuh"
#include "transcribed.hpp"

namespace {

using order::digest_of;
using order::kind;
using regroup::index;
namespace cuda = regroup::cuda;

constexpr index lengths[] = {1, 5, 32, 33, 700, 1024, 1025, 4095, 4096, 4097, 8192, 8193, 16'385, 30'000, 32'769, 65'535,
                             65'536, 65'537, 300'001, 1'048'577};

index count_of(index n) { return n < 100 ? 3001 : n < 5000 ? 301 : 3; }

template <class X>
std::vector<X> elements(kind k, index n) {
  std::vector<X> xs;
  for (const float x : order::numbers<float>(k, n, static_cast<std::uint64_t>(n) + 3)) xs.push_back(X(x));
  return xs;
}
template <class X>
std::vector<float> widened(const std::vector<X>& xs) {
  std::vector<float> wide;
  for (const X x : xs) wide.push_back(regroup::widen(x));
  return wide;
}

/// softmax or log_softmax in place, of rows that are scaled first, and its logsumexps; special elements make NaN of rows.
template <class X, bool IsLog = false>
void softmax_rows(const cuda::device& on, kind k, double scale = 1) {
  for (const index n : lengths) {
    if (gpu::is_left_out(n)) continue;
    const index count = count_of(n);
    const auto xs = elements<X>(k, count * n);
    const gpu::array<X> x(xs);
    const gpu::array<float> lse(std::vector<float>(static_cast<std::size_t>(count)));
    const cuda::softmax_options<float> options{.scale = scale, .logsumexp = lse.view()};
    if constexpr (IsLog) {
      regroup::log_softmax(on, x.rows(count), x.rows(count), options);
    } else {
      regroup::softmax(on, x.rows(count), x.rows(count), options);
    }
    auto expected = widened(xs);
    for (float& e : expected) e = e * static_cast<float>(scale);
    std::vector<float> sums;
    reference::each_row(expected, count, [&](std::vector<float>& row) {
      const auto [m, s] = reference::softmax_state(row);
      sums.push_back(m + regroup::math::log(s));
      IsLog ? reference::log_softmax(row) : reference::softmax(row);
    });
    for (float& p : expected) p = regroup::widen(static_cast<X>(p));
    gpu::expect(digest_of(widened(x.values())) == digest_of(expected), IsLog ? "log_softmax" : "softmax", n);
    if (k != kind::special) gpu::expect(digest_of(lse.values()) == digest_of(sums), "its logsumexp", n);
  }
}

/// The mean of the losses with its gradient in place, by the verb and in a captured graph.
void cross_entropy_rows(const cuda::device& on) {
  for (const index n : lengths) {
    if (gpu::is_left_out(n)) continue;
    const index count = count_of(n);
    const auto xs = elements<float>(kind::plain, count * n);
    std::vector<int> targets;
    for (index r = 0; r < count; ++r) targets.push_back(r % 5 == 3 ? -100 : static_cast<int>(r * 7919 % n));
    const gpu::array<float> x(xs);
    const gpu::array<int> t(targets);
    const float loss = regroup::cross_entropy(on, x.rows(count), t.view(), {.gradient = x.rows(count)});
    auto gradient = xs;
    reference::operands<double> losses;
    double used = 0;
    for (const int target : targets) used += target != -100;
    const float share = 1 / static_cast<float>(used);
    reference::each_row(gradient, count, [&](std::vector<float>& row) {
      const int target = targets[losses.size()];
      if (target != -100) {
        losses.push_back(reference::cross_entropy(row, static_cast<std::size_t>(target), share));
      } else {
        losses.push_back(-0.0);
        std::fill(row.begin(), row.end(), 0.0f);
      }
    });
    const auto expected = static_cast<float>((*reference::reduce(regroup::plus<double>{}, losses) + 0) / used);
    gpu::expect(digest_of(loss) == digest_of(expected), "cross_entropy", n);
    gpu::expect(digest_of(x.values()) == digest_of(gradient), "its gradient", n);
  }
  const gpu::array<float> x(std::vector<float>(40, 1.0f));
  const gpu::array<int> wrong(std::vector<int>{0, 1, 2, 3, 0, 1, 9, 3, 0, 11});
  try {
    regroup::cross_entropy(on, x.rows(10), wrong.view());
    gpu::expect(false, "a target out of range");
  } catch (const regroup::argument_error& e) {
    gpu::expect(std::string(e.what()).find("row 6 has target 9") != std::string::npos, e.what());
  }
}

void captured_in_a_graph() {
  cudaStream_t stream = nullptr;
  cuda::check(cudaStreamCreate(&stream), "cudaStreamCreate");
  const cuda::device on(stream);
  const index n = 100'000;
  const auto xs = elements<float>(kind::plain, 3 * n);
  const gpu::array<float> x(xs);
  const gpu::array<float> y(xs);
  const gpu::array<float> loss(std::vector<float>(1));
  const gpu::array<int> t(std::vector<int>{5, 99'999, 100'000});  // the last one is none
  const std::size_t bytes = std::max(regroup::softmax_workspace(on, x.rows(3)),
                                     regroup::cross_entropy_workspace(on, x.rows(3), t.view()));
  const gpu::array<double> memory(std::vector<double>(bytes / sizeof(double) + 2));
  const cuda::workspace w{memory.data(), bytes};
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  cuda::check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
  regroup::softmax_into(on, x.rows(3), y.rows(3), w);
  regroup::cross_entropy_into(on, x.rows(3), t.view(), loss.view(), w);
  cuda::check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  cuda::check(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  cuda::check(cudaGraphLaunch(executable, stream), "cudaGraphLaunch");
  on.synchronize();
  auto expected = xs;
  reference::each_row(expected, 3, [](std::vector<float>& row) { reference::softmax(row); });
  gpu::expect(digest_of(y.values()) == digest_of(expected), "softmax in a graph");
  gpu::expect(loss.values()[0] != loss.values()[0], "a wrong target in a graph is NaN");
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

}  // namespace

int main() {
  return gpu::main_of([] {
    const cuda::device on;
    softmax_rows<float>(on, kind::special);
    softmax_rows<float>(on, kind::plain, -0.37);
    softmax_rows<float, true>(on, kind::special);
    softmax_rows<float, true>(on, kind::plain, 1.7);
    softmax_rows<regroup::bfloat16>(on, kind::plain);
    cross_entropy_rows(on);
    captured_in_a_graph();
  });
}
