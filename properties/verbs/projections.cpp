// SPDX-License-Identifier: Apache-2.0
// A verb with a projection gives the bits that it gives over elements projected beforehand: every verb, wherever the elements
// lie.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "operators.hpp"
#include "regroup/regroup.hpp"

namespace {

using regroup::index;
using regroup::par;
using regroup::seq;
using regroup::view;

struct point {
  float x;
  std::int32_t n;
};
std::vector<point> points(index count) {
  std::vector<point> made;
  for (index i = 0; i < count; ++i) made.push_back({static_cast<float>(i * 7919 % 1013) * 0.01f - 5, static_cast<int>(i % 91)});
  return made;
}

/// As bytes, but for those between members.
template <class T>
bool same(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
  } else if constexpr (std::is_arithmetic_v<T>) {
    return a == b;
  } else {
    return same(a.a, b.a) && same(a.b, b.b);
  }
}
template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!same(a[i], b[i])) return false;
  }
  return a.size() == b.size();
}

template <class M, class Projection>
void expect_projected_first(const M& m, const Projection& projection) {
  using seen = std::remove_cvref_t<std::invoke_result_t<const Projection&, const point&>>;
  using answer = regroup::answer_of<M>;
  for (const auto& [rows, columns] : std::vector<std::pair<index, index>>{{1, 1}, {3, 40}, {150, 70}, {5, 9000}, {9000, 33}}) {
    const std::vector<point> xs = points(rows * columns);
    std::vector<seen> first;
    for (const point& x : xs) first.push_back(std::invoke(projection, x));
    const view<const point> x(xs.data(), {rows, columns});
    const view<const seen> y(first.data(), {rows, columns});
    const auto expect = [&](const char* verb, std::size_t count, const auto& by_projection, const auto& of_projected) {
      std::vector<answer> a(count), b(count);
      by_projection(a);
      of_projected(b);
      EXPECT_TRUE(same(a, b)) << verb << ' ' << rows << ' ' << columns;
    };
    expect("reduce", 1, [&](auto& out) { out[0] = regroup::reduce(par, xs, m, projection); },
           [&](auto& out) { out[0] = regroup::reduce(seq, first, m); });
    expect("rows", static_cast<std::size_t>(rows), [&](auto& out) { regroup::reduce_rows(par, x, out, m, projection); },
           [&](auto& out) { regroup::reduce_rows(seq, y, out, m); });
    expect("columns", static_cast<std::size_t>(columns),
           [&](auto& out) { regroup::reduce_axes(par, x, {0}, out, m, projection); },
           [&](auto& out) { regroup::reduce_axes(seq, y, {0}, out, m); });
    const std::vector<index> cuts = {0, rows, rows, rows * columns};
    expect("segments", 3, [&](auto& out) { regroup::reduce_segments(par, xs, cuts, out, m, projection); },
           [&](auto& out) { regroup::reduce_segments(seq, first, cuts, out, m); });
    expect("scan", xs.size(), [&](auto& out) { regroup::inclusive_scan(par, xs, out, m, projection); },
           [&](auto& out) { regroup::inclusive_scan(seq, first, out, m); });
    expect("exclusive scan", xs.size(), [&](auto& out) { regroup::exclusive_scan(seq, xs, out, m, projection); },
           [&](auto& out) { regroup::exclusive_scan(par, first, out, m); });
    expect("scan down columns", xs.size(),
           [&](auto& out) { regroup::inclusive_scan_axis(par, x, 0, view(out.data(), {rows, columns}), m, projection); },
           [&](auto& out) { regroup::inclusive_scan_axis(seq, y, 0, view(out.data(), {rows, columns}), m); });
  }
}

}  // namespace

