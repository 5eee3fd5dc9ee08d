// SPDX-License-Identifier: Apache-2.0
// The library's loops over contiguous rows (src/softmax_rows.hpp), and the code that brings rows with a stride to them: the
// same bits for every verb, type, length, scale, place in a cache line and kind of row, with any threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "order/cases.hpp"
#include "regroup/algorithms/cross_entropy.hpp"
#include "regroup/algorithms/softmax.hpp"

namespace {

using regroup::index;
using regroup::view;

constexpr index rows = 9;
constexpr index ignored = -100;

/// Rows of numbers; one holds NaN, one +inf, one both, one is all -inf, one has some -inf and very small weights, one has no
/// positive number, and one has outputs below the smallest normal number.
template <class X>
std::vector<X> elements(index n) {
  std::vector<X> xs(static_cast<std::size_t>(rows * n));
  order::dice random(static_cast<std::uint64_t>(n));
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (index r = 0; r < rows; ++r) {
    for (index i = 0; i < n; ++i) {
      float x = static_cast<float>(random(-1000, 1000)) / 64;
      if (r == 1 && i == n / 3) x = std::nanf("");
      if (r == 2 && i == n - 1) x = infinity;
      if (r == 3) x = -infinity;
      if (r == 6 && i == 0) x = -std::nanf("");
      if (r == 6 && i == n / 2) x = infinity;
      if (r == 4 && i % 3 == 0) x = i % 2 == 0 ? -infinity : -90.0f;
      if (r == 7) x = i == n / 2 ? -0.0f : -64 * std::abs(x);
      if (r == 8) x = i % 100 == 0 ? 0 : -87 + x / 32;
      xs[static_cast<std::size_t>(r * n + i)] = X(x);
    }
  }
  return xs;
}

/// Every element of both, or NaN in both; how many differ.
template <class Y>
index differing(const view<const Y>& a, const view<const Y>& b) {
  index count = 0;
  for (index r = 0; r < a.extent(0); ++r) {
    for (index i = 0; i < a.extent(1); ++i) {
      const double x = static_cast<double>(regroup::widen(a(r, i))), y = static_cast<double>(regroup::widen(b(r, i)));
      count += (x == y && std::signbit(x) == std::signbit(y)) || (x != x && y != y) ? 0 : 1;
    }
  }
  return count;
}

/// What `verb` writes side by side, beginning `shift` elements behind a line, and what it writes apart.
template <class X, class Y, class Verb>
void expect_same(index n, const Verb& verb, const std::string& what) {
  const std::vector<X> xs = elements<X>(n);
  const view<const X> x(xs.data(), {rows, n});
  std::vector<Y> apart(static_cast<std::size_t>(2 * rows * n));
  const view<Y> spread(apart.data(), {rows, n}, {2 * n, 2});
  verb(worker_of(regroup::seq), x, spread);
  for (const int threads : {1, 3}) {
    for (const index shift : {0, 3}) {
      std::vector<Y> beside(static_cast<std::size_t>(rows * n + shift));
      const view<Y> y(beside.data() + shift, {rows, n});
      verb(threads == 1 ? worker_of(regroup::seq) : worker_of(regroup::par.with_threads(threads)), x, y);
      EXPECT_EQ(differing<Y>(y, spread), 0) << what << ", rows of " << n << ", " << threads << " threads, from " << shift;
    }
  }
}

/// A row alone whose elements, or outputs, or both, lie apart, or which is written in place, beside the row side by side.
template <class X, class Y, class Verb>
void expect_same_apart(index n, const Verb& verb, const std::string& what) {
  const std::vector<X> xs = elements<X>(n);
  const regroup::parallel two = regroup::par.with_threads(2);
  for (index r = 0; r < rows; ++r) {
    const view<const X> x(xs.data() + r * n, {1, n});
    std::vector<Y> beside(static_cast<std::size_t>(n));
    const view<Y> expected(beside.data(), {1, n});
    verb(worker_of(regroup::seq), x, expected, r);
    std::vector<X> memory(static_cast<std::size_t>(3 * n));
    std::vector<Y> results(static_cast<std::size_t>(2 * n));
    const view<X> spread(memory.data() + 3 * (n - 1), {1, n}, {3 * n, -3});
    const view<Y> put(results.data(), {1, n}, {2 * n, 2});
    for (index i = 0; i < n; ++i) spread(0, i) = x(0, i);
    const auto same = [&](const auto& from, const view<Y>& to, const std::string& where) {
      verb(r % 2 == 0 ? worker_of(regroup::seq) : worker_of(two), view<const X>(from), to, r);
      EXPECT_EQ(differing<Y>(to, expected), 0) << what << ", row " << r << " of " << n << ", " << where;
    };
    same(spread, put, "both apart");
    same(x, put, "outputs apart");
    same(spread, view<Y>(results.data(), {1, n}), "elements apart");
    if constexpr (std::same_as<X, Y>) same(spread, spread, "in place");
  }
}

/// What the verbs of a row give.
template <class X, class Y>
void rows_apart() {
  for (const index n : {1, 37, 257, 1000, 4095, 4097, 33'000, 65'537, 70'001, 300'000}) {
    if (order::small() && n > 70'000) continue;
    expect_same_apart<X, Y>(
        n, [](const auto& ex, const auto& x, const auto& y, index) { softmax(ex, x, y, {.scale = 0.75}); }, "softmax");
    expect_same_apart<X, Y>(
        n, [](const auto& ex, const auto& x, const auto& y, index) { log_softmax(ex, x, y); }, "log_softmax");
    if constexpr (std::same_as<X, Y>) {
      expect_same_apart<X, Y>(
          n,
          [n](const auto& ex, const auto& x, const auto& y, index r) {
            const std::vector<index> target = {r == 5 ? ignored : n * r / rows};
            cross_entropy(ex, x, target, {.reduction = regroup::loss_reduction::sum, .gradient = y});
          },
          "cross_entropy");
    }
  }
}

/// Matrices of few columns each: every column has the bits of the row alone, whatever its matrix and its place in it.
template <class X, class Y>
void few_columns() {
  using real = regroup::widened<X>;
  constexpr index matrices = 41;
  for (const index n : {1, 3, 40, 513, 5000}) {
    const std::vector<X> xs = elements<X>(n);
    std::vector<Y> alone(xs.size());
    std::vector<real> sums(rows);
    for (index r = 0; r < rows; ++r) {
      softmax(regroup::seq, view<const X>(xs.data() + r * n, {n}), view<Y>(alone.data() + r * n, {n}),
              {.logsumexp = view<real>(sums.data() + r, regroup::shape{})});
    }
    for (const auto& [columns, is_turned] : std::vector<std::pair<index, bool>>{
             {1, false}, {2, false}, {3, false}, {4, false}, {5, false}, {7, false}, {3, true}, {9, true}}) {
      std::vector<X> memory(static_cast<std::size_t>(matrices * n * columns));
      std::vector<Y> results(memory.size());
      std::vector<real> found(static_cast<std::size_t>(matrices * columns));
      const view<X> x(memory.data(), {matrices, n, columns});
      const regroup::shape side_by_side{columns, matrices * columns, 1};  // all matrices, row after row
      const view<Y> y(results.data(), x.extents(), is_turned ? side_by_side : x.strides());
      const auto row_of = [columns = columns](index b, index c) { return (b * columns + c) % rows; };
      for (index b = 0; b < matrices; ++b) {
        for (index i = 0; i < n; ++i) {
          for (index c = 0; c < columns; ++c) x(b, i, c) = xs[static_cast<std::size_t>(row_of(b, c) * n + i)];
        }
      }
      const auto expect = [&, columns = columns](const std::string& who) {
        for (index b = 0; b < matrices; ++b) {
          for (index c = 0; c < columns; ++c) {
            const view<const Y> got(&y(b, 0, c), {1, n}, {1, y.stride(1)}), own(alone.data() + row_of(b, c) * n, {1, n});
            ASSERT_EQ(differing<Y>(got, own), 0) << who << ", " << n << " x " << columns;
            const real sum = found[static_cast<std::size_t>(b * columns + c)];
            const real its = sums[static_cast<std::size_t>(row_of(b, c))];
            ASSERT_TRUE(sum == its || (sum != sum && its != its)) << who << ", " << n << " x " << columns;
          }
        }
      };
      const auto verb = [&, columns = columns](const auto& ex, const std::string& who) {
        softmax(ex, view<const X>(x), y, {.axis = 1, .logsumexp = view<real>(found.data(), {matrices, columns})});
        expect(who);
        std::fill(found.begin(), found.end(), real{});
        logsumexp(ex, view<const X>(x).permuted({0, 2, 1}), view<real>(found.data(), {matrices, columns}));
        expect(who + ", logsumexp");
      };
      verb(worker_of(regroup::seq), "seq");
      verb(worker_of(regroup::par.with_threads(3)), "three threads");
    }
  }
}

template <class X, class Y>
void all_verbs() {
  using real = regroup::widened<X>;
  for (const index n : {1, 16, 37, 127, 128, 129, 500, 1000, 4095, 4097, 33'000, 65'536, 65'537, 400'001}) {
    if (order::small() && n > 70'000) continue;
    for (const double scale : {1.0, -0.7}) {
      expect_same<X, Y>(n, [&](const auto& ex, const auto& x, const auto& y) { softmax(ex, x, y, {.scale = scale}); },
                        "softmax");
      expect_same<X, Y>(
          n, [&](const auto& ex, const auto& x, const auto& y) { log_softmax(ex, x, y, {.scale = scale}); },
          "log_softmax");
    }
    if constexpr (std::same_as<X, Y>) {  // a gradient is of its logits' type
      for (const index target : {index{0}, n / 2, n - 1}) {
        const std::vector<index> targets = {target, target, target, target, n - 1 - target, ignored, target, 0, target};
        expect_same<X, Y>(
            n,
            [&](const auto& ex, const auto& x, const auto& y) {
              const real loss = cross_entropy(ex, x, view<const index>(targets.data(), {rows}), {.gradient = y});
              EXPECT_TRUE(std::isnan(loss));  // of the row that holds NaN
            },
            "cross_entropy, target " + std::to_string(target));
      }
    }
  }
}

TEST(softmax_loops, floats) { all_verbs<float, float>(); }
TEST(softmax_loops, doubles) { all_verbs<double, double>(); }
TEST(softmax_loops, halves) { all_verbs<regroup::float16, regroup::float16>(); }
TEST(softmax_loops, halves_to_floats) { all_verbs<regroup::float16, float>(); }
TEST(softmax_loops, bfloats) { all_verbs<regroup::bfloat16, regroup::bfloat16>(); }
TEST(softmax_loops, bfloats_to_floats) { all_verbs<regroup::bfloat16, float>(); }

TEST(softmax_loops, few_columns_of_floats) { few_columns<float, float>(); }
TEST(softmax_loops, few_columns_of_doubles) { few_columns<double, double>(); }
TEST(softmax_loops, few_columns_of_bfloats) { few_columns<regroup::bfloat16, regroup::bfloat16>(); }
TEST(softmax_loops, few_columns_of_halves_to_floats) { few_columns<regroup::float16, float>(); }

TEST(softmax_loops, floats_apart) { rows_apart<float, float>(); }
TEST(softmax_loops, doubles_apart) { rows_apart<double, double>(); }
TEST(softmax_loops, bfloats_apart) { rows_apart<regroup::bfloat16, regroup::bfloat16>(); }
TEST(softmax_loops, halves_apart_to_floats) { rows_apart<regroup::float16, float>(); }

/// A view's rows of 1,001 elements past the caches, with targets everywhere in a row and in a line.
TEST(softmax_loops, gradients_past_the_caches) {
  constexpr index count = 3000, n = 1001;
  static_assert(count * n * sizeof(float) > regroup::cached_output_bytes);
  std::vector<float> xs(count * n), ys(count * n), alone(n);
  std::vector<index> targets(count);
  for (index i = 0; i < count * n; ++i) xs[static_cast<std::size_t>(i)] = static_cast<float>(i * 7919 % 1013) / 32;
  for (index r = 0; r < count; ++r) targets[static_cast<std::size_t>(r)] = r * 331 % n;
  for (const int threads : {1, 2}) {
    cross_entropy(regroup::par.with_threads(threads), view<const float>(xs.data(), {count, n}), targets,
                  {.reduction = regroup::loss_reduction::sum, .gradient = view<float>(ys.data(), {count, n})});
    for (index r = 0; r < count; r += 7) {
      cross_entropy(regroup::seq, view<const float>(xs.data() + r * n, {1, n}),
                    view<const index>(&targets[static_cast<std::size_t>(r)], {1}),
                    {.reduction = regroup::loss_reduction::sum, .gradient = view<float>(alone.data(), {1, n})});
      EXPECT_TRUE(std::equal(alone.begin(), alone.end(), ys.begin() + r * n)) << "row " << r;
    }
  }
}

struct without_threads : regroup::host::threads<without_threads> {
  int concurrency() const { return 0; }
  void bulk(index n, const auto& f) const {
    for (index i = 0; i < n; ++i) f(i);
  }
};
TEST(softmax_loops, an_executor_that_has_no_threads) {
  for (const index columns : {1000, 40'000, 100'000}) {
    std::vector<float> xs(static_cast<std::size_t>(64 * columns)), ys(xs.size()), expected(xs.size());
    for (std::size_t i = 0; i < xs.size(); ++i) xs[i] = static_cast<float>(i * 7919 % 1013) / 32;
    const view<const float> x(xs.data(), {64, columns});
    softmax(without_threads{}, x, view<float>(ys.data(), {64, columns}));
    softmax(regroup::seq, x, view<float>(expected.data(), {64, columns}));
    EXPECT_TRUE(ys == expected) << columns;
  }
}

/// Types without loops: long double, which the standard library computes, and doubles of floats.
TEST(softmax_loops, types_without_loops) {
  std::vector<long double> xs(5000), ys(5000);
  std::vector<float> narrow(5000);
  std::vector<double> wide(5000);
  for (std::size_t i = 0; i < xs.size(); ++i) xs[i] = narrow[i] = static_cast<float>(i * 7919 % 1013) / 256;
  softmax(regroup::seq, xs, ys);
  softmax(regroup::seq, narrow, wide);
  long double sum = 0;
  for (const long double x : xs) sum += std::exp(x - 1012.0L / 256);
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const long double p = std::exp(xs[i] - 1012.0L / 256) / sum;
    EXPECT_NEAR(static_cast<double>(ys[i] / p), 1, 1e-15);
    EXPECT_NEAR(wide[i] / static_cast<double>(p), 1, 1e-6);
  }
}

}  // namespace
