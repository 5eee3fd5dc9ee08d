// SPDX-License-Identifier: Apache-2.0
// A test of the tests: a fold with any one barrier left out, or any one shuffle or index of shared memory one place off,
// is caught, by the emulator or by a wrong tree. Every operation of the busiest thread is broken in turn, so a barrier
// that nothing needs is found here as well.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "../order/recorder.hpp"
#include "faults.hpp"
#include "folds.hpp"

namespace {

using emulated::each_is_caught;
using emulated::fault;
using emulated::machine;
using order::rule;
using order::word;

/// The fold of rows of n elements by one block, against the trees; with teams of `short_team` threads where that is not 0.
template <class M>
std::function<bool(machine&)> folds(std::int64_t rows, std::int64_t n, std::int64_t reach = 0, int short_team = 0) {
  return [=](machine& on) {
    const auto xs = order::elements(rows * n);
    const auto batch = emulated::rows_of(xs, rows);
    auto plan = regroup::cuda::plan_fold(lengths_of(batch), 1, sizeof(word));
    if (reach > 0) {  // one range, so that a block folds several tiles
      plan.reach = reach;
      plan.levels = 0;
    }
    if (short_team != 0) plan = {.short_team = short_team, .shortest = n};
    const auto states = emulated::fold(on, M{}, batch, plan, 1);
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::vector<word> row(xs.begin() + r * n, xs.begin() + (r + 1) * n);
      if (states[r] != M::expected(row)) return false;
    }
    return true;
  };
}

template <rule Rule>
struct recorded : order::hashed<Rule> {
  static word expected(const std::vector<word>& xs) { return order::expected<Rule>(xs); }
};

/// Folds its tile twice, the second time with what the first one said, as log_sum_exp does.
template <rule Inner>
struct two_sweeps {
  struct salted {
    word salt;
    constexpr word operator()(word x) const { return order::mix(x, salt); }
  };
  constexpr word identity() const { return 0; }
  constexpr word lift(word x) const { return order::mix(x, 1); }
  constexpr word operator()(word a, word b) const { return order::skip_or_mix(a, b); }
  template <class Tile>
  constexpr word lift_tile(const Tile& tile) const {
    const word first = tile.fold(order::hashed<rule::striped>{});
    return order::mix(first, tile.fold(order::hashed<Inner>{}, salted{first}));
  }
  static word expected(const std::vector<word>& xs) {
    const auto lift_tile = [](const std::vector<word>& tile) {
      const word first = *reference::lane_leaf(order::hashed<rule::striped>{}, order::operands(tile));
      auto mapped = tile;
      for (word& x : mapped) x = order::mix(x, first);
      return order::mix(first, *reference::lane_leaf(order::hashed<Inner>{}, order::operands(mapped)));
    };
    return reference::reduce_tiles(two_sweeps{}, order::operands(xs), lift_tile).value_or(0);
  }
};

constexpr std::int64_t tile = regroup::tile_elements;

}  // namespace

TEST(fold_faults, every_barrier) {
  using striped = recorded<rule::striped>;
  using pieces = recorded<rule::pieces>;
  EXPECT_EQ(each_is_caught(fault::skip_barrier, folds<striped>(1, 3 * tile, 4 * tile)), 4);
  EXPECT_EQ(each_is_caught(fault::skip_barrier, folds<pieces>(1, 3 * tile, 4 * tile)), 13);
  EXPECT_EQ(each_is_caught(fault::skip_barrier, folds<two_sweeps<rule::striped>>(1, 3 * tile, 4 * tile)), 13);
  EXPECT_EQ(each_is_caught(fault::skip_barrier, folds<two_sweeps<rule::pieces>>(1, 3 * tile, 4 * tile)), 22);
  EXPECT_EQ(each_is_caught(fault::skip_barrier, folds<pieces>(5, 1024)), 7);
  EXPECT_EQ(each_is_caught(fault::skip_barrier, folds<two_sweeps<rule::pieces>>(33, 32)), 7);
}

