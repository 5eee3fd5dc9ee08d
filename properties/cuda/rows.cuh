// SPDX-License-Identifier: Apache-2.0
// Compares rows on a device with the contract: lengths that reach every kernel, and softmax, log_softmax and logsumexp of rows
// in place.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "../order/digest.hpp"
#include "gpu.cuh"
#include "regroup/cuda/softmax.cuh"
#include "transcribed.hpp"

namespace gpu {

using order::digest_of;
using order::kind;
using regroup::index;
namespace cuda = regroup::cuda;

constexpr index lengths[] = {1, 5, 32, 33, 700, 1024, 1025, 4095, 4096, 4097, 8192, 8193, 16'385, 30'000, 32'769, 65'535,
                             65'536, 65'537, 300'001, 1'048'577};
inline index count_of(index n) { return n < 100 ? 3001 : n < 5000 ? 301 : 3; }

template <class X>
std::vector<X> elements(kind k, index n) {
  std::vector<X> xs;
  for (const float x : order::numbers<float>(k, n, static_cast<std::uint64_t>(n) + 3)) xs.push_back(X(x));
  return xs;
}
template <class X>
auto widened(const std::vector<X>& xs) {
  std::vector<regroup::widened<X>> wide;
  for (const X x : xs) wide.push_back(regroup::widen(x));
  return wide;
}

/// log(sum exp) of a row: NaN where there is one, the maximum where that is infinite.
template <class Real>
Real log_sum(const std::vector<Real>& row) {
  for (const Real x : row) {
    if (x != x) return x;
  }
  const Real largest = *std::max_element(row.begin(), row.end());
  if (std::isinf(largest)) return largest;
  const auto [m, s] = reference::softmax_state(row);
  return m + regroup::math::log(s);
}

/// logsumexp, and softmax or log_softmax in place with its logsumexps, of rows that are scaled first.
template <class X, bool IsLog = false>
void softmax_rows(const cuda::device& on, kind k, double scale = 1) {
  using real = regroup::widened<X>;
  for (const index n : lengths) {
    if (is_left_out(n)) continue;
    const index count = count_of(n);
    const auto xs = elements<X>(k, count * n);
    const array<X> x(xs);
    const array<real> lse(std::vector<real>(static_cast<std::size_t>(count)));
    auto expected = widened(xs);
    for (real& e : expected) e = e * static_cast<real>(scale);
    std::vector<real> sums;
    reference::each_row(expected, count, [&](std::vector<real>& row) {
      sums.push_back(log_sum(row));
      IsLog ? reference::log_softmax(row) : reference::softmax(row);
    });
    for (real& p : expected) p = regroup::widen(static_cast<X>(p));
    if constexpr (!IsLog) {
      regroup::logsumexp(on, x.rows(count), lse.view(), {.scale = scale});
      expect(digest_of(lse.values()) == digest_of(sums), "logsumexp", n);
      lse.forget();
    }
    const cuda::softmax_options<real> options{.scale = scale, .logsumexp = lse.view()};
    if constexpr (IsLog) {
      regroup::log_softmax(on, x.rows(count), x.rows(count), options);
    } else {
      regroup::softmax(on, x.rows(count), x.rows(count), options);
    }
    expect(digest_of(widened(x.values())) == digest_of(expected), IsLog ? "log_softmax" : "softmax", n);
    expect(digest_of(lse.values()) == digest_of(sums), "its logsumexp", n);
  }
}

}  // namespace gpu
