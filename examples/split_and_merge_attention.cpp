// SPDX-License-Identifier: Apache-2.0
// Attention over keys that live in three places: each gives its state (m, l, unnormalised O), a value; states merge in
// any order, because (max, scaled sum, O) is a monoid. Flash-decoding, ring attention and prefix caches are this.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "regroup/regroup.hpp"

int main() {
  const regroup::index queries = 4, keys = 1000, d = 32;
  const auto numbers = [](regroup::index n, unsigned seed) {
    std::vector<float> x(static_cast<std::size_t>(n));
    for (float& e : x) e = static_cast<float>((seed = seed * 1664525 + 1013904223) >> 8) / 8388608 - 1;
    return x;
  };
  const auto qs = numbers(queries * d, 1), ks = numbers(keys * d, 2), vs = numbers(keys * d, 3);
  const regroup::view q(qs.data(), {queries, d}), k(ks.data(), {keys, d}), v(vs.data(), {keys, d});

  std::vector<float> whole(qs.size()), merged(qs.size());
  regroup::attention(regroup::par, q, regroup::dense(k, v), regroup::view(whole.data(), {queries, d}));

  const auto part = [&](regroup::index first, regroup::index last) {  // what one machine computes
    const auto rows = [&](const auto& x) { return regroup::view(&x(first, 0), {last - first, d}); };
    return regroup::attention_state(regroup::par, q, regroup::dense(rows(k), rows(v)));
  };
  auto state = part(700, 1000);
  state.merge(part(0, 10));
  state.merge(part(10, 700));
  state.normalise(regroup::view(merged.data(), {queries, d}));

  float worst = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) worst = std::max(worst, std::abs(whole[i] - merged[i]));
  std::printf("three machines' states, merged out of order: worst difference from the whole %.1e\n", worst);
  return worst < 1e-6f ? 0 : 1;
}
