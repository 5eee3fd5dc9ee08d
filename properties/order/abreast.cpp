// SPDX-License-Identifier: Apache-2.0
// Many rows at once: short ones, columns of a matrix, rows behind any strides. Each has the tree that it has alone, in a
// reduction and in a scan, whatever its neighbours are, and nothing outside the output is written.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "regroup/monoids/arithmetic.hpp"
#include "regroup/monoids/extremum.hpp"
#include "regroup/monoids/fanout.hpp"
#include "regroup/monoids/log_sum_exp.hpp"
#include "regroup/monoids/mean.hpp"
#include "regroup/monoids/moments.hpp"
#include "regroup/reduce.hpp"
#include "scans.hpp"

namespace {

using order::rule;
using order::word;
using regroup::index;
using regroup::view;

/// The places of rows x n elements in `memory` elements, the first of them at `first`.
struct layout {
  std::string name;
  index pitch, stride, first, memory;
};

std::vector<layout> layouts(index rows, index n) {
  return {{"rows", n, 1, 0, rows * n},
          {"columns", 1, rows, 0, rows * n},
          {"padded rows", n + 3, 1, 2, rows * (n + 3)},
          {"padded columns", 1, rows + 5, 3, n * (rows + 5)},
          {"every other", 2 * n, 2, 1, 2 * rows * n},
          {"backwards", -1, -rows, rows * n - 1, rows * n},
          {"rows backwards", n, -1, n - 1, rows * n}};
}

template <class T>
struct matrix {
  layout where;
  std::vector<T> memory;
  view<T> all;
  matrix(const layout& l, index rows, index n, const T& unset)
      : where(l),
        memory(static_cast<std::size_t>(l.memory), unset),
        all(memory.data() + l.first, {rows, n}, {l.pitch, l.stride}) {}
};

template <class T>
std::vector<T> row_of(const view<T>& m, index row) {
  std::vector<T> xs;
  for (index i = 0; i < m.extent(1); ++i) xs.push_back(m(row, i));
  return xs;
}

/// rows x n values where a layout puts them, 5 elsewhere.
matrix<word> laid_out(const layout& l, index rows, index n, const std::vector<word>& values) {
  matrix<word> m(l, rows, n, 5);
  for (index r = 0; r < rows; ++r) {
    for (index i = 0; i < n; ++i) m.all(r, i) = values[static_cast<std::size_t>(r * n + i)];
  }
  return m;
}

template <rule Rule, class State>
void expect_trees(index rows, index n) {
  const order::hashed<Rule, State> m;
  const auto elements = order::elements(rows * n);
  std::vector<word> reduced, scanned[2];  // inclusive, exclusive
  for (index r = 0; r < rows; ++r) {
    const std::vector<word> row(elements.begin() + r * n, elements.begin() + (r + 1) * n);
    const auto ys = order::expected_inclusive(row);
    reduced.push_back(order::expected<Rule>(row));
    scanned[0].insert(scanned[0].end(), ys.begin(), ys.end());
    scanned[1].push_back(0);
    scanned[1].insert(scanned[1].end(), ys.begin(), ys.end() - 1);
  }
  const auto places = layouts(rows, n);
  for (std::size_t k = 0; k < places.size(); ++k) {
    const auto x = laid_out(places[k], rows, n, elements);
    for (const bool in_place : {false, true}) {
      const layout& place = in_place ? places[k] : places[(k + 1) % places.size()];
      const matrix<word> after[2]{laid_out(place, rows, n, scanned[0]), laid_out(place, rows, n, scanned[1])};
      order::for_some_executors([&](const auto& ex, const std::string& name) {
        const std::string where = name + ", " + places[k].name + ", " + std::to_string(rows) + " x " + std::to_string(n);
        if (!in_place) {
          std::vector<word> answers(static_cast<std::size_t>(rows), 7);
          regroup::reduce_axes(ex, x.all, {1}, answers, m);
          EXPECT_TRUE(answers == reduced) << where;
        }
        if (order::lifts_tiles(Rule)) return;
        for (const bool exclusive : {false, true}) {
          matrix<word> y(place, rows, n, 5);
          if (in_place) y.memory = x.memory;
          const view<const word> from = in_place ? y.all : x.all;
          if (exclusive) {
            regroup::exclusive_scan_axis(ex, from, 1, y.all, m);
          } else {
            regroup::inclusive_scan_axis(ex, from, 1, y.all, m);
          }
          EXPECT_TRUE(y.memory == after[exclusive].memory) << where << ", in place " << in_place << ", exclusive " << exclusive;
        }
      });
    }
  }
}

template <class T>
class abreast : public testing::Test {};
template <rule Rule, class State>
struct recorded {
  static constexpr auto check = expect_trees<Rule, State>;
};
using recorders = testing::Types<recorded<rule::striped, word>, recorded<rule::pieces, order::aggregate>,
                                 recorded<rule::tile, word>>;
TYPED_TEST_SUITE(abreast, recorders);

TYPED_TEST(abreast, a_row_has_the_tree_it_has_alone) {
  for (const index n : {1, 2, 3, 7, 8, 9, 31, 32, 33, 127, 128, 129, 300, 513}) {
    for (const index rows : {4, 16, 37}) TypeParam::check(rows, n);
  }
  for (const index n : {4095, 4096, 4097, 9000, 20'000}) TypeParam::check(n < 9000 ? 18 : 5, n);
  if (!order::small()) TypeParam::check(150, 4099);
  if (!order::small()) TypeParam::check(1100, 70);  // more columns than are swept together
}

/// Columns of a matrix, enough of them to be folded by the page.
template <rule Rule, class State>
void expect_trees_of_columns(index columns, index n) {
  const order::hashed<Rule, State> m;
  for (const index padding : {0, 3}) {
    const auto memory = order::elements(n * (columns + padding));
    const view<const word> x(memory.data(), {n, columns}, {columns + padding, 1});
    std::vector<word> expected, column(static_cast<std::size_t>(n));
    for (index k = 0; k < columns; ++k) {
      for (index i = 0; i < n; ++i) column[static_cast<std::size_t>(i)] = x(i, k);
      expected.push_back(order::expected<Rule>(column));
    }
    order::for_some_executors([&](const auto& ex, const std::string& name) {
      std::vector<word> answers(static_cast<std::size_t>(columns), 7);
      regroup::reduce_axes(ex, x, {0}, answers, m);
      EXPECT_TRUE(answers == expected) << name << ", " << n << " x " << columns << ", padded by " << padding;
    });
  }
}
template <rule Rule, class State = word>
void expect_trees_of_columns() {
  for (const index n : {1, 2, 3, 5, 31, 32, 33, 63, 65, 96, 97, 127, 128, 129, 130, 255, 257, 300, 385, 513}) {
    for (const index columns : {2, 3, 8, 15, 16, 17, 31, 32, 64, 95}) expect_trees_of_columns<Rule, State>(columns, n);
  }
  for (const index n : {3, 129, 300}) expect_trees_of_columns<Rule, State>(order::small() ? 300 : 4500, n);
  for (const index n : {4095, 4096, 4097, 9000}) {
    for (const index columns : {5, order::small() ? 70 : 150}) expect_trees_of_columns<Rule, State>(columns, n);
  }
  for (const index columns : {2, 11, 24}) expect_trees_of_columns<Rule, State>(columns, 33'001);  // tiles for every thread
}
/// Sums and prefixes along the middle axis of a view: columns side by side in runs that end, also where no thread's share does.
TEST(abreast_columns, in_runs) {
  for (const auto& extents : {std::array<index, 3>{7, 300, 40}, {3, 65, 100}, {40, 33, 33}, {3, 300, 1100}}) {
    const index many = extents[0], n = extents[1], run = extents[2];
    const auto xs = order::elements(many * n * run);
    const view<const word> x(xs.data(), {many, n, run});
    std::vector<word> expected, column(static_cast<std::size_t>(n)), prefixes(xs.size());
    const view<word> prefix(prefixes.data(), {many, n, run});
    for (index b = 0; b < many; ++b) {
      for (index k = 0; k < run; ++k) {
        for (index i = 0; i < n; ++i) column[static_cast<std::size_t>(i)] = x(b, i, k);
        expected.push_back(order::expected<rule::striped>(column));
        const auto of_column = order::expected_inclusive(column);
        for (index i = 0; i < n; ++i) prefix(b, i, k) = of_column[static_cast<std::size_t>(i)];
      }
    }
    const std::string shape = std::to_string(many) + " x " + std::to_string(n) + " x " + std::to_string(run);
    order::for_some_executors([&](const auto& ex, const std::string& name) {
      std::vector<word> answers(expected.size(), 7);
      regroup::reduce_axes(ex, x, {1}, answers, order::hashed<rule::striped>{});
      EXPECT_TRUE(answers == expected) << name << ", " << shape;
      auto ys = xs;
      const view<word> y(ys.data(), {many, n, run});
      regroup::inclusive_scan_axis(ex, y, 1, y, order::hashed<rule::striped>{});
      EXPECT_TRUE(ys == prefixes) << name << ", " << shape << ", in place";
    });
  }
}

/// As std::thread::hardware_concurrency() may say of a machine: that it does not know.
struct of_unknown_size : regroup::host::threads<of_unknown_size> {
  static int concurrency() { return 0; }
  template <class Body>
  void bulk(index n, const Body& body) const {
    for (index i = 0; i < n; ++i) body(i);
  }
};
TEST(abreast_columns, on_an_executor_that_does_not_know_its_size) {
  const std::vector<float> ones(300 * 40, 1.0F);
  std::vector<float> sums(40);
  regroup::reduce_axes(of_unknown_size{}, view<const float>(ones.data(), {300, 40}), {0}, sums, regroup::plus<float>{});
  EXPECT_EQ(std::count(sums.begin(), sums.end(), 300.0F), 40);
}

TEST(abreast_columns, have_the_trees_they_have_alone) {
  expect_trees_of_columns<rule::striped>();
  expect_trees_of_columns<rule::striped, order::aggregate>();
  expect_trees_of_columns<rule::pieces>();
  expect_trees_of_columns<rule::pieces, order::aggregate>();
  expect_trees_of_columns<rule::tile>();
}

/// Another word for every position.
struct marked {
  constexpr word operator()(word x, index i) const { return x ^ (static_cast<word>(i + 1) * 0x9e3779b97f4a7c15u); }
};
template <rule Rule, class State = word>
void expect_trees_of_marked_columns(index columns, index n, index padding) {
  const auto memory = order::elements(n * (columns + padding));
  const view<const word> x(memory.data(), {n, columns}, {columns + padding, 1});
  auto as_rows = order::elements(columns * (n + padding));  // each column, contiguous
  const view<const word> rows(as_rows.data(), {columns, n}, {n + padding, 1});
  std::vector<word> expected, column(static_cast<std::size_t>(n));
  for (index k = 0; k < columns; ++k) {
    for (index i = 0; i < n; ++i) {
      as_rows[static_cast<std::size_t>(k * (n + padding) + i)] = x(i, k);
      column[static_cast<std::size_t>(i)] = marked{}(x(i, k), i);
    }
    expected.push_back(order::expected<Rule>(column));
  }
  order::for_some_executors([&](const auto& ex, const std::string& name) {
    std::vector<word> answers(static_cast<std::size_t>(columns), 7);
    regroup::reduce_axes(ex, x, {0}, answers, order::hashed<Rule, State>{}, marked{});
    EXPECT_TRUE(answers == expected) << name << ", " << n << " x " << columns << ", padded by " << padding;
    answers.assign(answers.size(), 7);
    regroup::reduce_rows(ex, rows, answers, order::hashed<Rule, State>{}, marked{});
    EXPECT_TRUE(answers == expected) << name << ", rows of " << n << " beside " << columns << ", padded by " << padding;
  });
}
TEST(abreast_columns, seen_with_their_positions) {
  for (const index n : {1, 2, 33, 127, 128, 129, 300, 4097, 9000}) {
    for (const index columns : {2, 8, 15, 16, 17, 31, 33, 100}) {
      for (const index padding : {0, 3}) {
        expect_trees_of_marked_columns<rule::striped>(columns, n, padding);
        expect_trees_of_marked_columns<rule::striped, order::aggregate>(columns, n, padding);
        expect_trees_of_marked_columns<rule::pieces>(columns, n, padding);
      }
    }
  }
  expect_trees_of_marked_columns<rule::striped>(1100, 140, 0);
}

/// The first of many equal ones, or a NaN.
TEST(abreast_columns, have_their_first_largest_element) {
  const index n = 5000, columns = 40;
  std::vector<float> x(static_cast<std::size_t>(n * columns));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 7919 % 97);
  x[static_cast<std::size_t>(4321 * columns + 7)] = std::numeric_limits<float>::quiet_NaN();
  const view<const float> all(x.data(), {n, columns});
  std::vector<regroup::indexed<float>> got(static_cast<std::size_t>(columns));
  order::for_some_executors([&](const auto& ex, const std::string& name) {
    regroup::reduce_axes(ex, all, {0}, got, regroup::argmax<float>{}, regroup::with_position{});
    for (index k = 0; k < columns; ++k) {
      const view<const float> column(&all(0, k), {n}, {columns});
      const auto alone = regroup::reduce(regroup::seq, column, regroup::argmax<float>{}, regroup::with_position{});
      const auto& [value, position] = got[static_cast<std::size_t>(k)];
      EXPECT_EQ(position, alone.position) << name << ", column " << k;
      EXPECT_TRUE(value == alone.value || (k == 7 && position == 4321 && value != value)) << name << ", column " << k;
    }
  });
}

/// Bitwise, any NaN being any other.
template <class T>
bool same(const T& a, const T& b) {
  if constexpr (requires { a != b; }) {
    if (a != a && b != b) return true;
  }
  return std::memcmp(&a, &b, sizeof a) == 0;
}
template <class... T>
bool same(const std::tuple<T...>& a, const std::tuple<T...>& b) {
  return [&]<std::size_t... K>(std::index_sequence<K...>) {
    return (same(std::get<K>(a), std::get<K>(b)) && ...);
  }(std::index_sequence_for<T...>{});
}

/// The bits of floats, of several monoids that go abreast and of some that cannot.
template <class M, class X>
void expect_bits(const M& m, const std::vector<X>& elements, index rows) {
  const index n = static_cast<index>(elements.size()) / rows;
  for (const auto& place : layouts(rows, n)) {
    matrix<X> x(place, rows, n, X{});
    for (index r = 0; r < rows; ++r) {
      for (index i = 0; i < n; ++i) x.all(r, i) = elements[static_cast<std::size_t>(r * n + i)];
    }
    using answer = regroup::answer_of<M>;
    std::vector<answer> got(static_cast<std::size_t>(rows));
    regroup::reduce_rows(regroup::par, x.all, [&](index r, const answer& a) { got[static_cast<std::size_t>(r)] = a; }, m);
    for (index r = 0; r < rows; ++r) {
      const auto alone = regroup::reduce(regroup::seq, row_of(x.all, r), m);
      EXPECT_TRUE(same(got[static_cast<std::size_t>(r)], alone)) << place.name << ", " << rows << " x " << n;
    }
  }
}

TEST(abreast_bits, of_several_monoids) {
  order::dice random(5);
  for (const auto& [rows, n] : {std::pair<index, index>{16, 17},
                                {33, 64},
                                {20, 300},
                                {17, 5000},
                                {150, 700},
                                {2100, 70},
                                {3, 9000},
                                {6, 200},
                                {24, 333}}) {
    std::vector<float> x;
    for (index i = 0; i < rows * n; ++i) x.push_back(static_cast<float>(random(-1000, 1000)) / 64);
    expect_bits(regroup::moments<double>{}, x, rows);
    if (n == 17 || rows == 2100) {
      x[20] = std::numeric_limits<float>::quiet_NaN();
      x[static_cast<std::size_t>(5 * n)] = std::numeric_limits<float>::infinity();
      x[static_cast<std::size_t>(5 * n + 1)] = -std::numeric_limits<float>::infinity();
    }
    expect_bits(regroup::plus<float>{}, x, rows);
    expect_bits(regroup::log_sum_exp<float>{}, x, rows);
    expect_bits(regroup::fanout{regroup::mean<double>{}, regroup::log_sum_exp<float>{}}, x, rows);
    expect_bits(regroup::fanout{regroup::minimum<float>{}, regroup::plus<double>{}}, x, rows);
    std::vector<regroup::bfloat16> narrow;
    for (const float e : x) narrow.emplace_back(e);
    expect_bits(regroup::plus<float>{}, narrow, rows);
  }
}

struct small {
  std::uint8_t a, b, c;
};
struct large {
  double a, b, c, d;
};
struct sum_of_parts : regroup::plus<int> {
  constexpr int lift(bool x) const { return x ? 1 : 0; }
  constexpr int lift(const small& x) const { return x.a + 2 * x.b + 3 * x.c; }
  constexpr int lift(const large& x) const { return static_cast<int>(x.a - x.b + 3 * x.c - x.d); }
};

/// Elements of any size, bool among them, which std::vector packs.
template <class X>
void expect_sums(const std::vector<X>& kinds) {
  const index rows = 21, n = 34;
  const auto memory = std::make_unique<X[]>(static_cast<std::size_t>(rows * n));
  std::vector<int> expected(static_cast<std::size_t>(rows)), got(expected), prefixes(static_cast<std::size_t>(rows * n));
  for (index k = 0; k < rows * n; ++k) {
    memory[static_cast<std::size_t>(k)] = kinds[static_cast<std::size_t>(k * k % 7) % kinds.size()];
    expected[static_cast<std::size_t>(k % rows)] += sum_of_parts{}.lift(memory[static_cast<std::size_t>(k)]);
  }
  const view<const X> columns(memory.get(), {n, rows});
  regroup::reduce_axes(regroup::seq, columns, {0}, got, sum_of_parts{});
  EXPECT_EQ(got, expected);
  regroup::inclusive_scan_axis(regroup::seq, columns, 0, view<int>(prefixes.data(), {n, rows}), sum_of_parts{});
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), prefixes.end() - rows));
}
TEST(abreast_elements, of_any_size) {
  expect_sums<bool>({true, false, false});
  expect_sums<small>({{1, 2, 3}, {4, 5, 6}, {255, 0, 9}});
  expect_sums<large>({{1, 2, 3, 4}, {5, -6, 7, 8}});
  std::array<bool, 300> set{}, seen{};
  set[44] = true;  // column 14 of 30, row 1 of 10
  regroup::inclusive_scan_axis(regroup::seq, view<bool>(set.data(), {10, 30}), 0, view<bool>(seen.data(), {10, 30}),
                               regroup::any{});
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 9);
}

/// Runs of rows that end elsewhere in the input than in the output.
TEST(abreast_elements, rows_that_break_elsewhere) {
  const index a = 7, b = 9, n = 20;
  const auto xs = order::elements(a * (b + 2) * n);
  std::vector<word> ys(static_cast<std::size_t>(a * b * n));
  const view<const word> in(xs.data(), {a, b, n}, {(b + 2) * n, n, 1});
  regroup::inclusive_scan_rows(regroup::par, in, view<word>(ys.data(), {a, b, n}), order::hashed<rule::pieces>{});
  for (index i = 0; i < a; ++i) {
    for (index j = 0; j < b; ++j) {
      const std::vector<word> row(&in(i, j, 0), &in(i, j, 0) + n);
      const auto at = ys.begin() + (i * b + j) * n;
      EXPECT_TRUE(std::equal(at, at + n, order::expected_inclusive(row).begin())) << i << ' ' << j;
    }
  }
}

}  // namespace
