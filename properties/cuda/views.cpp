// SPDX-License-Identifier: Apache-2.0
// What a device_view and a workspace refuse, which errors CUDA's codes become, and which kernels a batch uses: plain host code.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "../order/cases.hpp"
#include "regroup/cuda/error.hpp"
#include "regroup/cuda/fold_plan.hpp"
#include "regroup/cuda/scan_plan.hpp"
#include "regroup/cuda/view.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "said.hpp"

namespace {

namespace cuda = regroup::cuda;

}  // namespace

TEST(device_view, refuses_null_and_misaligned_pointers) {
  EXPECT_EQ(said<regroup::argument_error>([] { cuda::device_view<float>(nullptr, {7}); }),
            "a device_view of 7 elements needs their address; got null");
  EXPECT_EQ(said<regroup::argument_error>([] { cuda::device_view<double>(reinterpret_cast<double*>(0x1004), {7}); }),
            "a device_view's elements must be aligned to 8 bytes; the address is a multiple of 4");
  EXPECT_NO_THROW(cuda::device_view<float>(nullptr, {3, 0}));
  EXPECT_THROW(cuda::device_view<float>(nullptr, {-1}), regroup::shape_error);
}

TEST(device_view, rows_are_one_stride_apart) {
  float x[24];
  const auto rows = cuda::device_view<float>(x, {2, 3, 4}).rows();
  EXPECT_EQ(rows.count, 6);
  EXPECT_EQ(rows.length, 4);
  EXPECT_EQ(rows.row_stride, 4);
  const auto columns = cuda::device_view<float>(x, {6, 4}, {1, 6}).rows();
  EXPECT_EQ(columns.row_stride, 1);
  EXPECT_EQ(columns.stride, 6);
  EXPECT_EQ(cuda::device_view<float>(x, {24}).rows().count, 1);
  EXPECT_EQ(said<regroup::shape_error>([&] { return cuda::device_view<float>(x, {2, 3, 2}, {12, 2, 1}).rows(); }),
            "on a device the rows of a view must be one stride apart; shape (2, 3, 2) with strides (12, 2, 1) has 2");
  EXPECT_THROW(static_cast<void>(cuda::device_view<float>(x, {3, 2}, {4, 1}).one_row()), regroup::shape_error);
  EXPECT_EQ(cuda::device_view<float>(x, {3, 4}).one_row().length, 12);
  EXPECT_EQ(cuda::device_view<float>(x, {3, 0}).one_row().length, 0);  // nothing needs no stride
  EXPECT_EQ(cuda::device_view<float>(x, {3, 0, 5}).rows().count, 0);
  EXPECT_THROW(static_cast<void>(cuda::device_view<float>(x, regroup::shape{}).rows()), regroup::shape_error);
}

TEST(device_view, outputs_stay_apart) {
  float x[24];
  const cuda::device_view<float> in(x, {12});
  EXPECT_THROW(in.require_apart_from(cuda::device_view<float>(x + 5, {12}), true), regroup::overlap_error);
  EXPECT_THROW(in.require_apart_from(in, false), regroup::overlap_error);
  EXPECT_NO_THROW(in.require_apart_from(in, true));
  EXPECT_THROW(in.require_apart_from(cuda::device_view<float>(x + 12, {4, 3}, {0, 1}), false), regroup::overlap_error);
}

TEST(workspace, refuses_too_little_null_and_misaligned) {
  alignas(16) char memory[64];
  EXPECT_EQ(said<regroup::argument_error>([&] { cuda::workspace{memory, 63}.require(64); }),
            "the workspace has 63 bytes; this call needs 64");
  EXPECT_THROW((cuda::workspace{memory + 8, 56}.require(16)), regroup::argument_error);
  EXPECT_THROW((cuda::workspace{nullptr, 64}.require(16)), regroup::argument_error);
  EXPECT_NO_THROW((cuda::workspace{memory, 64}.require(64)));
  EXPECT_NO_THROW((cuda::workspace{}.require(0)));
}

TEST(device_errors, have_types_and_sentences) {
  EXPECT_NE(said<cuda::memory_error>([] { cuda::throw_device(2, "out of memory", "allocating"); }).find("too little"),
            std::string::npos);
  EXPECT_NE(said<cuda::architecture_error>([] { cuda::throw_device(209, "no image", "a launch"); }).find("nvcc's -arch"),
            std::string::npos);
  for (const int code : {35, 100}) {
    EXPECT_NE(said<cuda::no_device_error>([&] { cuda::throw_device(code, "no device", "asking"); }).find("found none"),
              std::string::npos);
  }
  EXPECT_EQ(said<cuda::device_error>([] { cuda::throw_device(700, "an illegal access", "waiting"); }),
            "the device reports an error (waiting: an illegal access)");
}

