// SPDX-License-Identifier: Apache-2.0
// One operator at every scope of CUB and Thrust, by hand: (max, scaled_sum) as it is, in device-wide, segmented, block and
// warp reductions and scans, and through regroup::cuda::device's unordered mode. Results are within the bound of `seq`'s.
#include <cmath>
#include <vector>

#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
#include <thrust/execution_policy.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/transform_reduce.h>

#include "gpu.cuh"
#include "regroup/cuda/unordered.cuh"
#include "regroup/host/seq.hpp"
#include "regroup/monoids/log_sum_exp.hpp"
#include "regroup/reduce.hpp"
#include "regroup/scan.hpp"

namespace {

using regroup::index;
using monoid = regroup::log_sum_exp<float>;
using state = regroup::state_of<monoid>;
constexpr monoid m;
constexpr regroup::lifting lift(monoid{});

constexpr int block = 128;
constexpr int each = 4;
constexpr index n = 100 * block * each;

/// Two trees of the same states differ by at most both of their bounds: u (ln n + (c + 1) depth), depth below 64 + n / 10^4.
void expect_near(float y, float expected, index count, const char* what, index where = -1) {
  const double u = 0x1p-24;
  const double rel = u * (std::log(double(count) + 1) + 2.3 * (64 + double(count) / 1e4));
  const double bound = 1.01 * 2 * (rel + u * (std::abs(expected) + 2 * std::log(double(count) + 1)));
  gpu::expect(std::abs(double(y) - expected) <= bound || (std::isnan(y) && std::isnan(expected)), what, where);
}

__global__ void block_reduce(monoid m, const float* x, state* y) {
  using scope = cub::BlockReduce<state, block>;
  __shared__ typename scope::TempStorage storage;
  state mine[each];
  for (int i = 0; i < each; ++i) mine[i] = m.lift(x[(blockIdx.x * block + threadIdx.x) * each + i]);
  const state s = scope(storage).Reduce(mine, m);  // blocked, so the operator need not commute
  if (threadIdx.x == 0) y[blockIdx.x] = s;
}

__global__ void block_scan(monoid m, const float* x, state* y) {
  using scope = cub::BlockScan<state, block>;
  __shared__ typename scope::TempStorage storage;
  const index i = blockIdx.x * block + threadIdx.x;
  state s = m.lift(x[i]);
  scope(storage).InclusiveScan(s, s, m);
  y[i] = s;
}

__global__ void warp_reduce(monoid m, const float* x, state* y) {
  using scope = cub::WarpReduce<state>;
  __shared__ typename scope::TempStorage storage[block / 32];
  const index i = blockIdx.x * block + threadIdx.x;
  const state s = scope(storage[threadIdx.x / 32]).Reduce(m.lift(x[i]), m);
  if (threadIdx.x % 32 == 0) y[i / 32] = s;
}

__global__ void warp_scan(monoid m, const float* x, state* y) {
  using scope = cub::WarpScan<state>;
  __shared__ typename scope::TempStorage storage[block / 32];
  const index i = blockIdx.x * block + threadIdx.x;
  state s = m.lift(x[i]);
  scope(storage[threadIdx.x / 32]).InclusiveScan(s, s, m);
  y[i] = s;
}

std::vector<float> lowered(const std::vector<state>& states) {
  std::vector<float> ys;
  for (const state& s : states) ys.push_back(m.lower(s));
  return ys;
}

/// What `seq` answers for each run of `length` elements, and its scan.
std::vector<float> rows_of(const std::vector<float>& xs, index length) {
  std::vector<float> ys(xs.size() / static_cast<std::size_t>(length));
  reduce_rows(regroup::seq, regroup::view<const float>(xs.data(), {index(ys.size()), length}), ys, m);
  return ys;
}
std::vector<float> scans_of(const std::vector<float>& xs, index length) {
  std::vector<float> ys(xs.size());
  const regroup::shape shape{index(xs.size()) / length, length};
  inclusive_scan_rows(regroup::seq, regroup::view<const float>(xs.data(), shape), regroup::view<float>(ys.data(), shape), m);
  return ys;
}

void expect_all(const std::vector<float>& ys, const std::vector<float>& expected, const char* what) {
  for (std::size_t i = 0; i < expected.size(); ++i) expect_near(ys[i], expected[i], n, what, index(i));
}

template <class Call>
void in_two_phases(const Call& call) {
  std::size_t bytes = 0;
  regroup::cuda::check(call(nullptr, bytes), "CUB's size");
  const gpu::array<char> storage(std::vector<char>(bytes + 1));
  regroup::cuda::check(call(static_cast<void*>(storage.data()), bytes), "CUB");
}

void by_hand(const std::vector<float>& xs) {
  const gpu::array<float> x(xs);
  const gpu::array<state> one(std::vector<state>(1));
  const gpu::array<state> ys(std::vector<state>(xs.size()));
  const auto lifted = thrust::make_transform_iterator(x.data(), lift);
  const float all = reduce(regroup::seq, xs, m);

  in_two_phases([&](void* t, std::size_t& bytes) {
    return cub::DeviceReduce::Reduce(t, bytes, lifted, one.data(), n, m, m.identity());
  });
  expect_near(m.lower(one.values()[0]), all, n, "DeviceReduce::Reduce");
  in_two_phases([&](void* t, std::size_t& bytes) {
    return cub::DeviceReduce::TransformReduce(t, bytes, x.data(), one.data(), n, m, lift, m.identity());
  });
  expect_near(m.lower(one.values()[0]), all, n, "DeviceReduce::TransformReduce");

  std::vector<int> keys;
  for (index i = 0; i < n; ++i) keys.push_back(static_cast<int>(i / block));
  const gpu::array<int> k(keys);
  const gpu::array<int> unique(keys);
  const gpu::array<int> runs(std::vector<int>(1));
  in_two_phases([&](void* t, std::size_t& bytes) {
    return cub::DeviceReduce::ReduceByKey(t, bytes, k.data(), unique.data(), lifted, ys.data(), runs.data(), m, n);
  });
  gpu::expect(runs.values()[0] == n / block, "ReduceByKey's runs");
  expect_all(lowered(ys.values()), rows_of(xs, block), "DeviceReduce::ReduceByKey");

  std::vector<int> offsets;
  for (index i = 0; i <= n; i += block) offsets.push_back(static_cast<int>(i));
  const gpu::array<int> o(offsets);
  in_two_phases([&](void* t, std::size_t& bytes) {
    return cub::DeviceSegmentedReduce::Reduce(t, bytes, lifted, ys.data(), n / block, o.data(), o.data() + 1, m,
                                              m.identity());
  });
  expect_all(lowered(ys.values()), rows_of(xs, block), "DeviceSegmentedReduce");
  in_two_phases([&](void* t, std::size_t& bytes) {
    return cub::DeviceScan::InclusiveScan(t, bytes, lifted, ys.data(), m, n);
  });
  expect_all(lowered(ys.values()), scans_of(xs, n), "DeviceScan");

  block_reduce<<<n / block / each, block>>>(m, x.data(), ys.data());
  expect_all(lowered(ys.values()), rows_of(xs, block * each), "BlockReduce");
  block_scan<<<n / block, block>>>(m, x.data(), ys.data());
  expect_all(lowered(ys.values()), scans_of(xs, block), "BlockScan");
  warp_reduce<<<n / block, block>>>(m, x.data(), ys.data());
  expect_all(lowered(ys.values()), rows_of(xs, 32), "WarpReduce");
  warp_scan<<<n / block, block>>>(m, x.data(), ys.data());
  expect_all(lowered(ys.values()), scans_of(xs, 32), "WarpScan");
  regroup::cuda::check(cudaGetLastError(), "block and warp kernels");

  expect_near(m.lower(thrust::reduce(thrust::device, lifted, lifted + n, m.identity(), m)), all, n, "thrust::reduce");
  expect_near(m.lower(thrust::transform_reduce(thrust::device, x.data(), x.data() + n, lift, m.identity(), m)), all, n,
              "thrust::transform_reduce");
  thrust::inclusive_scan(thrust::device, lifted, lifted + n, ys.data(), m);
  expect_all(lowered(ys.values()), scans_of(xs, n), "thrust::inclusive_scan");
}

/// In packs, from an address that none begins at.
void unordered_reduce(const std::vector<float>& xs) {
  std::vector<regroup::bfloat16> halves;
  for (const float x : xs) halves.push_back(regroup::bfloat16(x));
  const gpu::array<regroup::bfloat16> x(halves);
  const auto fast = regroup::cuda::device{}.with(regroup::cuda::not_guaranteed);
  const regroup::cuda::device_view<const regroup::bfloat16> part(x.data() + 3, {n - 5});
  const regroup::view<const regroup::bfloat16> here(halves.data() + 3, {n - 5});
  expect_near(reduce(fast, part, m), reduce(regroup::seq, here, m), n, "reduce, unordered");
}

void unordered(const std::vector<float>& xs) {
  const gpu::array<float> x(xs);
  const gpu::array<float> y(xs);
  const auto fast = regroup::cuda::device{}.with(regroup::cuda::not_guaranteed);
  inclusive_scan(fast, x.view(), y.view(), m);
  expect_all(y.values(), scans_of(xs, n), "inclusive_scan, unordered");
  std::vector<int> offsets;
  for (index i = 0; i <= n; i += block) offsets.push_back(static_cast<int>(i));
  const gpu::array<int> o(offsets);
  const gpu::array<float> out(std::vector<float>(static_cast<std::size_t>(n / block)));
  reduce_segments(fast, x.view(), o.view(), out.view(), m);
  expect_all(out.values(), rows_of(xs, block), "reduce_segments, unordered");
  const gpu::array<float> nothing(std::vector<float>{}), no_answer(std::vector<float>{});
  const gpu::array<int> no_segment(std::vector<int>{0});
  reduce_segments(fast, nothing.view(), no_segment.view(), no_answer.view(), m);  // nothing to do, and no error
}

/// The same by Thrust's sequential back end, which needs no device.
void on_the_host(const std::vector<float>& xs) {
  const auto lifted = thrust::make_transform_iterator(xs.begin(), lift);
  const float all = reduce(regroup::seq, xs, m);
  std::vector<state> ys(xs.size());
  expect_near(m.lower(thrust::reduce(thrust::seq, lifted, lifted + n, m.identity(), m)), all, 100 * n, "thrust::seq, reduce");
  expect_near(m.lower(thrust::transform_reduce(thrust::seq, xs.begin(), xs.end(), lift, m.identity(), m)), all, 100 * n,
              "thrust::seq, transform_reduce");
  const regroup::cuda::lift_packs<monoid, float> packs(m, xs.data() + 1, n - 1);
  const thrust::counting_iterator<index> number(0);
  expect_near(m.lower(thrust::transform_reduce(thrust::seq, number, number + packs.packs(), packs, m.identity(), m)),
              reduce(regroup::seq, std::vector<float>(xs.begin() + 1, xs.end()), m), 100 * n, "thrust::seq, packs");
  thrust::inclusive_scan(thrust::seq, lifted, lifted + n, ys.begin(), m);
  const auto expected = scans_of(xs, n);
  for (std::size_t i = 0; i < ys.size(); ++i) {
    expect_near(m.lower(ys[i]), expected[i], 100 * n, "thrust::seq, inclusive_scan", index(i));
  }
}

}  // namespace

int main() {
  std::vector<float> xs;
  for (regroup::index i = 0; i < n; ++i) xs.push_back(static_cast<float>((i * 7919) % 10'007) * 0.002f - 10.0f);
  on_the_host(xs);
  return gpu::main_of([&] {
    by_hand(xs);
    unordered(xs);
    unordered_reduce(xs);
  });
}
