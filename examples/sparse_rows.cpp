// SPDX-License-Identifier: Apache-2.0
// A sparse matrix by rows (CSR), say of a graph: each row is a segment, however long. Its offsets are prefixes of the rows'
// lengths; a product with a vector is a sum of each segment of elements that nobody stores; edges become shares of their row by
// softmax. No row's bits depend on the others, nor on threads.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <span>
#include <vector>

#include "regroup/regroup.hpp"

int main() {
  using regroup::index;
  constexpr std::size_t nodes = 100'000;
  std::mt19937 bits(1);
  std::vector<index> lengths(nodes), offsets(nodes + 1);
  for (index& n : lengths) n = static_cast<index>(bits() % 3 == 0 ? 0 : bits() % 30);
  regroup::inclusive_scan(regroup::par, lengths, std::span(offsets).subspan(1), regroup::plus<index>{});

  const auto edges = static_cast<std::size_t>(offsets.back());
  std::normal_distribution<float> normal;
  std::vector<float> a(edges), x(nodes), y(nodes), shares(edges);
  std::vector<std::size_t> to(edges);
  for (std::size_t& node : to) node = bits() % nodes;
  for (float& weight : a) weight = normal(bits);
  for (float& value : x) value = normal(bits);

  const auto products = regroup::generate(offsets.back(), [&](index edge) {
    const auto e = static_cast<std::size_t>(edge);
    return a[e] * x[to[e]];
  });
  regroup::reduce_segments(regroup::par, products, offsets, y, regroup::plus<float>{});

  regroup::softmax_segments(regroup::par, a, offsets, shares);

  double worst = 0;
  for (std::size_t r = 0; r < nodes; ++r) {
    double sum = 0, whole = lengths[r] == 0 ? 1 : 0;
    for (auto e = static_cast<std::size_t>(offsets[r]); e < static_cast<std::size_t>(offsets[r + 1]); ++e) {
      sum += double{a[e]} * x[to[e]];
      whole += shares[e];
    }
    worst = std::max({worst, std::abs(sum - y[r]), std::abs(whole - 1)});
  }
  std::printf("%zu rows of %zu edges: sums and shares are within %.1e\n", nodes, edges, worst);
  return worst < 1e-5 ? 0 : 1;
}