/// Every plan covers every row, by exactly one kernel, with workspaces that are as large as their slots.
TEST(plans, cover_every_shape) {
  std::vector<std::int64_t> ns = order::edges();
  for (const std::int64_t n : {std::int64_t{1} << 20, (std::int64_t{1} << 31) + 1, std::int64_t{1} << 40}) ns.push_back(n);
  for (const std::int64_t n : ns) {
    for (const std::int64_t count : {0, 1, 2, 1000, 1 << 20}) {
      if (n > (std::int64_t{1} << 40) / std::max<std::int64_t>(count, 1)) continue;
      for (const int processors : {0, 1, 132}) {
        const cuda::batch_lengths lengths{count, n * count, n, true};
        const auto plan = cuda::plan_fold(lengths, processors, 8);
        const cuda::row_batch<const float> rows{nullptr, count, n, n, 1};
        const auto where = std::to_string(count) + " rows of " + std::to_string(n);
        if (count == 0) {
          EXPECT_EQ(plan.short_team + plan.levels + plan.reach, 0) << where;
          continue;
        }
        EXPECT_EQ(n <= plan.shortest, plan.reach == 0) << where;
        EXPECT_EQ(plan.shortest, plan.short_team == 0 ? -1 : 32 * plan.short_team) << where;
        EXPECT_NE(cuda::plan_fold(lengths, processors, 24).short_team, 4) << where;
        if (plan.reach == 0) continue;
        EXPECT_EQ(plan.reach % regroup::tile_elements, 0) << where;
        EXPECT_LE(plan.reach, cuda::most_tiles * regroup::tile_elements) << where;
        std::int64_t reach = plan.reach;
        std::int64_t states = 0;
        for (int level = 0; level < plan.levels; ++level, reach *= regroup::lanes) {
          EXPECT_GT(cuda::nodes_of(n, reach), 1) << where;
          states += count * cuda::nodes_of(n, reach);
        }
        EXPECT_EQ(cuda::nodes_of(n, reach), 1) << where;
        EXPECT_EQ(workspace_states(plan, rows), states) << where;
        const auto scan = cuda::plan_scan(lengths);
        EXPECT_EQ(scan.levels > 0, n > regroup::tile_elements) << where;
        const auto tiles = static_cast<std::size_t>(n > regroup::tile_elements ? count * regroup::tiles_of(n) : 0);
        const auto groups = static_cast<std::size_t>(tiles > 0 ? count * cuda::nodes_of(n, 32 * regroup::tile_elements) : 0);
        const std::size_t places = tiles > 0 ? 16 * (1 + tiles + groups) : 0;
        EXPECT_EQ(cuda::scan_workspace<float>(scan, rows, regroup::scan_kind::inclusive), places) << where;
        EXPECT_EQ(cuda::scan_workspace<float>(scan, rows, regroup::scan_kind::exclusive), places + 4 * tiles) << where;
      }
    }
  }
}

/// Blocks that a fold and a scan of segments launch; the offsets are the device's, and nobody here may look at them.
std::int64_t blocks_for(std::int64_t count, std::int64_t total) {
  const cuda::segment_batch<const float, int> rows{nullptr, nullptr, count, total};
  const cuda::segment_batch<float, int> out{nullptr, nullptr, count, total};
  std::int64_t all = 0;
  const auto launch = [&](const auto&, std::int64_t blocks) {
    EXPECT_TRUE(blocks > 0 && blocks <= cuda::most_blocks) << count << " segments of " << total;
    all += blocks;
  };
  const regroup::plus<float> m;
  launch_fold(launch, cuda::plan_fold(lengths_of(rows), 132, 4), m, rows, nullptr, cuda::put_state<float>{});
  cuda::launch_scan<regroup::scan_kind::exclusive>(launch, cuda::plan_scan(lengths_of(rows)), m, rows, out, nullptr);
  return all;
}

TEST(plans, segments_need_no_block_each) {
  constexpr std::int64_t many = 1'000'000, nodes = cuda::most_node_blocks<cuda::segment_batch<const float, int>>;
  // Eight launches of nodes at most, and teams of 4 or 32 threads: 32 or 4 segments a block, of a fold and of a scan.
  EXPECT_LE(blocks_for(many, 10 * many), 2 * many / 32 + 8 * nodes);
  EXPECT_LE(blocks_for(many, 10 * many + (1 << 28)), 2 * many / 4 + 8 * nodes);
  EXPECT_LE(blocks_for(many, many << 13), 2 * many / 4 + 10 * nodes);  // all long
  EXPECT_LE(blocks_for(many, 0), 2 * many / 32);
  EXPECT_LE(blocks_for(100, 100 << 20), 2 * 25 + 8 * nodes);
  EXPECT_GE(blocks_for(100, 100 << 20), 2 * nodes);  // of their tiles
  EXPECT_EQ(blocks_for(0, 0), 0);
  // Nor places of the workspace: two for as many elements as a range has.
  const cuda::segment_batch<const float, int> rows{nullptr, nullptr, many, 10 * many};
  const auto plan = cuda::plan_fold(lengths_of(rows), 132, 4);
  EXPECT_LE(workspace_states(plan, rows), 2 * rows.total / plan.reach + 2 * rows.total / plan.reach / 127);
}

TEST(plans, slots_of_segments_have_room_for_every_node) {
  order::dice random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<int> offsets = {0};
    const std::int64_t count = random(1, 60);
    for (std::int64_t s = 0; s < count; ++s) offsets.push_back(offsets.back() + static_cast<int>(random(0, 3) * random(0, 40)));
    const std::int64_t reach = random(1, 50);
    const std::int64_t above = random(0, reach);
    const cuda::segment_batch<const float, int> rows{nullptr, offsets.data(), count, offsets.back()};
    std::vector<int> taken(static_cast<std::size_t>(rows.slots(reach, above)), 0);
    for (std::int64_t s = 0; s < count; ++s) {
      if (rows[s].size() <= above) continue;
      for (std::int64_t node = 0; node < cuda::nodes_of(rows[s].size(), reach); ++node) {
        const std::int64_t slot = rows.slot_of(s, reach, above) + node;
        ASSERT_LT(slot, rows.slots(reach, above));
        ++taken[static_cast<std::size_t>(slot)];
        const auto [row, position] = rows.locate(slot, reach, above);
        ASSERT_EQ(row, s);
        ASSERT_EQ(position, node);
      }
    }
    for (std::size_t slot = 0; slot < taken.size() + 130; ++slot) {  // blocks ask past the end
      const bool is_found = rows.locate(static_cast<std::int64_t>(slot), reach, above).row >= 0;
      ASSERT_EQ(slot < taken.size() ? taken[slot] : 0, is_found ? 1 : 0);
    }
  }
}
