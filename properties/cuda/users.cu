// SPDX-License-Identifier: Apache-2.0
// Operators that are not the library's, on cuda::device: the longest run, which is exact and does not commute, and min-plus
// matrices, which neither commute nor are exact, have the bits of seq. (The README's, with its std::exp, is in cub.cu.)
#include <array>

#include "../../examples/operators.hpp"
#include "folds.cuh"
#include "regroup/scan.hpp"

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

/// The largest state that a scan takes: elements and answers of 4 and 48 bytes leave it as little room as any.
struct widest {
  struct state {
    std::array<double, 6> sums;
  };
  constexpr state identity() const { return {{-0.0, -0.0, -0.0, -0.0, -0.0, -0.0}}; }
  constexpr state lift(float x) const { return {{x, -x, 1, -1.0, 2.0 * x, -0.0}}; }
  constexpr state operator()(state a, const state& b) const {
    for (std::size_t k = 0; k < 6; ++k) a.sums[k] += b.sums[k];
    return a;
  }
  constexpr std::array<double, 6> lower(state s) const { return s.sums; }
};
void scans_of_the_widest(const gpu::cuda::device& on) {
  for (const auto& offsets : gpu::mixes_of_segments()) {
    const auto xs = gpu::elements<float>(offsets.back());
    const gpu::array<float> x(xs);
    const gpu::array<int> o(offsets);
    std::vector<std::array<double, 6>> expected(xs.size());
    const gpu::array<std::array<double, 6>> y(expected);
    regroup::inclusive_scan_segments(on, x.view(), o.view(), y.view(), widest{});
    regroup::inclusive_scan_segments(regroup::seq, xs, offsets, expected, widest{});
    gpu::expect_same(y.values(), expected, "inclusive_scan_segments", offsets.back());
  }
}

}  // namespace

int main() {
  return gpu::main_of([] {
    const regroup::cuda::device on;
    gpu::folds<bit>(on, longest_run{});
    gpu::folds<step>(on, cheapest{});
    scans_of_the_widest(on);
  });
}
