// SPDX-License-Identifier: Apache-2.0
// cuda::device's unordered mode, by CUB: reductions in packs, scans and segments, also in a captured graph and of no elements;
// and the README's monoid in CUB and in our kernels. Results are within the bound of `seq`'s. (examples/gpu_cub_scopes.cu has
// the scopes of CUB and Thrust by hand.)
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <cub/block/block_reduce.cuh>
#include <thrust/execution_policy.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/transform_reduce.h>

#include "../../examples/max_sum.hpp"
#include "gpu.cuh"
#include "regroup/cuda/unordered.cuh"
#include "regroup/host/seq.hpp"
#include "regroup/monoids/log_sum_exp.hpp"
#include "regroup/reduce.hpp"
#include "regroup/scan.hpp"

namespace {

using regroup::index;
using monoid = regroup::log_sum_exp<float>;
constexpr monoid m;
constexpr regroup::lifting lift(monoid{});

constexpr int block = 128;
constexpr int each = 4;
constexpr index n = 100 * block * each;

/// Two trees of the same states differ by at most both of their bounds: u (ln n + (c + 1) depth), where c is 1.3 for our
/// exp, and 3 for CUDA's with a product rounded apart, and depth at most n, and below 64 + n / 10^4.
void expect_near(float y, float expected, index count, const char* what, index where = -1) {
  const double u = 0x1p-24;
  const double rel = u * (std::log(double(count) + 1) + 4 * std::min(double(count), 64 + double(count) / 1e4));
  const double bound = 1.01 * 2 * (rel + u * (std::abs(expected) + 2 * std::log(double(count) + 1)));
  gpu::expect(std::abs(double(y) - expected) <= bound || (std::isnan(y) && std::isnan(expected)), what, where);
}

template <class M>
__global__ void block_reduce(M m, const float* x, float* y) {
  using state = regroup::state_of<M>;
  using scope = cub::BlockReduce<state, block>;
  __shared__ typename scope::TempStorage storage;
  state mine[each];
  for (int i = 0; i < each; ++i) mine[i] = m.lift(x[(blockIdx.x * block + threadIdx.x) * each + i]);
  const state s = scope(storage).Reduce(mine, m);  // blocked, so the operator need not commute
  if (threadIdx.x == 0) y[blockIdx.x] = m.lower(s);
}

/// What `seq` answers for each run of `length` elements, and their scan.
template <class M = monoid>
std::vector<float> rows_of(const std::vector<float>& xs, index length) {
  std::vector<float> ys(xs.size() / static_cast<std::size_t>(length));
  regroup::reduce_rows(regroup::seq, regroup::view<const float>(xs.data(), {index(ys.size()), length}), ys, M{});
  return ys;
}
std::vector<float> scans_of(const std::vector<float>& xs) {
  std::vector<float> ys(xs.size());
  inclusive_scan(regroup::seq, xs, ys, m);
  return ys;
}

/// Each of at most so many elements.
void expect_all(const std::vector<float>& ys, const std::vector<float>& expected, index count, const char* what) {
  for (std::size_t i = 0; i < expected.size(); ++i) expect_near(ys[i], expected[i], count, what, index(i));
}

template <class Call>
void in_two_phases(const Call& call) {
  std::size_t bytes = 0;
  regroup::cuda::check(call(nullptr, bytes), "CUB's size");
  const gpu::array<char> storage(std::vector<char>(bytes + 1));
  regroup::cuda::check(call(static_cast<void*>(storage.data()), bytes), "CUB");
}

/// The README's monoid, as it is: by hand, in our kernels, and in the unordered mode.
void a_users_monoid(const std::vector<float>& xs) {
  const fixed own;
  const gpu::array<float> x(xs);
  const gpu::array<obvious::state> state(std::vector<obvious::state>(1));
  const gpu::array<float> ys(std::vector<float>(static_cast<std::size_t>(n / block / each)));
  const float all = regroup::reduce(regroup::seq, xs, own);
  const auto rows = rows_of<fixed>(xs, block * each);
  in_two_phases([&](void* t, std::size_t& bytes) {
    const regroup::lifting lifts(own);
    return cub::DeviceReduce::TransformReduce(t, bytes, x.data(), state.data(), n, own, lifts, own.identity());
  });
  expect_near(own.lower(state.values()[0]), all, n, "the README's monoid, DeviceReduce");
  block_reduce<<<n / block / each, block>>>(own, x.data(), ys.data());
  expect_all(ys.values(), rows, block * each, "the README's monoid, BlockReduce");
  ys.forget();
  const regroup::cuda::device on;
  regroup::reduce_rows(on, x.rows(n / block / each), ys.view(), own);
  expect_all(ys.values(), rows, block * each, "the README's monoid, reduce_rows");
  expect_near(regroup::reduce(on, x.view(), own), all, n, "the README's monoid, reduce");
  expect_near(regroup::reduce(on.with(regroup::cuda::not_guaranteed), x.view(), own), all, n,
              "the README's monoid, unordered");
}

/// The unordered mode, its reductions in packs from an address that none begins at; then all of it in a graph.
void unordered(const std::vector<float>& xs) {
  std::vector<regroup::bfloat16> halves;
  for (const float x : xs) halves.push_back(regroup::bfloat16(x));
  std::vector<int> offsets;
  for (index i = 0; i <= n; i += block) offsets.push_back(static_cast<int>(i));
  const regroup::view<const regroup::bfloat16> half(halves.data() + 3, {n - 5});
  const float all = reduce(regroup::seq, half, m);
  const auto rows = rows_of(xs, block), prefixes = scans_of(xs);

  const gpu::array<regroup::bfloat16> h(halves);
  const gpu::array<float> x(xs), y(xs), before(xs), one(std::vector<float>(1)), out(std::vector<float>(rows.size()));
  const gpu::array<int> o(offsets);
  const regroup::cuda::device_view<const regroup::bfloat16> part(h.data() + 3, {n - 5});
  const auto look = [&](const char* what) {
    expect_all(y.values(), prefixes, n, what);
    expect_all(out.values(), rows, block, what);
    const auto exclusive = before.values();
    gpu::expect(exclusive[0] == m.lower(m.identity()), what, 0);
    for (index i = 1; i < n; ++i) {
      expect_near(exclusive[static_cast<std::size_t>(i)], prefixes[static_cast<std::size_t>(i - 1)], n, what, i);
    }
    for (const auto* array : {&y, &out, &before}) array->forget();
  };
  const auto fast = regroup::cuda::device{}.with(regroup::cuda::not_guaranteed);
  expect_near(reduce(fast, part, m), all, n, "reduce, unordered");
  inclusive_scan(fast, x.view(), y.view(), m);
  exclusive_scan(fast, x.view(), before.view(), m);
  reduce_segments(fast, x.view(), o.view(), out.view(), m);
  look("unordered");

  const std::size_t bytes = std::max({reduce_workspace(fast, part, m), scan_workspace(fast, x.view(), m),
                                      reduce_segments_workspace(fast, x.view(), o.view(), m)});
  const gpu::array<char> memory(std::vector<char>(bytes + 1));
  const regroup::cuda::workspace w{memory.data(), bytes};
  gpu::in_a_graph(
      [&](const regroup::cuda::device& on) {
        const auto captured = on.with(regroup::cuda::not_guaranteed);
        reduce_into(captured, part, one.view(), m, w);
        inclusive_scan_into(captured, x.view(), y.view(), m, w);
        exclusive_scan_into(captured, x.view(), before.view(), m, w);
        reduce_segments_into(captured, x.view(), o.view(), out.view(), m, w);
      },
      [&] {
        expect_near(one.values()[0], all, n, "reduce, unordered in a graph");
        one.forget();
        look("unordered in a graph");
      });
}

/// Nothing is -inf, of a segment or of all; of no segment nothing is written.
void of_nothing() {
  const auto fast = regroup::cuda::device{}.with(regroup::cuda::not_guaranteed);
  const gpu::array<float> nothing(std::vector<float>{}), out(std::vector<float>{7, 7, 7});
  const gpu::array<int> empty(std::vector<int>{0, 0, 0});
  const regroup::cuda::device_view<const int> none(empty.data(), {1});
  gpu::expect(reduce(fast, nothing.view(), m) == m.lower(m.identity()), "reduce of nothing");
  reduce_segments(fast, nothing.view(), none, nothing.view(), m);
  gpu::expect(out.values() == std::vector<float>{7, 7, 7}, "no segment");
  reduce_segments(fast, nothing.view(), empty.view(), regroup::cuda::device_view<float>(out.data(), {2}), m);
  const float least = -std::numeric_limits<float>::infinity();
  gpu::expect(out.values() == std::vector<float>{least, least, 7}, "segments of nothing");
}

/// The same by Thrust's sequential back end, which needs no device.
void on_the_host(const std::vector<float>& xs) {
  const auto lifted = thrust::make_transform_iterator(xs.begin(), lift);
  const float all = reduce(regroup::seq, xs, m);
  expect_near(m.lower(thrust::reduce(thrust::seq, lifted, lifted + n, m.identity(), m)), all, 100 * n, "thrust::seq, reduce");
  expect_near(m.lower(thrust::transform_reduce(thrust::seq, xs.begin(), xs.end(), lift, m.identity(), m)), all, 100 * n,
              "thrust::seq, transform_reduce");
  const regroup::cuda::lift_packs<monoid, float> packs(m, xs.data() + 1, n - 1);
  const thrust::counting_iterator<index> number(0);
  expect_near(m.lower(thrust::transform_reduce(thrust::seq, number, number + packs.packs(), packs, m.identity(), m)),
              reduce(regroup::seq, std::vector<float>(xs.begin() + 1, xs.end()), m), 100 * n, "thrust::seq, packs");
  std::vector<float> ys(xs.size());
  thrust::inclusive_scan(thrust::seq, lifted, lifted + n, regroup::cuda::lowered_to(m, ys.data()), m);
  expect_all(ys, scans_of(xs), 100 * n, "thrust::seq, inclusive_scan");
}

}  // namespace

int main() {
  std::vector<float> xs;
  for (regroup::index i = 0; i < n; ++i) xs.push_back(static_cast<float>((i * 7919) % 10'007) * 0.002f - 10.0f);
  on_the_host(xs);
  return gpu::main_of([&] {
    a_users_monoid(xs);
    unordered(xs);
    of_nothing();
  });
}
