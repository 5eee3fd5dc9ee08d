// SPDX-License-Identifier: Apache-2.0
// A row has the same tree alone and in a batch, few long rows or many short ones, whatever the strides.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cases.hpp"
#include "recorder.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/reduce.hpp"

namespace {

template <order::rule Rule, class State = order::word>
void batch(std::int64_t rows, std::int64_t n) {
  const std::string where = std::to_string(rows) + " x " + std::to_string(n);
  const auto xs = order::elements(rows * n);
  std::vector<order::word> column_major(xs.size());
  std::vector<order::word> trees;
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto first = xs.begin() + r * n;
    trees.push_back(order::expected<Rule>(std::vector<order::word>(first, first + n)));
    for (std::int64_t i = 0; i < n; ++i) column_major[static_cast<std::size_t>(i * rows + r)] = first[i];
  }
  const order::hashed<Rule, State> m;
  order::for_some_executors([&](const auto& ex, const std::string& name) {
    std::vector<order::word> out(trees.size(), 99);
    regroup::reduce_rows(ex, regroup::view<const order::word>(xs.data(), {rows, n}), out, m);
    EXPECT_EQ(out, trees) << name << ", " << where;
    std::fill(out.begin(), out.end(), 99);
    regroup::reduce_rows(ex, regroup::view<const order::word>(column_major.data(), {rows, n}, {1, rows}), out, m);
    EXPECT_EQ(out, trees) << name << ", columns, " << where;
    std::fill(out.begin(), out.end(), 99);
    regroup::reduce_rows(
        ex, regroup::view<const order::word>(xs.data(), {rows, n}),
        [&](regroup::index row, order::word answer) { out[static_cast<std::size_t>(row)] += answer - 99; }, m);
    EXPECT_EQ(out, trees) << name << ", called back, " << where;
  });
}

template <order::rule Rule, class State = order::word>
void batches() {
  for (const std::int64_t n : {0, 1, 2, 31, 37, 128, 130, 300, 4096, 4100}) {
    for (const std::int64_t rows : {1, 2, 3, 17, 130}) {
      if (rows * n <= 70'000) batch<Rule, State>(rows, n);
    }
  }
  batch<Rule, State>(0, 5);
  batch<Rule, State>(5000, 3);
  batch<Rule, State>(3, 41'000);
}

}  // namespace

TEST(rows, of_extents_of_any_integral_type) {
  const std::vector<float> xs(12, 1.0f);
  const std::size_t rows = 3;
  std::vector<float> ys(rows);
  regroup::reduce_rows(regroup::seq, regroup::view(xs.data(), {rows, xs.size() / rows}), ys, regroup::plus<float>{});
  EXPECT_EQ(ys, std::vector<float>(rows, 4.0f));
}

TEST(rows, contiguous_pieces) { batches<order::rule::pieces>(); }
TEST(rows, pieces_of_opaque) { batches<order::rule::pieces, order::opaque>(); }
TEST(rows, striped_lanes) { batches<order::rule::striped>(); }
TEST(rows, striped_aggregates) { batches<order::rule::striped, order::aggregate>(); }
TEST(rows, tile_lift) { batches<order::rule::tile>(); }

TEST(rows, every_short_length_in_a_wide_batch) {
  for (std::int64_t n = 0; n <= 300; n += (n < 140 ? 1 : 13)) {
    batch<order::rule::striped>(9, n);
    batch<order::rule::pieces>(9, n);
  }
}

TEST(rows, reversed_rows_and_a_rank_of_three) {
  const auto xs = order::elements(2 * 5 * 700);
  std::vector<order::word> trees;
  for (std::int64_t a = 0; a < 2; ++a) {
    for (std::int64_t b = 4; b >= 0; --b) {
      std::vector<order::word> row;
      for (std::int64_t c = 699; c >= 0; --c) row.push_back(xs[static_cast<std::size_t>((a * 5 + b) * 700 + c)]);
      trees.push_back(order::expected<order::rule::striped>(row));
    }
  }
  std::vector<order::word> out(10);
  regroup::reduce_rows(regroup::par,
                       regroup::view<const order::word>(&xs[4 * 700 + 699], {2, 5, 700}, {3500, -700, -1}), out,
                       order::hashed<order::rule::striped>{});
  EXPECT_EQ(out, trees);
}
