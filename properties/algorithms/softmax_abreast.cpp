// SPDX-License-Identifier: Apache-2.0
// Softmax's family over many rows at once: short ones, across a vector or in groups, and columns. A row has the bits that
// it has alone, also beside rows of special values, for every type, layout and number of rows, in place or not.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "regroup/algorithms/cross_entropy.hpp"
#include "softmax_reference.hpp"

namespace properties {
namespace {

using regroup::view;

/// A row of a kind: ordinary ones, and each special value among, or instead of, ordinary ones.
template <class X>
std::vector<X> a_row(index n, index kind, order::dice& random) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  std::vector<X> x;
  for (index i = 0; i < n; ++i) x.push_back(static_cast<X>(static_cast<float>(random(-400, 400)) / 16));
  const auto at = static_cast<std::size_t>(random(0, n - 1));
  switch (kind % 8) {
    case 1: x[at] = static_cast<X>(std::numeric_limits<float>::quiet_NaN()); break;
    case 2: x[at] = static_cast<X>(inf); break;
    case 3: x[at] = static_cast<X>(-inf); break;
    case 4: x.assign(x.size(), static_cast<X>(-inf)); break;
    case 5: x.assign(x.size(), static_cast<X>(-0.0f)); break;
    default: break;
  }
  return x;
}

/// What is asked of a matrix, and of each of its rows: y, a number a row, and whether there is a y.
template <class X, class Real>
struct answers {
  std::vector<X> y;
  std::vector<Real> of_row;
};
enum class what { softmax, log_softmax, logsumexp, cross_entropy };

template <class X, class Real>
void ask(what verb, const auto& ex, const view<const X>& x, const std::vector<index>& targets, const view<X>& y,
         const view<Real>& of_row) {
  switch (verb) {
    case what::softmax: return regroup::softmax(ex, x, y, {.logsumexp = of_row});
    case what::log_softmax: return regroup::log_softmax(ex, x, y, {.scale = 0.75, .logsumexp = of_row});
    case what::logsumexp: return regroup::logsumexp(ex, x, of_row);
    case what::cross_entropy:
      regroup::cross_entropy(ex, x, targets,
                             {.reduction = regroup::loss_reduction::sum, .gradient = y, .losses = of_row});
  }
}

template <class T>
bool same(const T& a, const T& b) {
  const auto x = regroup::widen(a), y = regroup::widen(b);
  return (x != x && y != y) || std::memcmp(&a, &b, sizeof a) == 0;
}

template <class X>
void expect_rows_as_alone(index rows, index n) {
  using real = regroup::widened<X>;
  order::dice random(static_cast<std::uint64_t>(1000 * rows + n));
  const regroup::parallel two = regroup::par.with_threads(2);
  std::vector<std::vector<X>> x;
  std::vector<index> targets;
  for (index r = 0; r < rows; ++r) {
    x.push_back(a_row<X>(n, r, random));
    targets.push_back(r % 5 == 2 ? -100 : random(0, n - 1));
  }
  for (const what verb : {what::softmax, what::log_softmax, what::logsumexp, what::cross_entropy}) {
    std::vector<answers<X, real>> alone;
    for (index r = 0; r < rows; ++r) {
      const auto& row = x[static_cast<std::size_t>(r)];
      alone.push_back({row, {real{}}});
      ask<X, real>(verb, worker_of(regroup::seq), view<const X>(row.data(), {1, n}), {targets[static_cast<std::size_t>(r)]},
                   view<X>(alone.back().y.data(), {1, n}), view<real>(alone.back().of_row.data(), {1}));
    }
    const std::vector<std::pair<regroup::shape, regroup::shape>> strides = {
        {{n, 1}, {n, 1}}, {{1, rows}, {1, rows}}, {{n, 1}, {1, rows}}, {{1, rows + 3}, {n + 2, 1}}, {{2 * n, 2}, {n, 1}}};
    for (std::size_t k = 0; k < strides.size(); ++k) {
      for (const bool in_place : {false, true}) {
        std::vector<X> memory(static_cast<std::size_t>((rows + 3) * (2 * n + 3))), results(memory.size());
        const view<X> in(memory.data(), {rows, n}, strides[k].first);
        const view<X> out = in_place ? in : view<X>(results.data(), {rows, n}, strides[k].second);
        for (index r = 0; r < rows; ++r) {
          for (index i = 0; i < n; ++i) in(r, i) = out(r, i) = x[static_cast<std::size_t>(r)][static_cast<std::size_t>(i)];
        }
        std::vector<real> of_row(static_cast<std::size_t>(rows));
        ask<X, real>(verb, k % 2 == 0 ? worker_of(two) : worker_of(regroup::seq), in, targets, out,
                     view<real>(of_row.data(), {rows}));
        for (index r = 0; r < rows; ++r) {
          const auto& expected = alone[static_cast<std::size_t>(r)];
          const std::string where = "verb " + std::to_string(static_cast<int>(verb)) + ", " + std::to_string(rows) + " x " +
                                    std::to_string(n) + ", layout " + std::to_string(k) + ", row " + std::to_string(r);
          EXPECT_TRUE(same(of_row[static_cast<std::size_t>(r)], expected.of_row[0])) << where;
          for (index i = 0; i < n; ++i) {
            ASSERT_TRUE(same(out(r, i), expected.y[static_cast<std::size_t>(i)]))
                << where << ", in place " << in_place << ", " << i;
          }
        }
      }
    }
  }
}

template <class X>
class softmax_abreast : public testing::Test {};
using types = testing::Types<float, double, regroup::float16, regroup::bfloat16>;
TYPED_TEST_SUITE(softmax_abreast, types);

TYPED_TEST(softmax_abreast, a_row_has_the_bits_it_has_alone) {
  for (const index n : {1, 2, 5, 8, 16, 17, 31, 32, 33, 64, 100, 128, 129, 192, 193, 255, 256, 300, 511, 512}) {
    for (const index rows : {4, 16, 21, 37}) expect_rows_as_alone<TypeParam>(rows, n);
  }
  expect_rows_as_alone<TypeParam>(17, 4097);
  expect_rows_as_alone<TypeParam>(5, 9000);
  expect_rows_as_alone<TypeParam>(150, 401);  // columns that are turned together, twice, and what is left
  expect_rows_as_alone<TypeParam>(9, 66'000);
}

}  // namespace
}  // namespace properties
