// SPDX-License-Identifier: Apache-2.0
// The sizes of every launch of folds, scans, rows of softmax and attention, over all shapes: grids are ones that a device
// accepts, there is a block for each piece of work as far as blocks go, and no block has more than its share. Plain host code.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "../order/cases.hpp"
#include "regroup/cuda/attention_mma.hpp"
#include "regroup/cuda/attention_plan.hpp"
#include "regroup/cuda/row_looks.hpp"
#include "regroup/cuda/row_plan.hpp"
#include "regroup/cuda/scan_plan.hpp"
#include "regroup/monoids/arithmetic.hpp"

namespace {

namespace cuda = regroup::cuda;
using regroup::index;
using regroup::tile_elements;

/// Takes launches in place of a device, and holds each to what a grid may be.
struct launches {
  std::vector<index> blocks;
  template <class Kernel>
  void operator()(const Kernel&, index n, int cluster = 1) {
    EXPECT_GE(n, 1);
    EXPECT_LE(n, cuda::most_blocks);  // a grid has up to 2^31 - 1
    EXPECT_TRUE(cluster >= 1 && cluster <= cuda::most_cluster_blocks && n % cluster == 0) << n << " by " << cluster;
    static_assert(sizeof(Kernel) <= 4096);  // what a launch carries
    blocks.push_back(n);
  }
};
index groups(index n, index each) { return (n + each - 1) / each; }
index at_most(index n) { return n < cuda::most_blocks ? n : cuda::most_blocks; }

/// check(rows, length) for edges of the order and of memory.
template <class Check>
void each_shape(const Check& check) {
  std::vector<index> lengths = order::edges();
  for (const int bits : {16, 20, 24, 31, 40}) {
    for (const index d : {-1, 0, 1}) lengths.push_back((index{1} << bits) + d);
  }
  for (const index n : lengths) {
    for (const index count : {index{0}, index{1}, index{3}, index{1000}, index{1} << 20, (index{1} << 31) + 1}) {
      if (n > 0 && count > (index{1} << 42) / n) continue;
      check(count, n);
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(launches, of_folds) {
  each_shape([](index count, index n) {
    const cuda::row_batch<const float> rows{nullptr, count, n, n, 1};
    const regroup::plus<float> m;
    for (const int processors : {1, 132}) {
      launches on;
      const auto plan = cuda::plan_fold(lengths_of(rows), processors, sizeof(float));
      launch_fold([&](const auto&... of) { on(of...); }, plan, m, rows, nullptr, cuda::put_state<float>{});
      const auto where = std::to_string(count) + " rows of " + std::to_string(n);
      if (count == 0) {
        EXPECT_TRUE(on.blocks.empty()) << where;
        continue;
      }
      ASSERT_EQ(on.blocks.size(), n <= 1024 ? 1u : 1u + static_cast<unsigned>(plan.levels)) << where;
      if (n <= 1024) {  // teams: 32 or 4 rows a block
        EXPECT_EQ(on.blocks[0], at_most(groups(count, n <= 32 ? 32 : 4))) << where;
        continue;
      }
      index nodes = groups(n, plan.reach);
      for (const index blocks : on.blocks) {
        EXPECT_EQ(blocks, at_most(count * nodes)) << where;
        nodes = groups(nodes, regroup::lanes);
      }
      // Few enough ranges for the nodes' kernels, and many enough for all processors as far as there are tiles.
      EXPECT_TRUE(plan.reach == tile_elements || on.blocks[0] >= at_most(64 * processors)) << where;
    }
  });
}

TEST(launches, of_scans) {
  each_shape([](index count, index n) {
    const cuda::row_batch<const float> rows{nullptr, count, n, n, 1};
    const cuda::row_batch<float> out{nullptr, count, n, n, 1};
    launches on;
    cuda::launch_scan<regroup::scan_kind::exclusive>([&](const auto&... of) { on(of...); },
                                                     cuda::plan_scan(lengths_of(rows)), regroup::plus<float>{}, rows, out,
                                                     static_cast<float*>(nullptr));
    const auto where = std::to_string(count) + " rows of " + std::to_string(n);
    const index tiles = count * groups(n, tile_elements);
    if (count == 0) {
      EXPECT_TRUE(on.blocks.empty()) << where;
    } else if (n <= tile_elements) {
      ASSERT_EQ(on.blocks.size(), 1u) << where;
      EXPECT_EQ(on.blocks[0], at_most(n > 1024 ? tiles : groups(count, n <= 32 ? 32 : 4))) << where;
    } else {  // what a chain begins with, answers, first places
      ASSERT_EQ(on.blocks.size(), 3u) << where;
      EXPECT_EQ(on.blocks.front(), at_most(groups(tiles + count * groups(n, 32 * tile_elements), 128))) << where;
      EXPECT_EQ(on.blocks[1], at_most(tiles)) << where;
      EXPECT_EQ(on.blocks.back(), at_most(groups(tiles, 128))) << where;
    }
  });
}

TEST(launches, of_rows) {
  using look = cuda::look_normalise<regroup::softmax_parts::probability, float>;
  each_shape([](index count, index n) {
    const cuda::row_batch<const float> rows{nullptr, count, n, n, 1};
    float place;  // an address that nobody looks at
    const cuda::row_batch<float> out{&place, count, n, n, 1};
    for (const int clusters : {1, 8}) {
      launches on;
      const auto plan = cuda::plan_rows<float>(n, clusters);
      cuda::launch_rows([&](const auto&... of) { on(of...); }, clusters, rows, out,
                        regroup::softmax_parts::scale_of<float>(1), look{}, nullptr);
      const auto where = std::to_string(count) + " rows of " + std::to_string(n);
      if (count == 0) {
        EXPECT_TRUE(on.blocks.empty()) << where;
      } else if (plan.is_split()) {
        ASSERT_EQ(on.blocks.size(), 2u + static_cast<unsigned>(plan.levels)) << where;
        EXPECT_EQ(on.blocks.back(), at_most(count * groups(n, tile_elements))) << where;
      } else {
        ASSERT_EQ(on.blocks.size(), 1u) << where;
        using by = cuda::row_plan::by;
        const int rows_of_block = plan.taken == by::four_threads ? 32 : plan.taken == by::strips && plan.strips == 1 ? 4 : 1;
        EXPECT_EQ(on.blocks[0], at_most(groups(count, rows_of_block) * plan.cluster)) << where;
      }
    }
  });
}

template <class Arithmetic, class Mask>
void expect_sizes_of_attention(index batches, index heads, index queries, index keys, int dv) {
  using regroup::shape;
  const auto somewhere = [](std::uintptr_t number, const shape& e) {
    return cuda::device_view<float>(reinterpret_cast<float*>(number << 56), e);
  };
  const auto k = somewhere(2, {batches, heads, keys, 0}), v = somewhere(3, {batches, heads, keys, dv});
  const auto work = cuda::attention_work_of<float>(cuda::device_view<const float>(somewhere(1, {batches, heads, queries, 0})),
                                                   cuda::dense(k, v), somewhere(4, {batches, heads, queries, dv}),
                                                   cuda::attention_options<Mask>{});
  for (const int processors : {1, 132}) {
    launches on;
    const auto plan = cuda::plan_attention<Arithmetic>(work.call, work.leaves, processors);
    cuda::launch_attention<Arithmetic>([&](const auto&... of) { on(of...); }, plan, work, &on);
    const auto where = std::to_string(batches) + ", " + std::to_string(heads) + ", " + std::to_string(queries) + ", " +
                       std::to_string(keys);
    if (plan.units == 0) {
      EXPECT_TRUE(on.blocks.empty()) << where;
      continue;
    }
    const bool by_ticket = std::same_as<Mask, regroup::causal> && plan.has_turns() && plan.units * plan.parts < index{1} << 31;
    const std::size_t before = by_ticket ? 1 : 0;
    ASSERT_EQ(on.blocks.size(), before + (plan.parts > 1 ? 2 : 1)) << where;
    if (by_ticket) {
      EXPECT_EQ(on.blocks[0], 1) << where;
    }
    EXPECT_EQ(on.blocks[before], at_most(plan.blocks)) << where;
    EXPECT_EQ(plan.parts, groups(work.leaves, plan.reach)) << where;
    EXPECT_GE(plan.units * plan.rows, batches * heads * queries) << where;
  }
}

TEST(launches, of_attention) {
  for (const index batches : {index{0}, index{1}, index{7}, index{1} << 21}) {
    for (const index heads : {index{1}, index{8}}) {
      for (const index queries : {0, 1, 9, 1000}) {
        for (const index keys : {0, 1024, 1025, 32'768}) {
          for (const int dv : {0, 64, 65, 129}) {
            expect_sizes_of_attention<cuda::plain_arithmetic, regroup::no_mask>(batches, heads, queries, keys, dv);
            expect_sizes_of_attention<cuda::tensor_arithmetic, regroup::causal>(batches, heads, queries, keys, dv);
            if (HasFailure()) return;
          }
        }
      }
    }
  }
}

TEST(launches, of_attention_by_ticket_where_lengths_are_given) {
  const auto numbers = [](std::uintptr_t at, const regroup::shape& e) {
    return cuda::device_view<const float>(reinterpret_cast<const float*>(at << 56), e);
  };
  const cuda::device_view<const int> lengths(reinterpret_cast<const int*>(std::uintptr_t{5} << 56), {9}),
      offsets(lengths.data(), {10});
  const auto q = numbers(1, {9, 8, 100, 8}), tokens = numbers(1, {900, 8, 8}), k = numbers(2, {9, 8, 100, 8});
  const auto launched = [](const auto& queries, const auto& keys, const regroup::shape& to) {
    const cuda::device_view<float> out(reinterpret_cast<float*>(std::uintptr_t{4} << 56), to);
    const auto work = cuda::attention_work_of<float>(queries, keys, out, cuda::attention_options<>{});
    launches on;
    cuda::launch_attention([&](const auto&... of) { on(of...); }, cuda::plan_attention(work.call, work.leaves, 1), work, &on);
    return on.blocks.size();
  };
  EXPECT_EQ(launched(q, cuda::dense(k, k), q.extents()), 1u);
  EXPECT_EQ(launched(q, cuda::dense(k, k, lengths), q.extents()), 2u);
  EXPECT_EQ(launched(cuda::ragged(tokens, offsets, 100), cuda::dense(k, k), tokens.extents()), 2u);
}

}  // namespace
