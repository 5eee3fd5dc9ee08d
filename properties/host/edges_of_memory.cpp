// SPDX-License-Identifier: Apache-2.0
// Nothing is read or written before the first element or behind the last, whatever is prefetched: arrays between pages without
// access rights have the bits of arrays elsewhere. Level: thread.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "host/guarded.hpp"
#include "host/numbers.hpp"
#include "regroup/algorithms/softmax.hpp"
#include "regroup/host/par.hpp"
#include "regroup/host/seq.hpp"
#include "regroup/monoids/affine.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/monoids/log_sum_exp.hpp"
#include "regroup/monoids/minmax.hpp"
#include "regroup/monoids/moments.hpp"
#include "regroup/reduce.hpp"
#include "regroup/scan.hpp"

namespace {

using regroup::index;
using regroup::view;

/// work(elements, results, in how many threads), of `in` elements and for `out` results, at both edges and elsewhere.
template <class T, class Work>
void expect_same_bits(index in, index out, const Work& work) {
  const auto xs = numbers<T>(in);
  std::vector<T> expected(static_cast<std::size_t>(out));
  work(xs.data(), expected.data(), 1);
  for (const edge where : {edge::before, edge::behind}) {
    for (const int threads : {1, 3}) {
      const guarded<T> elements(xs, where), results(std::vector<T>(expected.size()), where);
      work(elements.data(), results.data(), threads);
      EXPECT_EQ(std::memcmp(results.data(), expected.data(), expected.size() * sizeof(T)), 0)
          << in << (where == edge::before ? " elements behind a page" : " elements before a page") << " by " << threads;
    }
  }
}

/// Some of a vector, of a tile, of several; what is written past the caches.
constexpr index sizes[] = {1, 19, 129, 4095, 4097, 50'001, 2'100'003};
static_assert(sizes[6] * sizeof(float) > regroup::cached_output_bytes);

template <class M, class T>
void reduces(const M& m) {
  for (const index n : sizes) {
    constexpr index room = 16;
    expect_same_bits<T>(n, room, [&](const T* x, T* y, int threads) {
      const auto all = regroup::reduce(regroup::par.with_threads(threads), view<const T>(x, {n}), m);
      static_assert(sizeof all <= room * sizeof(T));
      std::memcpy(y, &all, sizeof all);
    });
  }
}

TEST(edges_of_memory, reduce) {
  reduces<regroup::plus<float>, float>({});
  reduces<regroup::plus<double>, double>({});
  reduces<regroup::log_sum_exp<float>, float>({});
  reduces<regroup::log_sum_exp<float>, regroup::float16>({});
  reduces<regroup::log_sum_exp<float>, regroup::bfloat16>({});
  reduces<regroup::minmax<float>, float>({});
  reduces<regroup::moments<float>, float>({});
  reduces<regroup::affine<float>, regroup::affine_map<float>>({});
}

template <class M, class T>
void scans(const M& m) {
  for (const index n : sizes) {
    expect_same_bits<T>(n, n, [&](const T* x, T* y, int threads) {
      regroup::inclusive_scan(regroup::par.with_threads(threads), view<const T>(x, {n}), view<T>(y, {n}), m);
    });
  }
}

TEST(edges_of_memory, scan) {
  scans<regroup::plus<float>, float>({});
  scans<regroup::maximum<double>, double>({});
  scans<regroup::affine<float>, regroup::affine_map<float>>({});
}

TEST(edges_of_memory, columns) {
  for (const auto& all : {regroup::shape{3, 7}, {130, 33}, {700, 300}, {2100, 1003}}) {
    const index rows = all[0], columns = all[1];
    expect_same_bits<float>(rows * columns, columns, [&](const float* x, float* y, int threads) {
      regroup::reduce_axes(regroup::par.with_threads(threads), view<const float>(x, all), {0}, view<float>(y, {columns}),
                           regroup::plus<float>{});
    });
    expect_same_bits<float>(rows * columns, rows * columns, [&](const float* x, float* y, int threads) {
      regroup::inclusive_scan_axis(regroup::par.with_threads(threads), view<const float>(x, all), 0, view<float>(y, all),
                                   regroup::plus<float>{});
    });
  }
}

template <class T>
void softmax() {
  for (const auto& [rows, length] : {std::pair<index, index>{40, 3}, {20, 129}, {9, 5000}, {2100, 1003}, {2, 70'001}}) {
    const regroup::shape all = {rows, length};
    expect_same_bits<T>(rows * length, rows * length, [&](const T* x, T* y, int threads) {
      regroup::softmax(regroup::par.with_threads(threads), view<const T>(x, all), view<T>(y, all));
    });
  }
}

TEST(edges_of_memory, softmax) {
  softmax<float>();
  softmax<double>();
  softmax<regroup::float16>();
  softmax<regroup::bfloat16>();
}

}  // namespace
