// SPDX-License-Identifier: Apache-2.0
// Which kernels rows of softmax use, by their length and the device; and a test of the tests: with any barrier left out, any
// shuffle or index of shared memory one place off, or the wrong block of a cluster read, results are wrong wherever a row's
// largest element is, or the emulator refuses the kernel.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "faults.hpp"
#include "rows.hpp"

namespace {

namespace cuda = regroup::cuda;
using emulated::each_is_caught;
using emulated::each_is_caught_of;
using emulated::fault;
using emulated::machine;
using regroup::softmax_parts::probability;

using input = std::vector<float>;

/// softmax in place of rows, all those of an input as long as each other, by so many blocks or clusters, against the same
/// without a fault: of x / 8, so that the weights are alike, and in what order they are added shows.
std::function<bool(machine&)> normalises(const std::vector<input>& inputs, std::int64_t count, int clusters,
                                         std::int64_t blocks = 1) {
  const auto run = [=](machine& on) {
    order::digest all;
    for (input ys : inputs) {
      const auto places = emulated::places_of(ys, count);
      all.add(emulated::normalise<probability>(on, emulated::rows_of(ys, count), places, 0.125, blocks, clusters)).add(ys);
    }
    return all.value();
  };
  machine whole;
  const std::uint64_t expected = run(whole);
  return [=](machine& on) { return run(on) == expected; };
}

/// The largest element of every row in each of the places that one wrong step leaves out.
std::function<bool(machine&)> rows(std::int64_t count, std::int64_t n, int clusters = cuda::most_cluster_blocks) {
  std::vector<input> inputs;
  for (const std::int64_t at : emulated::places_left_out(n)) {
    inputs.push_back(order::numbers<float>(order::kind::plain, count * n, 77 + inputs.size()));
    for (std::int64_t r = 0; r < count; ++r) {
      inputs.back()[static_cast<std::size_t>(r * n + at)] = 9 + 0.37f * static_cast<float>(r);
    }
  }
  return normalises(inputs, count, clusters);
}

/// 1024 elements a row that a block's warps turn to have neighbours, when they read them or when they write them; what is
/// turned is one place off, and the other made of quads. Three rows a warp.
std::function<bool(machine&)> turns(bool reads) {
  constexpr std::int64_t count = 12, n = cuda::strip_elements;
  const input xs = order::numbers<float>(order::kind::plain, count * n + 1, 77);
  const auto run = [=](machine& on) {
    input ys(xs.size());
    const cuda::row_batch<const float> x{xs.data() + (reads ? 1 : 0), count, n, n, 1};
    const cuda::row_batch<float> y{ys.data() + (reads ? 0 : 1), count, n, n, 1};
    return order::digest().add(emulated::normalise<probability>(on, x, y, 1, 1)).add(ys).value();
  };
  machine whole;
  const std::uint64_t expected = run(whole);
  return [=](machine& on) { return run(on) == expected; };
}

/// A row that is split, whose tiles have their largest elements in those lanes: so large that what misses one overflows.
std::function<bool(machine&)> split_row(std::int64_t blocks) {
  input xs = order::numbers<float>(order::kind::plain, 17 * regroup::tile_elements - 5, 77);
  const auto lanes = emulated::places_left_out(cuda::strip_elements);
  for (std::size_t t = 0; t < 17; ++t) {
    xs[t * 4096 + static_cast<std::size_t>(lanes[t % lanes.size()])] = 2400 + 3 * static_cast<float>(t);
  }
  return normalises({xs}, 1, 1, blocks);
}

}  // namespace

TEST(softmax_faults, every_barrier) {  // of a maximum and of a sum; and what tells the map of a row in tiles
  EXPECT_EQ(each_is_caught(fault::skip_barrier, rows(3, 1100)), 3 * (1 + 2));
  EXPECT_EQ(each_is_caught(fault::skip_barrier, rows(3, 4096)), 3 * (1 + 4));
  EXPECT_EQ(each_is_caught(fault::skip_barrier, rows(2, 2 * 4096 + 100, 1)), 2 * (2 + (3 + 1 + 1) + 1));
}

TEST(softmax_faults, every_shuffle) {  // of 64 lanes or fewer one place off turns all the tree, which has the same bits
  EXPECT_EQ(each_is_caught(fault::shift_shuffle, rows(8, 140)), 2 * (5 + (3 + 5)));  // two rows for each warp
  EXPECT_EQ(each_is_caught(fault::shift_shuffle, rows(64, 7)), 2 * (3 + 3 + 1));
  EXPECT_EQ(each_is_caught(fault::shift_shuffle, rows(2, 1100)), 2 * (5 + 1 + (3 + 5)));
  if (order::small()) return;
  EXPECT_EQ(each_is_caught_of(0, fault::shift_shuffle, rows(1, 8000)), 5 + 3 + 1);  // whom the sum is asked for
  // where a tile ends; then nobody asks
  EXPECT_EQ(each_is_caught_of(7, fault::shift_shuffle, rows(1, 8000), 5 + 3 + (3 + 5)), 5 + 3 + (3 + 5) + 1);
}

