// SPDX-License-Identifier: Apache-2.0
// The verbs of axes, segments and keys on cuda::device have the bits of seq, with the device's workspaces and the caller's,
// in a captured graph too.
// Without a GPU it compiles and links, and no more.
#include <algorithm>
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

/// One graph of every verb that takes a workspace of the caller's: rows, axes, segments, and their scans.
void captured_in_a_graph() {
  const cuda::device on;
  const shape extents{5, 40, 6, 70}, axes{1, 3};
  const std::vector<int> offsets = {0, 3, 3, 50, 20'000, 84'000};
  const auto xs = elements(84'000);
  const regroup::view<const float> host(xs.data(), extents);
  const gpu::array<float> x(xs);
  const gpu::array<int> o(offsets);
  const cuda::device_view<const float> in(x.data(), extents);

  std::vector<float> of_rows(1200), of_axes(30), of_segments(5), zeros(xs.size());
  reduce_rows(regroup::seq, host, of_rows, m);
  reduce_axes(regroup::seq, host, axes, of_axes, m);
  reduce_segments(regroup::seq, xs, offsets, of_segments, m);
  auto inclusive = zeros, along_axis = zeros, before_axis = zeros, segments = zeros, before_segments = zeros;
  auto along_rows = zeros, before_rows = zeros;
  inclusive_scan_rows(regroup::seq, host, regroup::view(along_rows.data(), extents), m);
  exclusive_scan_rows(regroup::seq, host, regroup::view(before_rows.data(), extents), m);
  inclusive_scan(regroup::seq, xs, inclusive, m);
  inclusive_scan_axis(regroup::seq, host, 1, regroup::view(along_axis.data(), extents), m);
  exclusive_scan_axis(regroup::seq, host, -2, regroup::view(before_axis.data(), extents), m);
  inclusive_scan_segments(regroup::seq, xs, offsets, segments, m);
  exclusive_scan_segments(regroup::seq, xs, offsets, before_segments, m);

  struct result {
    const char* name;
    const std::vector<float>& expected;
    gpu::array<float> there{std::vector<float>(expected.size())};
    [[nodiscard]] cuda::device_view<float> of(const shape& e) const { return {there.data(), e}; }
  };
  const result rows{"reduce_rows_into", of_rows}, reduced{"reduce_axes_into", of_axes};
  const result sums{"reduce_segments_into", of_segments}, range{"inclusive_scan_into", inclusive};
  const result row{"inclusive_scan_rows_into", along_rows}, other_row{"exclusive_scan_rows_into", before_rows};
  const result axis{"inclusive_scan_axis_into", along_axis}, other_axis{"exclusive_scan_axis_into", before_axis};
  const result each{"inclusive_scan_segments_into", segments}, each_before{"exclusive_scan_segments_into", before_segments};
  const std::size_t bytes = std::max({reduce_rows_workspace(on, in, m), reduce_axes_workspace(on, in, axes, m),
                                      reduce_segments_workspace(on, x.view(), o.view(), m), scan_workspace(on, x.view(), m),
                                      scan_rows_workspace(on, in, m), scan_axis_workspace(on, in, 1, m),
                                      scan_axis_workspace(on, in, -2, m), scan_segments_workspace(on, x.view(), o.view(), m)});
  const gpu::array<double> memory(std::vector<double>(bytes / sizeof(double) + 1));
  const cuda::workspace w{memory.data(), bytes};
  gpu::in_a_graph(
      [&](const cuda::device& captured) {
        reduce_rows_into(captured, in, rows.there.view(), m, w);
        reduce_axes_into(captured, in, axes, reduced.there.view(), m, w);
        reduce_segments_into(captured, x.view(), o.view(), sums.there.view(), m, w);
        inclusive_scan_into(captured, x.view(), range.there.view(), m, w);
        inclusive_scan_rows_into(captured, in, row.of(extents), m, w);
        exclusive_scan_rows_into(captured, in, other_row.of(extents), m, w);
        inclusive_scan_axis_into(captured, in, 1, axis.of(extents), m, w);
        exclusive_scan_axis_into(captured, in, -2, other_axis.of(extents), m, w);
        inclusive_scan_segments_into(captured, x.view(), o.view(), each.there.view(), m, w);
        exclusive_scan_segments_into(captured, x.view(), o.view(), each_before.there.view(), m, w);
      },
      [&] {
        for (const result* r : {&rows, &reduced, &sums, &range, &row, &other_row, &axis, &other_axis, &each, &each_before}) {
          gpu::expect(digest_of(r->there.values()) == digest_of(r->expected), r->name);
          r->there.forget();
        }
      });
}

}  // namespace

int main() {
  return gpu::main_of([] {
    const cuda::device on;
    along_axes(on);
    of_segments(on);
    by_key(on);
    captured_in_a_graph();
  });
}
