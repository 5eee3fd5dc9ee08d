// SPDX-License-Identifier: Apache-2.0
// top_k/rows/fp32/ROWSxCOLUMNS_kK: the K largest of each row and where they stand, largest first, as a sampler of tokens asks
// of logits; beside the loop one would write, which passes over what the K-th largest so far is not below, and
// std::partial_sort of positions. The result is a row's values, then its positions. Limit: reading x.
#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "limits.hpp"
#include "regroup/monoids/top_k.hpp"
#include "regroup/reduce.hpp"

namespace bench {
namespace {

using element = regroup::indexed<float>;

constexpr auto before = [](const element& a, const element& b) {
  return a.value > b.value || (a.value == b.value && a.position < b.position);
};

/// By one threshold a row, which rises when twice as many as are wanted have passed it.
void select(const float* x, index n, std::vector<element>& best, std::size_t k) {
  constexpr index together = 32;
  best.clear();
  float least = -std::numeric_limits<float>::infinity();
  const auto keep = [&] {
    std::nth_element(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(k) - 1, best.end(), before);
    best.resize(k);
    least = best.back().value;
  };
  for (index i = 0; i < n; i += together) {
    const index end = std::min(i + together, n);
    if (end - i == together) {
      int above = 0;
      for (index j = 0; j < together; ++j) above += x[i + j] > least ? 1 : 0;
      if (above == 0) continue;
    }
    for (index j = i; j < end; ++j) {
      if (x[j] > least) best.push_back({x[j], j});
    }
    if (best.size() >= 2 * k) keep();
  }
  if (best.size() > k) keep();
  std::sort(best.begin(), best.end(), before);
}

void contend(program& p) {
  if (p.work.verb != "top_k" || p.work.what != "rows" || p.work.type != "fp32") {
    throw std::invalid_argument("no such work: " + p.work.verb + "/" + p.work.what + "/" + p.work.type);
  }
  const auto [rows, columns] = p.work.rows_and_columns();
  const index k = p.work.extent("k", 50);
  const auto x = p.input<float>("x");
  const array<float> y(static_cast<std::size_t>(rows * 2 * k));
  const auto result = [=] { return y; };
  const auto put = [y, k](index row, const auto& best) {
    for (index i = 0; i < k; ++i) {
      const element& e = best[static_cast<std::size_t>(i)];
      y.data()[(2 * row) * k + i] = e.value;
      y.data()[(2 * row + 1) * k + i] = static_cast<float>(e.position);
    }
  };
  const regroup::view<const float> from(x.data(), {rows, columns});
  p.with_executor([&](const auto& ex) {
    p.add(
        "ours", [=, keep = x] { regroup::reduce_rows(ex, from, put, regroup::top_k<float>{k}, regroup::with_position{}); },
        result);
  });
  p.add(
      "one threshold a row",
      [=, threads = p.threads, rows = rows, columns = columns] {
        in_pieces(threads, rows, [&](index first, index last) {
          std::vector<element> best;
          for (index r = first; r < last; ++r) {
            select(x.data() + r * columns, columns, best, static_cast<std::size_t>(k));
            put(r, best);
          }
        });
      },
      result);
  p.add(
      "std::partial_sort",
      [=, threads = p.threads, rows = rows, columns = columns] {
        in_pieces(threads, rows, [&](index first, index last) {
          std::vector<int> order(static_cast<std::size_t>(columns));
          std::vector<element> best(static_cast<std::size_t>(k));
          for (index r = first; r < last; ++r) {
            const float* const row = x.data() + r * columns;
            std::iota(order.begin(), order.end(), 0);
            std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int a, int b) {
              return row[a] > row[b] || (row[a] == row[b] && a < b);
            });
            for (std::size_t i = 0; i < best.size(); ++i) best[i] = {row[order[i]], order[i]};
            put(r, best);
          }
        });
      },
      result);
  add_read_limits(p, p.input<char>("x"));
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::main_of(argc, argv, bench::contend); }
