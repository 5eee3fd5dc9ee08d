// SPDX-License-Identifier: Apache-2.0
// Two of the kernels, and the same trees written by hand (by_hand.py counts the instructions of each): rows of softmax's state,
// folded by a warp, and ranges of a plain sum, folded by a block.
#include "regroup/cuda/device_block.cuh"
#include "regroup/cuda/fold_kernel.hpp"
#include "regroup/monoids/log_sum_exp.hpp"

namespace {

namespace cuda = regroup::cuda;
using extent = regroup::index;
using state = regroup::log_sum_exp<float>::state;
using rows = cuda::row_batch<const float>;

template <class State>
using put = cuda::put_state<State>;
template <class M>
using of_rows = cuda::fold_short_rows<32, M, rows, put<regroup::state_of<M>>>;
template <class M>
using of_ranges = cuda::fold_ranges<M, rows, put<regroup::state_of<M>>>;

constexpr unsigned whole_warp = 0xffffffffu;

/// Lanes j, j + 32, j + 64, j + 96 of a thread are four chains, which meet as the tree says.
template <class Join, class At>
__device__ float of_warp(float none, int n, const Join& join, const At& at) {
  const int j = threadIdx.x % 32;
  float lane[4];
#pragma unroll
  for (int k = 0; k < 32; ++k) {
    const bool is_there = j + 32 * k < n;
    if (k < 4) {
      lane[k] = is_there ? at(k) : none;
    } else if (is_there) {
      lane[k % 4] = join(lane[k % 4], at(k));
    }
  }
  if (j + 64 < n) lane[0] = join(lane[0], lane[2]);
  if (j + 96 < n) lane[1] = join(lane[1], lane[3]);
  if (j + 32 < n) lane[0] = join(lane[0], lane[1]);
  float s = lane[0];
#pragma unroll
  for (int h = 16; h >= 1; h /= 2) {
    const float other = __shfl_down_sync(whole_warp, s, h);
    if (j + h < n) s = join(s, other);
  }
  return __shfl_sync(whole_warp, s, 0);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(128) rows_by_hand(const float* x, extent count, extent length,
                                                              extent row_stride, extent stride, state* out) {
  const int j = threadIdx.x % 32;
  for (extent row = blockIdx.x * extent{4} + threadIdx.x / 32; row < count; row += gridDim.x * extent{4}) {
    if (length > 1024) continue;
    state s{-INFINITY, 0};
    if (length > 0) {
      const int n = static_cast<int>(length);
      float held[32];
      const float* const from = x + row * row_stride;
      if (stride == 1) {
#pragma unroll
        for (int k = 0; k < 32; ++k) {
          if (j + 32 * k < n) held[k] = (from + j)[32 * k];
        }
      } else {
#pragma unroll
        for (int k = 0; k < 32; ++k) {
          if (j + 32 * k < n) held[k] = from[(j + 32 * k) * stride];
        }
      }
      const auto larger = [](float a, float b) { return a < b ? b : a; };
      const auto plus = [](float a, float b) { return a + b; };
      const float m = of_warp(-INFINITY, n, larger, [&](int k) { return held[k]; }) + 0;
      const regroup::softmax_weight<float> weight{m};
      const float sum = m - m == 0 ? of_warp(-0.0f, n, plus, [&](int k) { return regroup::math::decay(held[k] - m); })
                                   : of_warp(-0.0f, n, plus, [&](int k) { return weight(held[k]); });
      s = {sum == sum ? m : sum, sum + 0};
    }
    if (j == 0) out[row] = s;
  }
}

/// Ranges of `reach` elements, tile after tile, four warps to a tile; their leaves pairwise.
extern "C" __global__ void __launch_bounds__(128) ranges_by_hand(const float* x, extent count, extent length,
                                                                extent row_stride, extent stride, extent reach,
                                                                float* nodes, float* out) {
  __shared__ float warps[2][96];
  __shared__ float leaves[32];
  const int j = threadIdx.x;
  const extent ranges = (length - 1) / reach + 1;
  int turn = 0;
  for (extent slot = blockIdx.x; slot < count * ranges; slot += gridDim.x) {
    const extent row = slot / ranges, first = slot % ranges * reach;
    const float* const from = x + row * row_stride;
    const extent n = cuda::smaller(length - first, reach);
    float s = 0;
    int tiles = 0;
    for (extent i = 0; i < n; i += 4096) {
      const int size = static_cast<int>(cuda::smaller(regroup::tile_elements, n - i));
      float held[32];
      const float* const own = from + (first + i + j) * stride;
      if (stride == 1) {
        if (size == 4096) {
#pragma unroll
          for (int k = 0; k < 32; ++k) held[k] = own[128 * k];
        } else {
#pragma unroll
          for (int k = 0; k < 32; ++k) {
            if (j + 128 * k < size) held[k] = own[128 * k];
          }
        }
      } else {
        if (size == 4096) {
#pragma unroll
          for (int k = 0; k < 32; ++k) held[k] = own[128 * k * stride];
        } else {
#pragma unroll
          for (int k = 0; k < 32; ++k) {
            if (j + 128 * k < size) held[k] = own[128 * k * stride];
          }
        }
      }
      if (size == 4096) {
        s = held[0];
#pragma unroll
        for (int k = 1; k < 32; ++k) s += held[k];
      } else {
        s = j < size ? held[0] : -0.0f;
#pragma unroll
        for (int k = 1; k < 32; ++k) {
          if (j + 128 * k < size) s += held[k];
        }
      }
      const int lanes = cuda::smaller(size, 128);
      turn = 1 - turn;
      if (j >= 32 && j < lanes) warps[turn][j - 32] = s;
      __syncthreads();
      if (j < 32) {
        if (j + 64 < lanes) s += warps[turn][j + 32];
        if (j + 32 < lanes) {
          float right = warps[turn][j];
          if (j + 96 < lanes) right += warps[turn][j + 64];
          s += right;
        }
#pragma unroll
        for (int h = 16; h >= 1; h /= 2) {
          const float other = __shfl_down_sync(whole_warp, s, h);
          if (j + h < lanes) s += other;
        }
      }
      if (n > 4096 && j == 0) leaves[tiles] = s;
      ++tiles;
    }
    if (tiles > 1 && j < 32) {
      __syncwarp();
      if (j < tiles) s = leaves[j];
      for (int d = 1; d < 32 && d < tiles; d *= 2) {
        const float other = __shfl_down_sync(whole_warp, s, d);
        if (j % (2 * d) == 0 && j + d < tiles) s += other;
      }
    }
    if (j != 0) continue;
    if (length > reach) {
      nodes[slot] = s;
    } else {
      out[row] = s;
    }
  }
}

template __global__ void cuda::run_kernel(const __grid_constant__ of_rows<regroup::log_sum_exp<float>>);
template __global__ void cuda::run_kernel(const __grid_constant__ of_ranges<regroup::plus<float>>);
