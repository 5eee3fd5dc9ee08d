// SPDX-License-Identifier: Apache-2.0
// cuda::device has the bits of seq: ranges, rows, segments and scans, with the device's workspaces and the caller's, also in a
// captured graph. Without a GPU only errors that need none are tested: no device, pointers, workspaces, shapes.
#include <string>
#include <vector>

#include "folds.cuh"
#include "regroup/monoids/affine.hpp"
#include "regroup/monoids/log_sum_exp.hpp"
#include "regroup/scan.hpp"

namespace {

using gpu::elements;
using gpu::expect_same;
using gpu::folds;
using order::digest_of;
using regroup::answer_of;
using regroup::index;
namespace cuda = regroup::cuda;

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
    inclusive_scan_rows(on, x.rows(rows), y.rows(rows), m);
    inclusive_scan_rows(regroup::seq, in, out, m);
    expect_same(y.values(), expected, "inclusive_scan_rows", n);
    exclusive_scan_rows(on, x.rows(rows), y.rows(rows), m);
    exclusive_scan_rows(regroup::seq, in, out, m);
    expect_same(y.values(), expected, "exclusive_scan_rows", n);
  }
}

/// A reduction and a scan in a graph.
void captured_in_a_graph() {
  const cuda::device on;
  const regroup::log_sum_exp<float> m;
  const auto xs = elements<float>(50'000);
  const gpu::array<float> x(xs);
  const gpu::array<float> y(xs);
  const gpu::array<float> answer(std::vector<float>(1));
  const gpu::array<double> memory(std::vector<double>(
      std::max(reduce_workspace(on, x.view(), m), scan_workspace(on, x.view(), m)) / sizeof(double) + 1));
  const cuda::workspace w{memory.data(), memory.values().size() * sizeof(double)};
  std::vector<float> expected(xs.size());
  exclusive_scan(regroup::seq, xs, expected, m);
  gpu::in_a_graph(
      [&](const cuda::device& captured) {
        reduce_into(captured, x.view(), answer.view(), m, w);
        exclusive_scan_into(captured, x.view(), y.view(), m, w);
      },
      [&] {
        gpu::expect(digest_of(answer.values()[0]) == digest_of(reduce(regroup::seq, xs, m)), "reduce in a graph");
        expect_same(y.values(), expected, "scan in a graph", 50'000);
        answer.forget();
        y.forget();
      });
}

/// So long that a block folds ranges of several tiles.
void a_long_fold(const cuda::device& on) {
  constexpr index n = 150'000'001;
  if (gpu::is_left_out(n)) return;
  std::vector<float> xs(n);
  for (index i = 0; i < n; ++i) xs[static_cast<std::size_t>(i)] = static_cast<float>(i % 8191) * 0.001f;
  const gpu::array<float> x(xs);
  const regroup::log_sum_exp<float> m;
  gpu::expect(digest_of(regroup::reduce(on, x.view(), m)) == digest_of(regroup::reduce(regroup::seq, xs, m)), "reduce", n);
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
    a_long_fold(on);
  });
}
