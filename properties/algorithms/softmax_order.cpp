// SPDX-License-Identifier: Apache-2.0
// The order of softmax's sums, bitwise, against the naive transcription of the contract (order/reference.hpp); and that
// nothing else affects a row's bits: not the executor, the batch, the layout, the axis or the output.
#include <gtest/gtest.h>

#include <functional>

#include "order/reference.hpp"
#include "regroup/monoids/log_sum_exp.hpp"
#include "softmax_reference.hpp"

namespace properties {
namespace {

/// (M, s) as the text of the contract says it.
template <class Real>
std::pair<Real, Real> transcribed(const std::vector<Real>& x) {
  using lse = regroup::log_sum_exp<Real>;
  const auto sum_of_weights = [](const std::vector<Real>& xs, Real m, const auto& reduce) {
    reference::operands<Real> weights;
    for (const Real e : xs) {
      weights.push_back(e == -std::numeric_limits<Real>::infinity() ? Real{0}
                        : e == m                                    ? Real{1}
                                                                    : regroup::math::decay(e - m));
    }
    return *reduce(weights);
  };
  const auto largest = [](const std::vector<Real>& xs) { return *std::max_element(xs.begin(), xs.end()) + Real{0}; };
  if (x.size() <= 65536) {
    const Real m = largest(x);
    return {m,
            sum_of_weights(x, m, [](const auto& w) { return reference::reduce(regroup::plus<Real>{}, w); }) + Real{0}};
  }
  const reference::operands<Real> elements(x.begin(), x.end());
  const auto state = *reference::reduce_tiles(lse{}, elements, [&](const std::vector<Real>& tile) {
    const Real m = largest(tile);
    const Real s =
        sum_of_weights(tile, m, [](const auto& w) { return reference::lane_leaf(regroup::plus<Real>{}, w); });
    return typename lse::state{m, s + Real{0}};
  });
  return {state.m, state.s};
}

template <class Real>
void same_bits_as_transcribed(index n, int kind) {
  auto x = as<Real>(row_of_kind(kind, n, 3));
  if (n > 2) x[static_cast<std::size_t>(n / 3)] = -std::numeric_limits<Real>::infinity();
  const auto [m, s] = transcribed(x);
  std::vector<Real> y(x.size());
  std::vector<Real> expected;
  std::vector<Real> lse(1);
  regroup::softmax(regroup::seq, x, y, {.logsumexp = lse});
  for (const Real e : x) expected.push_back(regroup::math::decay(e - m) * (1 / s));
  EXPECT_EQ(bits_of(y), bits_of(expected)) << n << " kind " << kind;
  EXPECT_EQ(lse[0], m + regroup::math::log(s)) << n << " kind " << kind;
  regroup::log_softmax(regroup::seq, x, y);
  expected.clear();
  for (const Real e : x) expected.push_back((e - m) - regroup::math::log(s));
  EXPECT_EQ(bits_of(y), bits_of(expected)) << n << " kind " << kind;
}

}  // namespace

TEST(softmax_order, the_contract_transcribed) {
  for (const index n : {1, 2, 31, 127, 128, 129, 300, 4095, 4096, 4097, 8192, 12'345, 65'535, 65'536, 65'537, 70'001}) {
    for (const int kind : {0, 2, 3, 4}) {
      same_bits_as_transcribed<float>(n, kind);
      same_bits_as_transcribed<double>(n, kind);
    }
  }
}

TEST(softmax_order, any_executor_and_any_batch_give_a_row_its_bits) {
  for (const auto& shape : {std::pair<index, index>{1, 100'000},
                            {3, 65'536},
                            {3, 65'537},
                            {2, 32'768},
                            {100, 40'000},
                            {300, 37},
                            {70, 4097},
                            {1, 1},
                            {5000, 1}}) {
    const index rows = shape.first;
    const index n = shape.second;
    if (order::small() && rows * n > 200'000) continue;
    std::vector<float> x;
    for (index r = 0; r < rows; ++r) {
      const auto row = as<float>(row_of_kind(static_cast<int>(r % 4), n, static_cast<std::uint64_t>(r)));
      x.insert(x.end(), row.begin(), row.end());
    }
    const regroup::view<float> all(x.data(), {rows, n});
    std::vector<float> alone(x.size());
    std::vector<float> alone_lse(static_cast<std::size_t>(rows));
    for (index r = 0; r < rows; ++r) {
      regroup::softmax(regroup::seq, all[r], regroup::view<float>(alone.data() + r * n, {n}),
                       {.logsumexp = regroup::view<float>(alone_lse.data() + r, {1})});
    }
    order::for_each_executor([&](const auto& ex, const std::string& name) {
      std::vector<float> y(x.size());
      std::vector<float> lse(static_cast<std::size_t>(rows));
      regroup::softmax(ex, all, regroup::view<float>(y.data(), {rows, n}), {.logsumexp = lse});
      EXPECT_EQ(bits_of(y), bits_of(alone)) << name << " " << rows << " x " << n;
      EXPECT_EQ(bits_of(lse), bits_of(alone_lse)) << name << " " << rows << " x " << n;
      std::fill(lse.begin(), lse.end(), 0.0f);
      regroup::logsumexp(ex, all, lse);
      EXPECT_EQ(bits_of(lse), bits_of(alone_lse)) << name << " " << rows << " x " << n;
    });
  }
}

/// The same numbers behind other strides, both ways, and written in place.
TEST(softmax_layouts, strides_columns_axes_and_in_place) {
  const index rows = 11;
  for (const index n : {1, 5, 127, 300, 4100, 33'000}) {
    const auto values = as<float>(row_of_kind(1, rows * n, 9));
    std::vector<float> expected(values.size());
    regroup::softmax(regroup::seq, regroup::view<const float>(values.data(), {rows, n}),
                     regroup::view<float>(expected.data(), {rows, n}));
    const std::vector<std::pair<regroup::shape, index>> layouts = {
        {{n, 1}, 0},    {{1, rows}, 0}, {{2 * n + 1, 2}, 0}, {{n, -1}, n - 1}, {{-1, -rows}, rows * n - 1},
        {{n + 3, 1}, 2}};
    for (std::size_t k = 0; k < layouts.size(); ++k) {
      const auto& [strides, first] = layouts[k];
      for (const bool in_place : {false, true}) {
        std::vector<float> memory(static_cast<std::size_t>(3 * rows * n + 100), -7.0f);
        std::vector<float> results(memory.size(), -7.0f);
        const regroup::view<float> x(memory.data() + first, {rows, n}, strides);
        const regroup::view<float> other(results.data() + first, {rows, n}, layouts[(k + 1) % layouts.size()].first);
        const regroup::view<float> moved(results.data() + layouts[(k + 1) % layouts.size()].second, {rows, n},
                                         other.strides());
        const auto y = in_place ? x : moved;
        for (index r = 0; r < rows; ++r) {
          for (index i = 0; i < n; ++i) x(r, i) = values[static_cast<std::size_t>(r * n + i)];
        }
        regroup::softmax(regroup::par, x, y);
        std::vector<float> got;
        for (index r = 0; r < rows; ++r) {
          for (index i = 0; i < n; ++i) {
            got.push_back(y(r, i));
            y(r, i) = -7;
          }
        }
        EXPECT_EQ(bits_of(got), bits_of(expected)) << "layout " << k << " in place " << in_place << " n " << n;
        const auto& written = in_place ? memory : results;
        for (const float e : written) ASSERT_EQ(e, -7) << "written outside the output";
      }
    }
    std::vector<float> transposed(values.size());
    std::vector<float> y(values.size());
    for (index r = 0; r < rows; ++r) {
      for (index i = 0; i < n; ++i)
        transposed[static_cast<std::size_t>(i * rows + r)] = values[static_cast<std::size_t>(r * n + i)];
    }
    regroup::softmax(regroup::par, regroup::view<float>(transposed.data(), {n, rows}),
                     regroup::view<float>(y.data(), {n, rows}), {.axis = 0});
    for (index r = 0; r < rows; ++r) {
      for (index i = 0; i < n; ++i) {
        ASSERT_EQ(y[static_cast<std::size_t>(i * rows + r)], expected[static_cast<std::size_t>(r * n + i)]) << n;
      }
    }
  }
}

TEST(softmax_layouts, a_middle_axis_of_rank_four) {
  std::vector<double> x = row_of_kind(0, 2 * 3 * 40 * 5, 1);
  std::vector<double> y(x.size());
  std::vector<double> lse(2 * 3 * 5);
  const regroup::view<double> in(x.data(), {2, 3, 40, 5});
  regroup::softmax(regroup::par, in, regroup::view<double>(y.data(), in.extents()),
                   {.axis = 2, .logsumexp = regroup::view<double>(lse.data(), {2, 3, 5})});
  index at = 0;
  for (index a = 0; a < 2; ++a) {
    for (index b = 0; b < 3; ++b) {
      for (index c = 0; c < 5; ++c, ++at) {
        std::vector<double> row;
        for (index i = 0; i < 40; ++i) row.push_back(in(a, b, i, c));
        std::vector<double> expected(40);
        std::vector<double> expected_lse(1);
        regroup::softmax(regroup::seq, row, expected, {.logsumexp = expected_lse});
        EXPECT_EQ(lse[static_cast<std::size_t>(at)], expected_lse[0]);
        for (index i = 0; i < 40; ++i) {
          EXPECT_EQ(y[static_cast<std::size_t>(((a * 3 + b) * 40 + i) * 5 + c)], expected[static_cast<std::size_t>(i)]);
        }
      }
    }
  }
}

}  // namespace properties
