// SPDX-License-Identifier: Apache-2.0
// Scans down the columns of narrow matrices, and of several: each column has the bits that it has alone, for elements, states
// and answers of any kinds, dense or with holes between rows, with any threads.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
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

/// Rows of x have a hole, or stand in reverse; those of y have another.
template <class X, class Y, class M>
void expect_columns_as_alone(index matrices, index n, index columns, index hole, const M& m, index hole_of_y = 0,
                             bool is_reversed = false) {
  const shape extents{matrices, n, columns}, strides{n * (columns + hole_of_y), columns + hole_of_y, 1};
  const auto xs = numbers<X>(matrices * n * (columns + hole));
  const index row = columns + hole;
  const view<const X> x(xs.data() + (is_reversed ? (n - 1) * row : 0), extents, {n * row, is_reversed ? -row : row, 1});
  order::for_some_executors([&](const auto& ex, const std::string& name) {
    for (const bool inclusive : {true, false}) {
      const auto scan = [&](const auto& on, const auto& from, const auto& to, index axis) {
        if (inclusive) return regroup::inclusive_scan_axis(on, from, axis, to, m);
        regroup::exclusive_scan_axis(on, from, axis, to, m);
      };
      Y untouched;
      std::memset(&untouched, 77, sizeof untouched);
      std::vector<Y> ys(static_cast<std::size_t>(matrices * strides[0]), untouched), alone(static_cast<std::size_t>(n));
      auto expected = ys;
      scan(ex, x, view<Y>(ys.data(), extents, strides), 1);
      for (index b = 0; b < matrices; ++b) {
        for (index c = 0; c < columns; ++c) {
          const view<const X> column(&x(b, 0, c), {n}, {x.stride(1)});
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
    expect_columns_as_alone<X, Y>(1, 600, columns, 3, m, 3);
    expect_columns_as_alone<X, Y>(2, 600, columns, 0, m, 1);
    expect_columns_as_alone<X, Y>(1, 5000, columns, 2, m, 0, true);
  }
}

/// A sum that is absent for good once an element is negative.
struct poisoned {
  using state = std::optional<int>;
  static constexpr bool is_commutative = true;
  constexpr state identity() const { return 0; }
  constexpr state lift(int x) const { return x < 0 ? state{} : state{x}; }
  constexpr state operator()(const state& a, const state& b) const { return a && b ? state{*a + *b} : state{}; }
  constexpr int lower(const state& s) const { return s.value_or(-1); }
};
/// The longest word so far, the first of equals: a state that owns memory.
struct longest {
  std::string identity() const { return {}; }
  std::string lift(int x) const { return std::string(static_cast<std::size_t>(x % 37), static_cast<char>('a' + x % 26)); }
  std::string operator()(const std::string& a, const std::string& b) const { return b.size() > a.size() ? b : a; }
  int lower(const std::string& s) const { return s.empty() ? 0 : static_cast<int>(s.size()) * 100 + s[0]; }
};

template <class M>
void expect_integers(const M& m, int negative) {
  for (const index columns : {3, 12}) {
    const index n = 9001;
    std::vector<int> xs, expected(static_cast<std::size_t>(n * columns)), ys = expected;
    for (index i = 0; i < n * columns; ++i) xs.push_back(i == negative ? -1 : static_cast<int>(i * 7919 % 1013));
    for (const bool inclusive : {true, false}) {
      for (index c = 0; c < columns; ++c) {
        auto s = m.identity();
        for (index i = c; i < n * columns; i += columns) {
          const auto at = static_cast<std::size_t>(i);
          if (!inclusive) expected[at] = m.lower(s);
          s = m(s, m.lift(xs[at]));
          if (inclusive) expected[at] = m.lower(s);
        }
      }
      order::for_some_executors([&](const auto& ex, const std::string& name) {
        const view<const int> x(xs.data(), {n, columns});
        const view<int> y(ys.data(), {n, columns});
        if (inclusive) {
          regroup::inclusive_scan_axis(ex, x, 0, y, m);
        } else {
          regroup::exclusive_scan_axis(ex, x, 0, y, m);
        }
        EXPECT_EQ(ys, expected) << name << ", " << columns << ", " << inclusive;
      });
    }
  }
}

TEST(narrow_columns, numbers) {
  expect_all_as_alone<float, float>(regroup::plus<float>{});
  expect_all_as_alone<double, float>(regroup::maximum<double>{});
  expect_columns_as_alone<float, float>(1, 90'000, 6, 0, regroup::plus<float>{});
}
TEST(narrow_columns, of_states_that_are_optional_or_own_memory) {
  expect_integers(poisoned{}, 5 * 4096 + 17);
  expect_integers(poisoned{}, -1);
  expect_integers(longest{}, -1);
}
TEST(narrow_columns, in_place) {
  for (const index columns : {2, 5, 12, 20}) {
    auto xs = numbers<float>(9001 * columns);
    std::vector<float> expected(xs.size());
    const shape extents{9001, columns};
    regroup::inclusive_scan_axis(regroup::seq, view<const float>(xs.data(), extents), 0, view<float>(expected.data(), extents),
                                 regroup::plus<float>{});
    const view<float> x(xs.data(), extents);
    regroup::inclusive_scan_axis(regroup::seq, x, 0, x, regroup::plus<float>{});
    EXPECT_EQ(xs, expected) << columns;
  }
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

}  // namespace
