// SPDX-License-Identifier: Apache-2.0
// One operator at every scope of CUB and Thrust: softmax's (max, scaled_sum) as it is, in device-wide, segmented, block and
// warp reductions and scans. Each is held beside `seq` on the CPU.
#include <thrust/execution_policy.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/transform_reduce.h>

#include <cstdio>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>

#include "regroup/host/seq.hpp"
#include "regroup/monoids/log_sum_exp.hpp"
#include "regroup/reduce.hpp"
#include "regroup/scan.hpp"

using softmax = regroup::log_sum_exp<float>;
using state = regroup::state_of<softmax>;
constexpr int block = 128, rows = 100, n = rows * block;

__global__ void block_reduce(const float* x, state* y) {
  using scope = cub::BlockReduce<state, block>;
  __shared__ typename scope::TempStorage storage;
  const state s = scope(storage).Reduce(softmax{}.lift(x[blockIdx.x * block + threadIdx.x]), softmax{});
  if (threadIdx.x == 0) y[blockIdx.x] = s;
}

__global__ void block_scan(const float* x, state* y) {
  using scope = cub::BlockScan<state, block>;
  __shared__ typename scope::TempStorage storage;
  const int i = blockIdx.x * block + threadIdx.x;
  scope(storage).InclusiveScan(softmax{}.lift(x[i]), y[i], softmax{});
}

__global__ void warp_reduce(const float* x, state* y) {
  using scope = cub::WarpReduce<state>;
  __shared__ typename scope::TempStorage storage[block / 32];
  const int i = blockIdx.x * block + threadIdx.x;
  const state s = scope(storage[threadIdx.x / 32]).Reduce(softmax{}.lift(x[i]), softmax{});
  if (threadIdx.x % 32 == 0) y[i / 32] = s;
}

__global__ void warp_scan(const float* x, state* y) {
  using scope = cub::WarpScan<state>;
  __shared__ typename scope::TempStorage storage[block / 32];
  const int i = blockIdx.x * block + threadIdx.x;
  scope(storage[threadIdx.x / 32]).InclusiveScan(softmax{}.lift(x[i]), y[i], softmax{});
}

struct memory {  // shared by host and device
  float x[n];
  int keys[n], runs[rows], count, offsets[rows + 1];
  state y[n];
  char storage[1 << 16];  // CUB says how much it wants where this is null
}* on;
int wrong = 0;

/// The states in y beside the answers of `seq`; y is forgotten.
void check(const char* scope, const std::vector<float>& expected) {
  bool same = cudaDeviceSynchronize() == cudaSuccess;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    same = same && std::abs(softmax{}.lower(on->y[i]) - expected[i]) <= 1e-5f * (1 + std::abs(expected[i]));
    on->y[i] = {NAN, NAN};
  }
  std::printf("%-34s %s\n", scope, same ? "as on a CPU" : "WRONG");
  wrong += !same;
}
/// What `seq` answers for each run of so many elements, and for each of its prefixes.
std::vector<float> sums(int length) {
  cudaDeviceSynchronize();
  std::vector<float> y(static_cast<std::size_t>(n / length));
  reduce_rows(regroup::seq, regroup::view(on->x, {n / length, length}), y, softmax{});
  return y;
}
std::vector<float> prefixes(int length) {
  cudaDeviceSynchronize();
  std::vector<float> y(n);
  const regroup::shape shape{n / length, length};
  inclusive_scan_rows(regroup::seq, regroup::view(on->x, shape), regroup::view(y.data(), shape), softmax{});
  return y;
}

int main() {
  if (int devices = 0; cudaGetDeviceCount(&devices) != cudaSuccess) return std::puts("no GPU: nothing to show"), 77;
  cudaMallocManaged(&on, sizeof *on);
  for (int i = 0; i < n; ++i) on->x[i] = static_cast<float>(i * 7919 % 10'007) * 0.002f - 10, on->keys[i] = i / block;
  for (int r = 0; r <= rows; ++r) on->offsets[r] = r * block;
  const softmax m;
  const regroup::lifting lift(m);
  const auto states = thrust::make_transform_iterator(on->x, lift);
  char* const storage = on->storage;
  std::size_t bytes = sizeof on->storage;
  int* const begins = on->offsets;

  cub::DeviceReduce::Reduce(storage, bytes, states, on->y, n, m, m.identity());
  check("cub::DeviceReduce::Reduce", sums(n));
  cub::DeviceReduce::TransformReduce(storage, bytes, on->x, on->y, n, m, lift, m.identity());
  check("cub::DeviceReduce::TransformReduce", sums(n));
  cub::DeviceReduce::ReduceByKey(storage, bytes, on->keys, on->runs, states, on->y, &on->count, m, n);
  check("cub::DeviceReduce::ReduceByKey", sums(block));
  cub::DeviceSegmentedReduce::Reduce(storage, bytes, states, on->y, rows, begins, begins + 1, m, m.identity());
  check("cub::DeviceSegmentedReduce", sums(block));
  cub::DeviceScan::InclusiveScan(storage, bytes, states, on->y, m, n);
  check("cub::DeviceScan", prefixes(n));

  block_reduce<<<rows, block>>>(on->x, on->y);
  check("cub::BlockReduce", sums(block));
  block_scan<<<rows, block>>>(on->x, on->y);
  check("cub::BlockScan", prefixes(block));
  warp_reduce<<<rows, block>>>(on->x, on->y);
  check("cub::WarpReduce", sums(32));
  warp_scan<<<rows, block>>>(on->x, on->y);
  check("cub::WarpScan", prefixes(32));

  on->y[0] = thrust::reduce(thrust::device, states, states + n, m.identity(), m);
  check("thrust::reduce", sums(n));
  on->y[0] = thrust::transform_reduce(thrust::device, on->x, on->x + n, lift, m.identity(), m);
  check("thrust::transform_reduce", sums(n));
  thrust::inclusive_scan(thrust::device, states, states + n, on->y, m);
  check("thrust::inclusive_scan", prefixes(n));
  return wrong == 0 ? 0 : 1;
}