TEST(projections, of_members) { expect_projected_first(regroup::plus<float>{}, &point::x); }
TEST(projections, that_end_in_a_product) {
  expect_projected_first(regroup::plus<float>{}, [](const point& p) { return p.x * p.x; });
}
TEST(projections, of_integers) { expect_projected_first(regroup::maximum<std::int32_t>{}, &point::n); }
TEST(projections, that_compute) {
  expect_projected_first(regroup::plus<float>{}, [](const point& p) { return regroup::math::exp(p.x); });
}
TEST(projections, into_what_lifts_tiles) {
  expect_projected_first(regroup::log_sum_exp<float>{}, [](const point& p) { return p.x * 2; });
}
TEST(projections, into_what_does_not_commute) {
  expect_projected_first(regroup::affine<float>{}, [](const point& p) { return regroup::affine_map<float>{0.5f, p.x}; });
}
TEST(projections, into_what_lanes_count) { expect_projected_first(regroup::mean<float>{}, &point::x); }

/// Of positions too: those in a range, a row, a segment or along axes, wherever elements lie.
TEST(projections, of_positions) {
  using regroup::index;
  constexpr index rows = 12, columns = 9001;
  std::vector<float> xs(static_cast<std::size_t>(rows * columns));
  for (std::size_t i = 0; i < xs.size(); ++i) xs[i] = static_cast<float>(i * 7919 % 1013);
  std::vector<regroup::float16> halves(xs.begin(), xs.end());
  const auto first_largest = [&](index begin, index count, index step) {
    regroup::indexed<float> best{-std::numeric_limits<float>::infinity(), -1};
    for (index i = 0; i < count; ++i) {
      const float x = xs[static_cast<std::size_t>(begin + i * step)];
      if (x > best.value) best = {x, i};
    }
    return best;
  };
  const auto expect = [&](const regroup::indexed<float>& got, const regroup::indexed<float>& expected) {
    EXPECT_TRUE(got.value == expected.value && got.position == expected.position) << got.position << ", " << expected.position;
  };
  const regroup::argmax<float> m;
  const regroup::with_position numbered;
  const auto each = [&](const auto& ex, const auto& memory) {
    const view x(memory.data(), {rows, columns});
    std::vector<regroup::indexed<float>> of_rows(rows), of_columns(columns), of_segments(4);
    regroup::reduce_rows(ex, x, of_rows, m, numbered);
    for (index r = 0; r < rows; ++r) expect(of_rows[static_cast<std::size_t>(r)], first_largest(r * columns, columns, 1));
    regroup::reduce_axes(ex, x, {0}, of_columns, m, numbered);
    for (index c = 0; c < columns; ++c) expect(of_columns[static_cast<std::size_t>(c)], first_largest(c, rows, columns));
    regroup::reduce_rows(ex, view(memory.data(), {rows, 4500}, {columns, 2}), of_rows, m, numbered);
    for (index r = 0; r < rows; ++r) expect(of_rows[static_cast<std::size_t>(r)], first_largest(r * columns, 4500, 2));
    const index wide = columns / 3 / 2 * 2;  // every third element, in halves of a row: several axes that do not join
    const view thirds(memory.data(), {2, rows, wide / 2}, {wide / 2 * 3, columns, 3});
    std::vector<regroup::indexed<float>> of_halves(rows), of_short(rows * 2);
    regroup::reduce_axes(ex, thirds, {0, 2}, of_halves, m, numbered);
    for (index r = 0; r < rows; ++r) expect(of_halves[static_cast<std::size_t>(r)], first_largest(r * columns, wide, 3));
    regroup::reduce_rows(ex, view(memory.data(), {rows, 2, 21}, {columns, 100, 1}), of_short, m, numbered);
    for (index r = 0; r < 2 * rows; ++r) {
      expect(of_short[static_cast<std::size_t>(r)], first_largest(r / 2 * columns + r % 2 * 100, 21, 1));
    }
    for (const index n : {21, 400}) {  // one after another more than a tile
      regroup::reduce_rows(ex, view(memory.data(), {rows, n}, {columns, 2}), of_rows, m, numbered);
      for (index r = 0; r < rows; ++r) expect(of_rows[static_cast<std::size_t>(r)], first_largest(r * columns, n, 2));
    }
    const std::vector<index> cuts = {0, 17, 17, 40'000, rows * columns};
    regroup::reduce_segments(ex, memory, cuts, of_segments, m, numbered);
    for (std::size_t s = 0; s < 4; ++s) expect(of_segments[s], first_largest(cuts[s], cuts[s + 1] - cuts[s], 1));
    expect(regroup::reduce(ex, memory, m, numbered), first_largest(0, rows * columns, 1));
    expect(regroup::reduce(ex, x, m, numbered), first_largest(0, rows * columns, 1));
    std::vector<regroup::indexed<float>> so_far(memory.size());
    regroup::inclusive_scan(ex, memory, so_far, m, numbered);
    for (const index i : {0, 5, 4095, 4096, 70'000}) expect(so_far[static_cast<std::size_t>(i)], first_largest(0, i + 1, 1));
  };
  each(seq, xs);
  each(par, xs);
  for (float& x : xs) x = regroup::widen(regroup::float16(x));
  each(par, halves);
}
/// A first moment: weights times where they stand.
TEST(projections, of_elements_and_positions) {
  std::vector<double> weights(5001, 1.0);
  weights[5000] = 10'000;
  const auto moment_of = [](double w, regroup::index i) { return w * static_cast<double>(i); };
  EXPECT_EQ(regroup::reduce(par, weights, regroup::plus<double>{}, moment_of), 4999.0 * 5000 / 2 + 5000.0 * 10'000);
}

/// Elements that cannot be copied.
TEST(projections, of_elements_that_only_move) {
  const auto owned = regroup::generate(9000, [](regroup::index i) { return std::make_unique<double>(static_cast<double>(i)); });
  const auto value_of = [](const std::unique_ptr<double>& x) { return *x; };
  EXPECT_EQ(regroup::reduce(par, owned, regroup::plus<double>{}, value_of), 8999.0 * 9000 / 2);
}

/// A member of elements that are made when they are read, and gone once they are seen.
TEST(projections, of_elements_that_do_not_last) {
  using regroup::index;
  struct item {
    std::string name;
    double weight;
  };
  const auto name_of = [](index i) {
    return std::string(static_cast<std::size_t>(40 + i % 50), static_cast<char>('a' + i % 26));
  };
  constexpr index count = 9000;
  const auto made = regroup::generate(count, [&](index i) { return item{name_of(i), static_cast<double>(i)}; });
  static_assert(std::is_same_v<decltype(regroup::project(made, &item::name)[0]), std::string>);
  std::string names;
  for (index i = 0; i < count; ++i) names += name_of(i);
  for (const auto& ex : {par.with_threads(1), par.with_threads(3)}) {
    EXPECT_EQ(regroup::reduce(ex, made, regroup::plus<double>{}, &item::weight), 8999.0 * 9000 / 2);
    EXPECT_EQ(regroup::reduce(ex, made, verbs::join{}, &item::name), names);
  }
}

/// What takes its elements otherwise than constant, or not by reference, or cannot be copied.
TEST(projections, of_elements_that_are_not_moved) {
  struct owner {
    float x;
    explicit owner(float value) : x(value) {}
    owner(const owner&) = delete;
    owner& operator=(const owner&) = delete;
    float touch() { return x; }
  };
  std::vector<point> xs = points(5000);
  float sum = 0;
  for (const point& p : xs) sum += static_cast<float>(p.n);
  const view<point> mutable_view(xs.data(), {5000});
  const auto add = [&](const auto& range, const auto& projection) {
    EXPECT_EQ(regroup::reduce(par, range, regroup::plus<float>{}, projection), sum);
  };
  add(mutable_view, [](point& p) { return static_cast<float>(p.n); });
  add(mutable_view, [](auto& p) { return static_cast<float>(p.n++ < 0 ? 0 : --p.n); });
  add(xs, [](point p) { return static_cast<float>(p.n); });
  add(xs, std::function<float(const point&)>([](const point& p) { return static_cast<float>(p.n); }));
  add(std::deque<point>(xs.begin(), xs.end()), [](const point& p) { return static_cast<float>(p.n); });
  std::deque<owner> owners;
  for (const point& p : xs) owners.emplace_back(static_cast<float>(p.n));
  add(owners, &owner::x);
  std::vector<float> numbers;
  for (const point& p : xs) numbers.push_back(static_cast<float>(p.n));
  add(std::span<volatile float>(numbers.data(), numbers.size()), [](float x) { return x; });
}