TEST(softmax_faults, every_index_of_shared_memory) {  // one row; arrays of one element have no wrong place
  for (const auto what : {fault::shift_get, fault::shift_set}) {
    const bool gets = what == fault::shift_get;
    EXPECT_EQ(each_is_caught(what, rows(1, 1100)), 1 + 1);
    for (const int warp : {1, 7}) {  // who reads what was passed on, and last a sum that nobody asks for
      EXPECT_EQ(each_is_caught_of(warp, what, rows(1, 8000), 1 + 1), gets ? 1 + (1 + 1) : 1 + 1);
    }
    EXPECT_EQ(each_is_caught(what, rows(1, 8300, 1)), gets ? (3 + 1) + (3 * 3 + 1 + 1) + 1 : 1 + (3 + 1) + 1);
  }
}

TEST(softmax_faults, of_what_is_turned) {
  constexpr int steps = 3 * cuda::strip_steps;
  for (const bool reads : {true, false}) {  // nobody comes after the last barrier
    EXPECT_EQ(each_is_caught(fault::skip_barrier, turns(reads), 0, 2 * steps - 1), 2 * steps);
    for (const auto what : {fault::shift_get, fault::shift_set}) {
      EXPECT_EQ(each_is_caught(what, turns(reads)), cuda::quad_elements * steps);
    }
  }
}

TEST(softmax_faults, of_a_cluster) {  // two whole blocks; or four, the third with one tile and the last without any
  const auto four = rows(1, 16'500);
  EXPECT_EQ(each_is_caught(fault::own_block, four), 2);
  if (order::small()) return;
  EXPECT_EQ(each_is_caught(fault::skip_barrier, rows(2, 16'384)), 1 + 2 * ((1 + 1) + (4 + 1)));
  EXPECT_EQ(each_is_caught(fault::shift_get, four), (1 + 1) + (1 + 1 + 1));
  EXPECT_EQ(each_is_caught(fault::shift_set, four), (1 + 1) + (1 + 1));
}

TEST(softmax_faults, of_a_split_row) {
  ASSERT_TRUE(cuda::plan_rows<float>(17 * 4096 - 5).is_split());
  EXPECT_EQ(each_is_caught(fault::shift_shuffle, split_row(17)), 2 * 5);
  EXPECT_EQ(each_is_caught(fault::shift_get, split_row(17)), 2 * (3 + 1));
  EXPECT_EQ(each_is_caught(fault::shift_set, split_row(17)), 2);
  if (order::small()) return;
  EXPECT_EQ(each_is_caught(fault::skip_barrier, split_row(1)), 17 * 2 * (1 + 1));
}

TEST(row_plan, by_the_length_and_the_device) {
  using by = cuda::row_plan::by;
  const auto is_right = [](auto real, std::int64_t n, int clusters) {
    const auto plan = cuda::plan_rows<decltype(real)>(n, clusters);
    const std::int64_t strip = cuda::strip_elements;
    const int most = cuda::most_strips;
    const bool is_clustered = n > most * strip && n <= clusters * most * strip && n <= regroup::longest_two_sweep_row;
    EXPECT_EQ(plan.taken, n <= 32               ? by::four_threads
                          : n <= most * strip   ? by::strips
                          : is_clustered        ? by::cluster
                          : n <= 65'536         ? by::block
                                                : by::ranges);
    if (plan.taken == by::strips) {
      EXPECT_TRUE(n <= plan.strips * strip && (plan.strips == 1 || n > plan.strips / 2 * strip));
    }
    EXPECT_EQ(plan.cluster, !is_clustered ? 1 : n <= 2 * most * strip ? 2 : n <= 4 * most * strip ? 4 : 8);
    EXPECT_EQ(plan.is_held(), n <= most * strip);
    if (!plan.is_split()) {
      EXPECT_LE(n, cuda::most_tiles * regroup::tile_elements);
      EXPECT_EQ(plan.levels, 0);
      return !testing::Test::HasFailure();
    }
    EXPECT_LE(plan.reach, cuda::most_tiles * regroup::tile_elements);
    std::int64_t nodes = cuda::nodes_of(n, plan.reach);
    for (int level = 0; level < plan.levels; ++level) nodes = cuda::nodes_of(nodes, regroup::lanes);
    EXPECT_EQ(nodes, 1);
    EXPECT_EQ(plan.levels, n <= std::int64_t{1} << 24 ? 1 : 2);
    EXPECT_GE(plan.reach, cuda::plan_rows<decltype(real)>(n - n / 977, clusters).reach);  // longer rows, longer ranges
    return !testing::Test::HasFailure();
  };
  for (std::int64_t n = 0; n < 40'000'000; n += n < 70'000 ? 1 : n / 977) {
    for (const int clusters : {1, cuda::most_cluster_blocks}) {
      ASSERT_TRUE(is_right(float{}, n, clusters) && is_right(double{}, n, clusters)) << n << " with " << clusters;
    }
  }
}
