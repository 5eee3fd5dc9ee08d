// SPDX-License-Identifier: Apache-2.0
// Inside a tile lift, `tile.fold(m)` and `tile.fold(m, map)` are the lane leaf of m over the tile's present elements.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cases.hpp"
#include "recorder.hpp"
#include "regroup/reduce.hpp"
#include "regroup/stream.hpp"

namespace {

using order::word;

struct salted {
  word salt;
  constexpr word operator()(word x) const { return order::mix(x, salt); }
};

/// Two sweeps, the second depending on the first, as log_sum_exp has them.
template <order::rule Inner>
struct two_sweeps {
  constexpr word identity() const { return 0; }
  constexpr word lift(word x) const { return order::mix(x, 1); }
  constexpr word operator()(word a, word b) const { return order::skip_or_mix(a, b); }
  template <class Tile>
  constexpr word lift_tile(const Tile& tile) const {
    const word first = tile.fold(order::hashed<order::rule::striped>{});
    return order::mix(first, tile.fold(order::hashed<Inner, order::aggregate>{}, salted{first}).tree);
  }
};

template <order::rule Inner>
word expected(const std::vector<word>& xs, std::int64_t first_position) {
  const auto lift_tile = [](const std::vector<word>& tile) {
    const word first = *reference::lane_leaf(order::hashed<order::rule::striped>{}, order::operands(tile));
    auto mapped = tile;
    for (auto& x : mapped) x = order::mix(x, first);
    return order::mix(first, *reference::lane_leaf(order::hashed<Inner>{}, order::operands(mapped)));
  };
  return reference::reduce_tiles(two_sweeps<Inner>{}, order::operands(xs, first_position), lift_tile).value_or(0);
}

template <order::rule Inner>
void lengths() {
  for (const std::int64_t n : {0, 1, 2, 31, 32, 33, 127, 128, 129, 300, 4095, 4096, 4097, 9000, 30'001}) {
    const auto xs = order::elements(n);
    order::for_some_executors([&](const auto& ex, const std::string& name) {
      EXPECT_EQ(regroup::reduce(ex, xs, two_sweeps<Inner>{}), expected<Inner>(xs, 0)) << name << ", n = " << n;
    });
    for (const std::int64_t first : {1, 100, 4095}) {
      regroup::accumulator acc{two_sweeps<Inner>{}, first};
      for (std::size_t i = 0; i < xs.size(); i += 333)
        acc.push(std::span(xs).subspan(i, std::min<std::size_t>(333, xs.size() - i)));
      EXPECT_EQ(acc.value(), expected<Inner>(xs, first)) << "from " << first << ", n = " << n;
    }
  }
}

}  // namespace

TEST(tile_fold, of_a_commutative_monoid) { lengths<order::rule::striped>(); }
TEST(tile_fold, of_contiguous_pieces) { lengths<order::rule::pieces>(); }

TEST(tile_fold, in_batches_and_segments) {
  const std::int64_t n = 45;
  const auto xs = order::elements(200 * n);
  std::vector<word> trees;
  for (std::int64_t r = 0; r < 200; ++r) {
    trees.push_back(expected<order::rule::striped>({xs.begin() + r * n, xs.begin() + (r + 1) * n}, 0));
  }
  std::vector<word> out(200);
  regroup::reduce_rows(regroup::par, regroup::view<const word>(xs.data(), {200, n}), out,
                       two_sweeps<order::rule::striped>{});
  EXPECT_EQ(out, trees);
}
