// SPDX-License-Identifier: Apache-2.0
// cuda::device has the bits of seq: ranges, rows, segments and scans, with workspaces of the device's and of the caller's,
// in a captured graph too. Without a GPU the errors that need none are tested: no device, pointers, workspaces, shapes.
#include <string>
#include <vector>

#include "../order/digest.hpp"
#include "gpu.cuh"
#include "regroup/host/seq.hpp"
#include "regroup/monoids/affine.hpp"
#include "regroup/monoids/log_sum_exp.hpp"
#include "regroup/reduce.hpp"
#include "regroup/scan.hpp"

namespace {

using order::digest_of;
using regroup::answer_of;
using regroup::index;
namespace cuda = regroup::cuda;

template <class X>
std::vector<X> elements(index n) {
  std::vector<X> xs;
  for (const float x : order::numbers<float>(order::kind::special, n, static_cast<std::uint64_t>(n) + 3)) {
    if constexpr (requires { X{x, x}; }) {
      xs.push_back({x * 0.125f, 1 - x});
    } else {
      xs.push_back(X(x));
    }
  }
  return xs;
}

template <class Y>
void expect_same(const std::vector<Y>& ys, const std::vector<Y>& expected, const char* what, index n) {
  gpu::expect(digest_of(ys) == digest_of(expected), what, n);
}

template <class X, class M>
void folds(const cuda::device& on, const M& m) {
  using answer = answer_of<M>;
  for (const index n : {1, 31, 33, 129, 1000, 1025, 4095, 4097, 100'000, 3'000'001}) {
    if (gpu::is_left_out(n)) continue;
    const auto xs = elements<X>(n);
    const gpu::array<X> x(xs);
    gpu::expect(digest_of(reduce(on, x.view(), m)) == digest_of(reduce(regroup::seq, xs, m)), "reduce", n);
  }
  for (const index n : {1, 3, 32, 33, 500, 1024, 1025, 5000}) {
    const index rows = n < 100 ? 1001 : 37;
    const auto xs = elements<X>(rows * n);
    const gpu::array<X> x(xs);
    const gpu::array<answer> y(std::vector<answer>(static_cast<std::size_t>(rows)));
    reduce_rows(on, x.rows(rows), y.view(), m);
    std::vector<answer> expected(static_cast<std::size_t>(rows));
    reduce_rows(regroup::seq, regroup::view<const X>(xs.data(), {rows, n}), expected, m);
    expect_same(y.values(), expected, "reduce_rows", n);
  }
  std::vector<int> offsets = {0};
  for (int s = 0; s < 300; ++s) offsets.push_back(offsets.back() + (s % 50 == 7 ? 20'000 : s % 5 == 0 ? 0 : s * s % 91));
  const auto xs = elements<X>(offsets.back());
  const gpu::array<X> x(xs);
  const gpu::array<int> o(offsets);
  const gpu::array<answer> y(std::vector<answer>(300));
  reduce_segments(on, x.view(), o.view(), y.view(), m);
  std::vector<answer> expected(300);
  reduce_segments(regroup::seq, xs, offsets, expected, m);
  expect_same(y.values(), expected, "reduce_segments", offsets.back());
}

template <class X, class M>
void scans(const cuda::device& on, const M& m) {
  using answer = answer_of<M>;
  for (const index n : {1, 40, 129, 1024, 1025, 4097, 700'000}) {
    if (gpu::is_left_out(n)) continue;
    const index rows = n < 2000 ? 21 : 1;
    const auto xs = elements<X>(rows * n);
    const gpu::array<X> x(xs);
    const gpu::array<answer> y(std::vector<answer>(xs.size()));
    std::vector<answer> expected(xs.size());
    const regroup::view<const X> in(xs.data(), {rows, n});
    const regroup::view<answer> out(expected.data(), {rows, n});
    inclusive_scan(on, x.rows(rows), y.rows(rows), m);
    inclusive_scan_rows(regroup::seq, in, out, m);
    expect_same(y.values(), expected, "inclusive_scan", n);
    exclusive_scan(on, x.rows(rows), y.rows(rows), m);
    exclusive_scan_rows(regroup::seq, in, out, m);
    expect_same(y.values(), expected, "exclusive_scan", n);
  }
}

/// A reduction and a scan in place, captured in a graph and launched twice: no allocation, no wait.
void captured_in_a_graph() {
  cudaStream_t stream = nullptr;
  cuda::check(cudaStreamCreate(&stream), "cudaStreamCreate");
  const cuda::device on(stream);
  const regroup::log_sum_exp<float> m;
  const auto xs = elements<float>(50'000);
  const gpu::array<float> x(xs);
  const gpu::array<float> y(xs);
  const gpu::array<float> answer(std::vector<float>(1));
  const gpu::array<double> memory(std::vector<double>(
      std::max(reduce_workspace(on, x.view(), m), scan_workspace(on, y.view(), m)) / sizeof(double) + 1));
  const cuda::workspace w{memory.data(), memory.values().size() * sizeof(double)};
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  cuda::check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
  reduce_into(on, x.view(), answer.view(), m, w);
  exclusive_scan_into(on, x.view(), y.view(), m, w);
  cuda::check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  cuda::check(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  for (int launch = 0; launch < 2; ++launch) cuda::check(cudaGraphLaunch(executable, stream), "cudaGraphLaunch");
  on.synchronize();
  gpu::expect(digest_of(answer.values()[0]) == digest_of(reduce(regroup::seq, xs, m)), "reduce in a graph");
  std::vector<float> expected(xs.size());
  exclusive_scan(regroup::seq, xs, expected, m);
  expect_same(y.values(), expected, "scan in a graph", 50'000);
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

template <class Error, class F>
void expect_thrown(const char* part, const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return gpu::expect(std::string(e.what()).find(part) != std::string::npos, e.what());
  }
  gpu::expect(false, part);
}

void errors_without_a_device() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    expect_thrown<cuda::no_device_error>("needs an NVIDIA GPU", [] { cuda::device{}; });
  }
  expect_thrown<cuda::memory_error>("too little memory",
                                    [] { cuda::check(cudaErrorMemoryAllocation, "allocating a workspace"); });
  expect_thrown<cuda::architecture_error>("not compiled for this GPU",
                                          [] { cuda::check(cudaErrorNoKernelImageForDevice, "a launch"); });
  expect_thrown<cuda::device_error>("illegal memory access",
                                    [] { cuda::check(cudaErrorIllegalAddress, "waiting for the stream"); });
}

}  // namespace

int main() {
  errors_without_a_device();
  return gpu::main_of([] {
    const cuda::device on;
    folds<float>(on, regroup::log_sum_exp<float>{});
    folds<regroup::bfloat16>(on, regroup::log_sum_exp<float>{});
    folds<regroup::affine_map<float>>(on, regroup::affine<float>{});
    scans<float>(on, regroup::log_sum_exp<float>{});
    scans<regroup::affine_map<float>>(on, regroup::affine<float>{});
    captured_in_a_graph();
  });
}
