// SPDX-License-Identifier: Apache-2.0
// What the programs of bits share: one line a case, `case 0xhash`, the hash of everything that a verb gave.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "../order/digest.hpp"
#include "regroup/algorithms/attention.hpp"
#include "regroup/algorithms/softmax.hpp"
#ifdef REGROUP_BITS_ON_ONE_THREAD  // where oneTBB has not been compiled for the processor
#include "regroup/host/seq.hpp"
#else
#include "regroup/host/par.hpp"
#endif
#include "regroup/reduce.hpp"
#include "regroup/scan.hpp"

namespace bits {

#ifdef REGROUP_BITS_ON_ONE_THREAD
inline constexpr const auto& executor = regroup::seq;
#else
inline const auto& executor = regroup::par;
#endif

using order::digest;
using order::kind;

inline constexpr struct {
  kind k;
  const char* name;
} kinds[] = {{kind::plain, " plain"}, {kind::wide, " wide"}, {kind::special, " special"}};

inline void print(const std::string& name, std::uint64_t hash) {
  std::printf("%s 0x%016llx\n", name.c_str(), static_cast<unsigned long long>(hash));
}

/// Whole arrays.
template <class X, class M, class Projection = std::identity>
void wholes(const std::string& name, const M& m, kind k, const Projection& projection = {}) {
  digest all;
  for (const std::int64_t n : {0, 1, 2, 31, 33, 127, 129, 300, 4095, 4096, 4097, 12'321, 40'000}) {
    const auto xs = order::numbers<X>(k, n, static_cast<std::uint64_t>(n));
    all.add(regroup::reduce(executor, xs, m, projection));
  }
  print(name + " reduce", all.value());
}

template <class X, class M, class Projection = std::identity>
void scans(const std::string& name, const M& m, kind k, const Projection& projection = {}) {
  digest all;
  for (const std::int64_t n : {1, 33, 300, 4097, 20'000}) {
    const auto xs = order::numbers<X>(k, n, static_cast<std::uint64_t>(n));
    std::vector<regroup::answer_of<M>> ys(xs.size());
    regroup::inclusive_scan(executor, xs, ys, m, projection);
    all.add(ys);
    regroup::exclusive_scan(executor, xs, ys, m, projection);
    all.add(ys);
  }
  print(name + " scan", all.value());
}

/// Numbers of X, from those of float where X has 16 bits.
template <class X>
std::vector<X> inputs(kind k, std::int64_t n, std::uint64_t seed) {
  if constexpr (sizeof(X) > 2) {
    return order::numbers<X>(k, n, seed);
  } else {
    const auto wide = order::numbers<float>(k, n, seed);
    return {wide.begin(), wide.end()};
  }
}
template <class X>
void add_widened(digest& all, const std::vector<X>& xs) {
  for (const X& x : xs) all.add(regroup::widen(x));
}

/// f(x, y) over two rows of several lengths, and what it wrote.
template <class X, class F>
void rows(const std::string& name, kind k, const F& f) {
  digest all;
  for (const std::int64_t n : {1, 37, 5000, 70'000}) {
    const auto xs = inputs<X>(k, 2 * n, static_cast<std::uint64_t>(n));
    std::vector<X> ys(xs.size());
    f(regroup::view<const X>(xs.data(), {2, n}), regroup::view<X>(ys.data(), {2, n}));
    add_widened(all, ys);
  }
  print(name, all.value());
}

/// Queries of two heads over 1100 keys of one: every output and logsumexp. With a page size the keys are in pages, the last
/// first.
template <class X>
void attentions(const std::string& name, std::int64_t queries, regroup::attention_options options, std::int64_t page = 0) {
  using real = regroup::widened<X>;
  constexpr std::int64_t d = 24, keys = 1100;
  const auto q = inputs<X>(kind::plain, 2 * queries * d, 1);
  const auto k = inputs<X>(kind::plain, keys * d, 2);
  const auto v = inputs<X>(kind::plain, keys * d, 3);
  std::vector<X> out(q.size());
  std::vector<real> lse(static_cast<std::size_t>(2 * queries));
  options.logsumexp = regroup::view<real>(lse.data(), {1, 2, queries});
  const auto attend = [&](const regroup::attention_source<X>& source) {
    regroup::attention(executor, regroup::view<const X>(q.data(), {1, 2, queries, d}), source,
                       regroup::view<X>(out.data(), {1, 2, queries, d}), options);
  };
  if (page == 0) {
    attend(regroup::dense(regroup::view<const X>(k.data(), {1, 1, keys, d}),
                          regroup::view<const X>(v.data(), {1, 1, keys, d})));
  } else {
    const std::int64_t pages = (keys + page - 1) / page;
    std::vector<X> k_pool(static_cast<std::size_t>(pages * page * d));
    std::vector<X> v_pool(k_pool.size());
    std::vector<std::int64_t> table;
    for (std::int64_t p = 0; p < pages; ++p) {
      table.push_back(pages - 1 - p);
      const auto n = std::min(page, keys - p * page) * d;
      std::copy_n(k.begin() + p * page * d, n, k_pool.begin() + table.back() * page * d);
      std::copy_n(v.begin() + p * page * d, n, v_pool.begin() + table.back() * page * d);
    }
    attend(regroup::paged(regroup::view<const X>(k_pool.data(), {pages, 1, page, d}),
                          regroup::view<const X>(v_pool.data(), {pages, 1, page, d}),
                          regroup::view<const std::int64_t>(table.data(), {1, pages}), std::vector<std::int64_t>{keys}));
  }
  digest all;
  add_widened(all, out);
  print("attention<" + name, all.add(lse).value());
}

}  // namespace bits
