// SPDX-License-Identifier: Apache-2.0
// A key-value cache in pages scattered over a pool: the same reduction over the same positions, so the same bits,
// whatever the placement. A new key goes to the next free place; nothing moves.
#include <cstdio>
#include <numeric>
#include <vector>

#include "regroup/regroup.hpp"

int main() {
  const regroup::index heads = 2, keys = 50, d = 16, page = 8, pages = 7, pool = 20;
  std::vector<float> k(static_cast<std::size_t>(heads * keys * d)), v(k.size()), q(static_cast<std::size_t>(heads * d));
  for (std::size_t i = 0; i < k.size(); ++i) k[i] = static_cast<float>(i * 37 % 101) / 50 - 1;
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(i * 53 % 97) / 48 - 1;
  for (std::size_t i = 0; i < q.size(); ++i) q[i] = static_cast<float>(i % 7) / 3 - 1;

  const std::vector<int> table = {13, 2, 19, 0, 7, 5, 11};  // page p of the sequence is page table[p] of the pool
  std::vector<float> k_pool(static_cast<std::size_t>(pool * heads * page * d)), v_pool(k_pool.size());
  const regroup::shape layout = {pool, heads, page, d};
  const regroup::view<float> k_pages(k_pool.data(), layout), v_pages(v_pool.data(), layout);
  for (regroup::index h = 0; h < heads; ++h) {
    for (regroup::index j = 0; j < keys; ++j) {
      for (regroup::index c = 0; c < d; ++c) {
        const auto at = static_cast<std::size_t>((h * keys + j) * d + c);
        k_pages(table[static_cast<std::size_t>(j / page)], h, j % page, c) = k[at];
        v_pages(table[static_cast<std::size_t>(j / page)], h, j % page, c) = v[at];
      }
    }
  }
  std::vector<float> dense(q.size()), paged(q.size());
  const regroup::view query(q.data(), {1, heads, 1, d});
  const auto as_output = [&](std::vector<float>& o) { return regroup::view(o.data(), {1, heads, 1, d}); };
  regroup::attention(
      regroup::par, query,
      regroup::dense(regroup::view(k.data(), {1, heads, keys, d}), regroup::view(v.data(), {1, heads, keys, d})),
      as_output(dense));
  regroup::attention(regroup::par, query,
                     regroup::paged(k_pages, v_pages, regroup::view(table.data(), {1, pages}), std::vector{keys}),
                     as_output(paged));
  std::printf("one decoded token over 50 keys in 7 scattered pages: %s\n",
              dense == paged ? "the same bits" : "other bits");
  return dense == paged ? 0 : 1;
}
