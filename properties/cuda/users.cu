// SPDX-License-Identifier: Apache-2.0
// Operators that are not the library's, on cuda::device, have the bits of seq: the longest run, which is exact and does not
// commute, and min-plus matrices, which neither commute nor are exact. So have scans of segments with the largest states. (The
// README's, with its std::exp, is in cub.cu.)
#include <array>

#include "../../examples/operators.hpp"
#include "folds.cuh"
#include "regroup/scan.hpp"
#include "six_sums.hpp"

namespace {

/// Runs of up to 1000.
struct bit {
  bool set;
  constexpr explicit bit(float x = 0) : set(!(x > 7.99f)) {}
};
struct longest_run : examples::longest_run {
  constexpr state lift(bit b) const { return examples::longest_run::lift(b.set); }
};

struct step : examples::min_plus::state {
  constexpr explicit step(float x = 0) : state{x > 0 ? x : 0.0, 1, 2, x < -1 ? -double(x) : 0.5} {}
};
struct cheapest : examples::min_plus {
  constexpr state lift(const step& s) const { return s; }
  constexpr std::array<double, 4> lower(state s) const { return {s.aa, s.ab, s.ba, s.bb}; }
};

/// Segments and ranges scanned into answers of 48 bytes.
void scans_of_large_states(const regroup::cuda::device& on) {
  for (const auto& offsets : gpu::mixes_of_segments()) {
    const auto xs = gpu::elements<double>(offsets.back());
    const gpu::array<double> x(xs);
    const gpu::array<int> o(offsets);
    std::vector<six_sums::state> expected(xs.size());
    const gpu::array<six_sums::state> y(expected);
    regroup::inclusive_scan_segments(on, x.view(), o.view(), y.view(), six_sums{});
    regroup::inclusive_scan_segments(regroup::seq, xs, offsets, expected, six_sums{});
    gpu::expect_same(y.values(), expected, "scan of large states", offsets.back());
    if (xs.empty()) continue;
    regroup::exclusive_scan(on, x.view(), y.view(), six_sums{});
    regroup::exclusive_scan(regroup::seq, xs, expected, six_sums{});
    gpu::expect_same(y.values(), expected, "exclusive scan of large states", offsets.back());
  }
}

}  // namespace

int main() {
  return gpu::main_of([] {
    const regroup::cuda::device on;
    gpu::folds<bit>(on, longest_run{});
    gpu::folds<step>(on, cheapest{});
    scans_of_large_states(on);
  });
}
