// SPDX-License-Identifier: Apache-2.0
// cuda::device's reductions beside those of seq, bit for bit: ranges, rows of few and of many elements, and segments.
#pragma once

#include <vector>

#include "../order/digest.hpp"
#include "gpu.cuh"
#include "regroup/host/seq.hpp"
#include "regroup/reduce.hpp"

namespace gpu {

using order::digest_of;
using regroup::answer_of;
using regroup::index;
namespace cuda = regroup::cuda;

/// What X(x) makes of numbers, some of them special; of a pair {x / 8, 1 - x}.
template <class X>
std::vector<X> elements(index n) {
  std::vector<X> xs;
  for (const float x : order::numbers<float>(order::kind::special, n, static_cast<std::uint64_t>(n) + 3)) {
    if constexpr (requires { X{x, x}; }) {
      xs.push_back({x * 0.125f, 1 - x});
    } else {
      xs.push_back(X(x));
    }
  }
  return xs;
}

template <class Y>
void expect_same(const std::vector<Y>& ys, const std::vector<Y>& expected, const char* what, index n) {
  gpu::expect(digest_of(ys) == digest_of(expected), what, n);
}

/// Offsets of a few hundred segments, and of so many short ones beside long ones that a block looks at several places.
inline std::vector<std::vector<int>> mixes_of_segments() {
  std::vector<int> few = {0}, many = {0};
  for (int s = 0; s < 300; ++s) few.push_back(few.back() + (s % 50 == 7 ? 20'000 : s % 5 == 0 ? 0 : s * s % 91));
  for (int s = 0; s < 200'000; ++s) many.push_back(many.back() + (s % 7'000 == 11 ? 5'000 + s % 9'999 : s * 7 % 13));
  many.push_back(many.back());
  if (gpu::is_left_out(many.back())) return {few};
  return {few, many};
}

template <class X, class M>
void folds(const cuda::device& on, const M& m) {
  using answer = answer_of<M>;
  for (const index n : {1, 31, 33, 129, 1000, 1025, 4095, 4097, 100'000, 3'000'001}) {
    if (gpu::is_left_out(n)) continue;
    const auto xs = elements<X>(n);
    const gpu::array<X> x(xs);
    gpu::expect(digest_of(regroup::reduce(on, x.view(), m)) == digest_of(regroup::reduce(regroup::seq, xs, m)), "reduce", n);
  }
  for (const index n : {1, 3, 32, 33, 500, 1024, 1025, 5000}) {
    const index rows = n < 100 ? 1001 : 37;
    const auto xs = elements<X>(rows * n);
    const gpu::array<X> x(xs);
    const gpu::array<answer> y(std::vector<answer>(static_cast<std::size_t>(rows)));
    regroup::reduce_rows(on, x.rows(rows), y.view(), m);
    std::vector<answer> expected(static_cast<std::size_t>(rows));
    regroup::reduce_rows(regroup::seq, regroup::view<const X>(xs.data(), {rows, n}), expected, m);
    expect_same(y.values(), expected, "reduce_rows", n);
  }
  for (const auto& offsets : mixes_of_segments()) {
    const auto xs = elements<X>(offsets.back());
    const gpu::array<X> x(xs);
    const gpu::array<int> o(offsets);
    std::vector<answer> expected(offsets.size() - 1);
    const gpu::array<answer> y(expected);
    regroup::reduce_segments(on, x.view(), o.view(), y.view(), m);
    regroup::reduce_segments(regroup::seq, xs, offsets, expected, m);
    expect_same(y.values(), expected, "reduce_segments", offsets.back());
  }
}

}  // namespace gpu
