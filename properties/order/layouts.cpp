// SPDX-License-Identifier: Apache-2.0
// The layout does not matter: the same elements give the same tree from a vector, with strides, backwards, misaligned, through
// a projection, from a deque, and computed when read.
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "cases.hpp"
#include "recorder.hpp"
#include "regroup/reduce.hpp"

namespace {

struct record {
  char padding;
  order::word value;
  [[nodiscard]] order::word complement() const { return ~value; }
};

template <order::rule Rule>
void every_layout(std::int64_t n) {
  const auto xs = order::elements(n);
  const std::size_t size = xs.size();
  const order::word tree = order::expected<Rule>(xs);
  const order::hashed<Rule> m;
  std::vector<order::word> spread(3 * size + 1, 1);
  std::vector<order::word> backwards(2 * size + 1, 1);
  std::vector<record> records;
  for (std::size_t i = 0; i < size; ++i) {
    spread[3 * i + 1] = xs[i];
    backwards[2 * (size - 1 - i)] = xs[i];
    records.push_back({'x', xs[i]});
  }
  const std::deque<order::word> pieces(xs.begin(), xs.end());
  order::for_some_executors([&](const auto& ex, const std::string& name) {
    const std::string where = name + ", n = " + std::to_string(n);
    EXPECT_EQ(regroup::reduce(ex, xs, m), tree) << where;
    EXPECT_EQ(regroup::reduce(ex, std::span(xs), m), tree) << where;
    EXPECT_EQ(regroup::reduce(ex, regroup::view(std::span(xs)), m), tree) << where;
    EXPECT_EQ(regroup::reduce(ex, regroup::view<order::word>(spread.data() + 1, {n}, {3}), m), tree) << where;
    if (n > 0) {
      EXPECT_EQ(regroup::reduce(ex, regroup::view<order::word>(&backwards[2 * (size - 1)], {n}, {-2}), m), tree)
          << where;
    }
    EXPECT_EQ(regroup::reduce(ex, pieces, m), tree) << where;
    EXPECT_EQ(regroup::reduce(ex, regroup::generate(n, [](regroup::index i) { return order::element(i); }), m), tree)
        << where;
    EXPECT_EQ(regroup::reduce(ex, records, m, &record::value), tree) << where;
    EXPECT_EQ(regroup::reduce(ex, records, m, [](const record& r) { return ~r.complement(); }), tree) << where;
  });
}

template <order::rule Rule>
void some_lengths() {
  for (const std::int64_t n : {0, 1, 31, 33, 127, 300, 4095, 4097, 28801, 70001}) every_layout<Rule>(n);
}

}  // namespace

TEST(layouts, contiguous_pieces) { some_lengths<order::rule::pieces>(); }
TEST(layouts, striped_lanes) { some_lengths<order::rule::striped>(); }
TEST(layouts, tile_lift) { some_lengths<order::rule::tile>(); }

TEST(layouts, every_offset_inside_a_vector) {
  const auto xs = order::elements(9000);
  for (std::size_t first = 0; first < 16; ++first) {
    const std::vector<order::word> tail(xs.begin() + static_cast<std::ptrdiff_t>(first), xs.end());
    EXPECT_EQ(regroup::reduce(regroup::seq, std::span(xs).subspan(first), order::hashed<order::rule::striped>{}),
              order::expected<order::rule::striped>(tail));
  }
}

TEST(layouts, a_stride_of_zero_repeats) {
  const order::word x = order::element(5);
  const std::vector<order::word> xs(5000, x);
  EXPECT_EQ(regroup::reduce(regroup::par, regroup::view<const order::word>(&x, {5000}, {0}),
                            order::hashed<order::rule::striped>{}),
            order::expected<order::rule::striped>(xs));
}
