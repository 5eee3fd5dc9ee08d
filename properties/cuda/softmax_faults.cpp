// SPDX-License-Identifier: Apache-2.0
// Which kernels rows of softmax are given, by their length alone; and a test of the tests: with any barrier left out, or
// any shuffle or index of shared memory one place off, rows whose largest element is anywhere come out wrong, or are
// refused by the emulator.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "faults.hpp"
#include "rows.hpp"

namespace {

namespace cuda = regroup::cuda;
using emulated::each_is_caught;
using emulated::fault;
using emulated::machine;
using regroup::softmax_parts::probability;

/// softmax of rows of n elements in place, by one block, against the same without a fault; the largest element of every
/// row in each of the lanes that one wrong step of the tree leaves out.
std::function<bool(machine&)> rows(std::int64_t count, std::int64_t n) {
  std::vector<std::vector<float>> inputs;
  for (const std::int64_t lane : {0, 1, 2, 4, 8, 16, 32, 64, 96}) {
    if (lane >= n) break;
    inputs.push_back(order::numbers<float>(order::kind::plain, count * n, 77));
    for (std::int64_t r = 0; r < count; ++r) {
      inputs.back()[static_cast<std::size_t>(r * n + lane)] = 9 + 0.37f * static_cast<float>(r);
    }
  }
  const auto run = [=](machine& on) {
    order::digest all;
    for (std::vector<float> ys : inputs) {
      const auto places = emulated::places_of(ys, count);
      all.add(emulated::normalise<probability>(on, emulated::rows_of(ys, count), places, 1, 1)).add(ys);
    }
    return all.value();
  };
  machine whole;
  const std::uint64_t expected = run(whole);
  return [=](machine& on) { return run(on) == expected; };
}

}  // namespace

TEST(softmax_faults, every_barrier) {
  EXPECT_EQ(each_is_caught(fault::skip_barrier, rows(3, 1100)), 15);
  EXPECT_EQ(each_is_caught(fault::skip_barrier, rows(2, 2 * 4096 + 100)), 16);
}

TEST(softmax_faults, every_shuffle) {
  EXPECT_EQ(each_is_caught(fault::shift_shuffle, rows(8, 40)), 26);
  EXPECT_EQ(each_is_caught(fault::shift_shuffle, rows(64, 7)), 14);
  EXPECT_EQ(each_is_caught(fault::shift_shuffle, rows(2, 1100)), 20);
}

TEST(softmax_faults, every_index_of_shared_memory) {  // one row: then all threads count alike
  for (const auto what : {fault::shift_get, fault::shift_set}) {
    EXPECT_GT(each_is_caught(what, rows(1, 1100)), 2);
    EXPECT_GT(each_is_caught(what, rows(1, 5000)), 4);
  }
}

TEST(row_plan, by_the_length_alone) {
  using cuda::plan_rows;
  std::int64_t reach = 0;
  for (std::int64_t n = 0; n < 40'000'000; n += n < 70'000 ? 1 : n / 977) {
    const auto plan = plan_rows(n);
    const bool is_held = n <= regroup::tile_elements;
    ASSERT_EQ(plan.team, n <= 32 ? 4 : n <= 1024 ? 32 : is_held ? 128 : 0) << n;
    ASSERT_EQ(plan.is_split(), n > regroup::longest_two_sweep_row) << n;
    if (is_held) {
      ASSERT_LE(n, plan.team * (plan.team == 4 ? cuda::held_by<4> : 32)) << n;
    }
    if (!plan.is_split()) {
      ASSERT_LE(n, cuda::most_tiles * regroup::tile_elements);
      ASSERT_EQ(plan.levels, 0);
      continue;
    }
    ASSERT_GE(plan.reach, reach) << n;  // longer rows, longer ranges
    reach = plan.reach;
    ASSERT_LE(reach, cuda::most_tiles * regroup::tile_elements);
    std::int64_t nodes = cuda::nodes_of(n, reach);
    for (int level = 0; level < plan.levels; ++level) nodes = cuda::nodes_of(nodes, regroup::lanes);
    ASSERT_EQ(nodes, 1) << n;
    ASSERT_EQ(plan.levels, n <= std::int64_t{1} << 24 ? 1 : 2) << n;
  }
}
