// SPDX-License-Identifier: Apache-2.0
// Online softmax in three equivalent forms: element by element, tile by tile, and pairwise, from finished states. All
// are one monoid, (max, sum of exp(x - max)); only the grouping differs.
#include <cmath>
#include <cstdio>
#include <span>
#include <vector>

#include "regroup/regroup.hpp"

using lse = regroup::log_sum_exp<float>;

int main() {
  const std::vector<float> x = {1, 2, 3, 6, 2, 1};
  const lse m;

  lse::state element_by_element = m.identity();
  for (const float xi : x) element_by_element = m(element_by_element, m.lift(xi));

  lse::state tile_by_tile = m.identity();  // one rescale a tile
  for (const auto tile : {std::span(x).first(3), std::span(x).last(3)}) {
    const float max = regroup::reduce(regroup::seq, tile, regroup::maximum<float>{});
    const float sum = regroup::reduce(regroup::seq, tile, regroup::plus<float>{}, regroup::softmax_weight<float>{max});
    tile_by_tile = m(tile_by_tile, {max, sum});
    std::printf("a tile of three           max %g, sum %.4f\n", max, sum);
  }

  const auto left = m(m.lift(x[0]), m(m.lift(x[1]), m.lift(x[2])));
  const auto right = m(m(m.lift(x[3]), m.lift(x[4])), m.lift(x[5]));
  const auto pairwise = m(left, right);  // two workers' finished states

  bool same = true;
  for (const auto& s : {element_by_element, tile_by_tile, pairwise}) {
    std::printf("element, tile or pairwise max %g, sum %.4f\n", s.m, s.s);
    same &= s.m == 6 && std::abs(s.s - pairwise.s) < 1e-6f;
  }
  std::vector<float> y(x.size());
  regroup::softmax(regroup::par, x, y);  // the same state, then exp(x - max) / sum
  for (const float p : y) std::printf("%.4f ", p);
  std::puts("are the probabilities");
  return same && std::abs(y[3] * pairwise.s - 1) < 1e-6f ? 0 : 1;
}