TEST(fold_faults, every_barrier_between_rows_of_one_block) {
  // Nodes of 40 children, and two rows a block: what the first row leaves in shared memory is the second's to overwrite.
  const auto two_rows = [](machine& on) {
    const auto xs = order::elements(2 * 33 * tile);
    const auto batch = emulated::rows_of(xs, 2);
    const recorded<rule::striped> m;
    std::vector<word> leaves(66);
    for (std::size_t t = 0; t < 66; ++t) leaves[t] = order::element(static_cast<std::int64_t>(t) + 9);
    std::vector<word> states(2);
    std::vector<int> answers(2, 0);
    using put = emulated::collected<word>;
    using kernel = regroup::cuda::fold_nodes<recorded<rule::striped>, std::remove_const_t<decltype(batch)>, put>;
    on.run(kernel{m, batch, tile, leaves.data(), {nullptr, put{states.data(), answers.data()}}}, 1);
    for (std::size_t r = 0; r < 2; ++r) {
      const auto first = leaves.begin() + static_cast<std::ptrdiff_t>(33 * r);
      if (states[r] != *reference::perfect(m, order::operands({first, first + 33}))) return false;
    }
    return true;
  };
  EXPECT_EQ(each_is_caught(fault::skip_barrier, two_rows), 2);
  EXPECT_EQ(each_is_caught(fault::shift_shuffle, two_rows), 10);
  EXPECT_EQ(each_is_caught(fault::shift_get, two_rows), 2);
  EXPECT_EQ(each_is_caught(fault::shift_set, two_rows), 2);
}

TEST(fold_faults, every_operation_between_segments_of_one_block) {
  // Every fourth of 40 is long, the last too, the others' places in the list are gaps, and one block passes them all.
  const auto run = [](machine& on) {
    std::vector<int> offsets = {0};
    for (int s = 0; s < 40; ++s) offsets.push_back(offsets.back() + (s % 4 == 3 ? 1040 + s : 7));
    const auto xs = order::elements(offsets.back());
    const regroup::cuda::segment_batch<const word, int> rows{xs.data(), offsets.data(), 40, offsets.back()};
    const auto states = emulated::fold(on, recorded<rule::striped>{}, rows, plan_fold(lengths_of(rows), 1, 24), 1);
    for (std::int64_t s = 0; s < 40; ++s) {
      const auto first = xs.begin() + offsets[static_cast<std::size_t>(s)];
      if (states[s] != order::expected<rule::striped>({first, first + rows[s].size()})) return false;
    }
    return true;
  };
  EXPECT_EQ(each_is_caught(fault::skip_barrier, run), 2 + 10);
  EXPECT_GT(each_is_caught(fault::shift_get, run, 0, 12), 12);
  EXPECT_GT(each_is_caught(fault::shift_set, run), 1);
}

TEST(fold_faults, every_shuffle) {
  EXPECT_EQ(each_is_caught(fault::shift_shuffle, folds<recorded<rule::striped>>(1, 3 * tile, 4 * tile)), 17);
  EXPECT_EQ(each_is_caught(fault::shift_shuffle, folds<recorded<rule::pieces>>(1, 3 * tile, 4 * tile)), 17);
  EXPECT_EQ(each_is_caught(fault::shift_shuffle, folds<two_sweeps<rule::pieces>>(5, 1024)), 24);
  EXPECT_EQ(each_is_caught(fault::shift_shuffle, folds<two_sweeps<rule::striped>>(33, 128, 0, 4)), 2 * (2 + 3 + 1));
}

TEST(fold_faults, every_index_of_shared_memory) {
  if (order::small()) GTEST_SKIP() << "some hundred folds";
  for (const auto what : {fault::shift_get, fault::shift_set}) {
    EXPECT_GE(each_is_caught(what, folds<recorded<rule::striped>>(1, 3 * tile, 4 * tile)), 3);
    EXPECT_GT(each_is_caught(what, folds<recorded<rule::pieces>>(1, 2 * tile, 4 * tile)), 60);
    EXPECT_GT(each_is_caught(what, folds<two_sweeps<rule::pieces>>(5, 1024)), 20);
    EXPECT_GT(each_is_caught(what, folds<two_sweeps<rule::pieces>>(33, 128, 0, 4)), 20);
  }
}
