// SPDX-License-Identifier: Apache-2.0
// Scans down the columns of narrow matrices, and of several: each column has the bits that it has alone, for elements, states
// and answers of any kinds, dense or with holes between rows, with any threads.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "cases.hpp"
#include "host/numbers.hpp"
#include "regroup/monoids/log_sum_exp.hpp"
#include "regroup/scan.hpp"

namespace {

using regroup::index;
using regroup::shape;
using regroup::view;

template <class X, class Y, class M>
void expect_columns_as_alone(index matrices, index n, index columns, index hole, const M& m) {
  const shape extents{matrices, n, columns}, strides{n * (columns + hole), columns + hole, 1};
  const auto xs = numbers<X>(matrices * n * (columns + hole));
  const view<const X> x(xs.data(), extents, strides);
  order::for_some_executors([&](const auto& ex, const std::string& name) {
    for (const bool inclusive : {true, false}) {
      const auto scan = [&](const auto& on, const auto& from, const auto& to, index axis) {
        if (inclusive) return regroup::inclusive_scan_axis(on, from, axis, to, m);
        regroup::exclusive_scan_axis(on, from, axis, to, m);
      };
      const Y untouched{};
      std::vector<Y> ys(xs.size(), untouched), alone(static_cast<std::size_t>(n)), expected = ys;
      scan(ex, x, view<Y>(ys.data(), extents, strides), 1);
      for (index b = 0; b < matrices; ++b) {
        for (index c = 0; c < columns; ++c) {
          const view<const X> column(&x(b, 0, c), {n}, {strides[1]});
          scan(regroup::seq, column, view<Y>(alone.data(), {n}), 0);
          const view<Y> to(expected.data(), extents, strides);
          for (index i = 0; i < n; ++i) to(b, i, c) = alone[static_cast<std::size_t>(i)];
        }
      }
      ASSERT_EQ(0, std::memcmp(ys.data(), expected.data(), ys.size() * sizeof(Y)))
          << name << ", " << n << " x " << columns << ", " << inclusive;
    }
  });
}

template <class X, class Y, class M>
void expect_all_as_alone(const M& m) {
  for (const index columns : {2, 4, 7, 15, 19}) {
    expect_columns_as_alone<X, Y>(3, 5000, columns, 0, m);
    expect_columns_as_alone<X, Y>(1, 300, columns, 3, m);
  }
}

}  // namespace

TEST(narrow_columns, numbers) {
  expect_all_as_alone<float, float>(regroup::plus<float>{});
  expect_all_as_alone<double, float>(regroup::maximum<double>{});
  expect_columns_as_alone<float, float>(1, 90'000, 6, 0, regroup::plus<float>{});
}
TEST(narrow_columns, answers_of_other_types) {
  expect_all_as_alone<regroup::bfloat16, float>(regroup::plus<float>{});
  expect_all_as_alone<float, double>(regroup::plus<double>{});
}
TEST(narrow_columns, states_of_several_numbers) {
  expect_all_as_alone<float, float>(regroup::log_sum_exp<float>{});
  expect_all_as_alone<regroup::affine_map<float>, regroup::affine_map<float>>(regroup::affine<float>{});
  expect_columns_as_alone<float, float>(1, 90'000, 6, 0, regroup::log_sum_exp<float>{});
}
