// SPDX-License-Identifier: Apache-2.0
// The verbs of axes, segments and keys on cuda::device have the bits of seq, with the device's workspaces and the caller's.
// Without a GPU it compiles and links, and no more.
#include <string>
#include <vector>

#include "../order/digest.hpp"
#include "folds.cuh"
#include "regroup/host/seq.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/reduce.hpp"
#include "regroup/scan.hpp"

namespace {

using order::digest_of;
using regroup::index;
using regroup::shape;
namespace cuda = regroup::cuda;

std::vector<float> elements(index n) {
  return order::numbers<float>(order::kind::special, n, static_cast<std::uint64_t>(n) + 3);
}
constexpr regroup::plus<float> m;

void along_axes(const cuda::device& on) {
  const shape extents{5, 40, 6, 70};
  const auto xs = elements(5 * 40 * 6 * 70);
  const gpu::array<float> x(xs);
  const cuda::device_view<float> in(x.data(), extents);
  const regroup::view<const float> host(xs.data(), extents);
  for (const shape& axes : {shape{1}, shape{3, 0}, shape{1, 3}, shape{-1, -2}, shape{0, 1, 2, 3}}) {
    index count = 5 * 40 * 6 * 70;
    for (const index a : axes) count /= extents[static_cast<int>(a < 0 ? a + 4 : a)];
    std::vector<float> expected(static_cast<std::size_t>(count));
    const gpu::array<float> out(expected);
    reduce_axes(on, in, axes, out.view(), m);
    reduce_axes(regroup::seq, host, axes, expected, m);
    gpu::expect(digest_of(out.values()) == digest_of(expected), "reduce_axes", count);
  }
  std::vector<float> expected(xs.size());
  const regroup::view<float> answers(expected.data(), extents);
  for (const index axis : {0, 1, -1}) {
    const gpu::array<float> y(xs);
    const cuda::device_view<float> in_place(y.data(), extents);
    exclusive_scan_axis(on, in_place, axis, in_place, m);
    exclusive_scan_axis(regroup::seq, host, axis, answers, m);
    gpu::expect(digest_of(y.values()) == digest_of(expected), "exclusive_scan_axis", axis);
  }
}

void of_segments(const cuda::device& on) {
  for (const auto& offsets : gpu::mixes_of_segments()) {
    const auto xs = elements(offsets.back());
    const gpu::array<float> x(xs);
    const gpu::array<int> o(offsets);
    std::vector<float> expected(xs.size());
    const gpu::array<float> y(expected);
    const gpu::array<double> memory(
        std::vector<double>(scan_segments_workspace(on, x.view(), o.view(), m) / sizeof(double) + 1));
    const cuda::workspace w{memory.data(), memory.values().size() * sizeof(double)};
    exclusive_scan_segments_into(on, x.view(), o.view(), y.view(), m, w);
    exclusive_scan_segments(regroup::seq, xs, offsets, expected, m);
    gpu::expect(digest_of(y.values()) == digest_of(expected), "exclusive_scan_segments");
  }
}

void by_key(const cuda::device& on) {
  for (const index n : {0, 1, 129, 5000, 300'000}) {
    std::vector<int> keys;
    for (index i = 0; i < n; ++i) keys.push_back(static_cast<int>(i < 30'000 ? i * i % 97 / 50 : i / 20'000));
    const auto xs = elements(n);
    std::vector<int> first_keys(keys.size());
    std::vector<float> expected(xs.size());
    const gpu::array<int> k(keys), found(keys);
    const gpu::array<float> x(xs);
    const gpu::array<float> y(expected);
    const index runs = reduce_by_key(on, k.view(), x.view(), found.view(), y.view(), m);
    gpu::expect(runs == reduce_by_key(regroup::seq, keys, xs, first_keys, expected, m), "runs", n);
    const auto first = [runs](auto values) {
      values.resize(static_cast<std::size_t>(runs));
      return values;
    };
    gpu::expect(first(found.values()) == first(first_keys), "keys of runs", n);
    gpu::expect(digest_of(first(y.values())) == digest_of(first(expected)), "reduce_by_key", n);
  }
}

}  // namespace

int main() {
  return gpu::main_of([] {
    const cuda::device on;
    along_axes(on);
    of_segments(on);
    by_key(on);
  });
}
