// SPDX-License-Identifier: Apache-2.0
// Which kernels a call of attention on a device uses, over all shapes, and what it refuses: plain host code.
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "../attention/cases.hpp"
#include "../order/cases.hpp"
#include "regroup/cuda/attention_masks.hpp"
#include "regroup/cuda/attention_mma.hpp"
#include "regroup/cuda/attention_plan.hpp"

namespace {

using cases::refused;
using cases::tensor;
using regroup::index;
using regroup::shape;
namespace cuda = regroup::cuda;

/// An address that nobody may look at, far from that of other numbers.
template <class T>
cuda::device_view<T> somewhere(const shape& extents, std::uintptr_t number = 1) {
  return {reinterpret_cast<T*>(number << 40), extents};
}
template <class T = float, class Mask = regroup::no_mask>
auto work_of(const shape& q, const shape& k, const shape& v, const shape& out,
             const cuda::attention_options<Mask>& options = {}) {
  return cuda::attention_work_of<T>(somewhere<const T>(q), cuda::dense(somewhere<T>(k, 2), somewhere<T>(v, 3)),
                                    somewhere<T>(out, 4), options);
}
cuda::attention_call<float> call_of(index batches, index key_heads, int group, int queries, index keys, int dv) {
  const shape outer{batches, key_heads * group, queries};
  return work_of({batches, key_heads * group, queries, 8}, {batches, key_heads, keys, 8}, {batches, key_heads, keys, dv},
                 {batches, key_heads * group, queries, dv}, {.logsumexp = somewhere<float>(outer, 5)})
      .call;
}

TEST(attention_plans, cover_every_row_and_column_once) {
  for (const auto& extents : {std::array{1, 1, 1, 1, 1},
                              {2, 3, 4, 5, 128},
                              {1, 2, 1, 33, 129},
                              {3, 1, 8, 1, 64},
                              {1, 1, 1, 300, 65},
                              {2, 2, 2, 9, 0}}) {
    const int batches = extents[0], key_heads = extents[1], group = extents[2], queries = extents[3], dv = extents[4];
    auto call = call_of(batches, key_heads, group, queries, 10, dv);
    for (const auto& [rows, columns] : {std::pair{8, 64}, {8, 128}, {32, 64}, {32, 128}}) {
      for (const index together : {1, 2, 3, 100}) {
        call.together = together;
        cuda::plain_arithmetic::with_shape<float>({rows, columns}, [&]<class Shape>(Shape) {
          std::set<std::tuple<index, index, index, int>> seen;
          const index units = batches * key_heads * cuda::units_of_head<Shape>(call);
          for (index unit = 0; unit < units; ++unit) {
            const auto at = cuda::place<Shape>(call, unit);
            for (int row = 0; row < Shape::rows && call.has_row(at, row); ++row) {
              EXPECT_EQ(call.head_of(at, row) / group, at.key_head);
              EXPECT_TRUE(seen.emplace(at.batch, call.head_of(at, row), call.query_of(at, row), at.first_column).second);
            }
          }
          const int chunks = dv == 0 ? 1 : (dv + Shape::columns - 1) / Shape::columns;
          EXPECT_EQ(static_cast<int>(seen.size()), batches * key_heads * group * queries * chunks);
        });
      }
    }
  }
}

TEST(attention_plans, the_last_rows_of_heads_that_are_together_come_first) {
  auto call = call_of(2, 3, 1, 20, 10, 128);
  call.together = 4;
  using shape = cuda::attention_shape<2, 2>;  // 8 rows, 64 columns
  for (index unit = 0; unit < 6 * 3 * 2; ++unit) {
    const auto at = cuda::place<shape>(call, unit);
    const index heads = unit < 4 * 6 ? 4 : 2, first = unit < 4 * 6 ? 0 : 4, here = unit - first * 6;
    EXPECT_EQ(at.batch * 3 + at.key_head, first + here % heads);
    EXPECT_EQ(at.first_row, 16 - here / heads / 2 * 8);
    EXPECT_EQ(at.first_column, 64 - here / heads % 2 * 64);
  }
}

/// When the last of so many processors is done, by turns that cost `cost`(number): over when all would be, were the work even.
template <class Cost>
double lateness(index turns, index processors, const Cost& cost) {
  std::vector<double> busy(static_cast<std::size_t>(processors));
  double all = 0;
  for (index number = 0; number < turns; ++number) {
    *std::min_element(busy.begin(), busy.end()) += cost(number);
    all += cost(number);
  }
  return *std::max_element(busy.begin(), busy.end()) * static_cast<double>(processors) / all;
}
TEST(attention_plans, blocks_of_a_causal_call_are_done_at_about_the_same_time) {
  for (const auto& [heads, queries] : {std::pair{128, 2048}, {256, 2048}, {512, 512}, {16, 16384}, {32, 8192}, {40, 2048}}) {
    auto work = work_of({1, heads, queries, 128}, {1, heads, queries, 128}, {1, heads, queries, 128}, {1, heads, queries, 128});
    const auto plan = cuda::plan_attention(work.call, work.leaves, 132);
    ASSERT_TRUE(plan.has_turns());
    ASSERT_EQ(plan.parts, 1);
    work.call.together = plan.heads_together(heads);
    EXPECT_TRUE(work.call.together == heads || work.call.together * plan.units / heads >= 2 * plan.blocks);
    EXPECT_LE(work.call.together, std::max<index>(4 * plan.blocks * heads / plan.units, 1));  // neither all of memory at once
    EXPECT_LT(lateness(plan.units, plan.blocks, [&](index unit) {
      return cuda::place<cuda::attention_shape<8, 4>>(work.call, unit).first_row + 32.0;
    }), 1.03) << heads << ", " << queries;
  }
}

TEST(attention_plans, keys_are_copied_in_pieces_where_all_are_aligned) {
  using T = regroup::bfloat16;
  const auto call = [](index d, index dv, const shape& strides, std::uintptr_t off = 0) {
    const auto k = reinterpret_cast<const T*>((std::uintptr_t{2} << 40) + off);
    return cuda::attention_work_of<T>(
               somewhere<const T>({2, 3, 4, d}),
               cuda::dense(cuda::device_view<const T>(k, {2, 3, 5, d}, strides), somewhere<const T>({2, 3, 5, dv}, 3)),
               somewhere<T>({2, 3, 4, dv}, 4), cuda::attention_options<>{})
        .call;
  };
  const auto has = [&](index d, index dv, const shape& strides, std::uintptr_t off = 0) {
    const auto c = call(d, dv, strides, off);
    return std::pair(c.has_k_rows, c.has_v_rows);
  };
  const shape side_by_side{15 * 16, 5 * 16, 16, 1};
  EXPECT_EQ(has(16, 8, side_by_side), std::pair(true, true));
  EXPECT_EQ(has(16, 12, side_by_side), std::pair(true, false));
  EXPECT_EQ(has(12, 8, side_by_side), std::pair(false, true));                   // no whole pieces
  EXPECT_EQ(has(16, 8, {16, 32, 96, 1}), std::pair(true, true));                 // any order of axes
  EXPECT_EQ(has(16, 8, side_by_side, 16), std::pair(true, true));
  EXPECT_EQ(has(16, 8, side_by_side, 8), std::pair(false, true));                // not aligned
  for (int axis = 0; axis < 4; ++axis) {
    shape strides = side_by_side;
    strides[axis] += axis == 3 ? 1 : 4;
    EXPECT_EQ(has(16, 8, strides), std::pair(false, true)) << axis;
  }
  EXPECT_EQ(call_of(1, 1, 1, 1, 10, 4).has_v_rows, true);  // of four floats to a piece
}

/// Ragged queries over ragged keys. Offsets stand in memory that may be looked at.
auto ragged_work(const shape& q, const std::vector<int>& q_offsets, index most_q, const shape& k, const shape& v,
                 const std::vector<int>& k_offsets, index most_k, const shape& out,
                 const cuda::attention_options<>& options = {}) {
  const auto offsets = [](const std::vector<int>& of) {
    return cuda::device_view<const int>(of.data(), {static_cast<index>(of.size())});
  };
  return cuda::attention_work_of<float>(
      cuda::ragged(somewhere<float>(q), offsets(q_offsets), most_q),
      cuda::ragged(somewhere<float>(k, 2), somewhere<float>(v, 3), offsets(k_offsets), most_k),
      somewhere<float>(out, 4), options);
}

TEST(attention_plans, cover_every_ragged_row_once) {
  const std::vector<int> q_offsets = {0, 5, 5, 38, 39}, k_offsets = {0, 7, 9, 2000, 2000};
  const auto work = ragged_work({39, 6, 8}, q_offsets, 33, {2000, 3, 8}, {2000, 3, 130}, k_offsets, 1991, {39, 6, 130});
  const auto& call = work.call;
  EXPECT_EQ(work.leaves, 2);
  EXPECT_EQ(call.batches, 4);
  EXPECT_EQ(call.most_rows(), 66);
  for (const int rows : {8, 32}) {
    cuda::plain_arithmetic::with_shape<float>({rows, 128}, [&]<class Shape>(Shape) {
      std::set<std::tuple<index, index, int>> seen;  // token, head, column
      for (index unit = 0; unit < 4 * 3 * cuda::units_of_head<Shape>(call); ++unit) {
        const auto at = cuda::place<Shape>(call, unit);
        for (int row = 0; row < Shape::rows && call.has_row(at, row); ++row) {
          const index token = call.queries.first(at.batch) + call.query_of(at, row);
          EXPECT_LT(token, q_offsets[static_cast<std::size_t>(at.batch) + 1]);
          EXPECT_TRUE(seen.emplace(token, call.head_of(at, row), at.first_column).second);
        }
      }
      EXPECT_EQ(seen.size(), 39u * 6 * 2);
    });
  }
}

TEST(attention_plans, refuse_ragged_batches_that_do_not_fit) {
  const std::vector<int> two = {0, 5, 9}, three = {0, 1, 2, 9}, none;
  EXPECT_EQ(ragged_work({9, 2, 4}, two, 5, {9, 1, 4}, {9, 1, 3}, two, 5, {9, 2, 3}).call.batches, 2);
  EXPECT_EQ(ragged_work({9, 2, 4}, {0}, 5, {9, 1, 4}, {9, 1, 3}, {0}, 5, {9, 2, 3}).call.batches, 0);
  refused<regroup::shape_error>([&] { ragged_work({2, 9, 2, 4}, two, 5, {9, 1, 4}, {9, 1, 3}, two, 5, {9, 2, 3}); });
  refused<regroup::shape_error>([&] { ragged_work({9, 2, 4}, two, 5, {9, 4}, {9, 3}, two, 5, {9, 2, 3}); });
  refused<regroup::shape_error>([&] { ragged_work({9, 2, 4}, two, 5, {9, 1, 4}, {8, 1, 3}, two, 5, {9, 2, 3}); });
  refused<regroup::shape_error>([&] { ragged_work({9, 2, 4}, two, 5, {9, 1, 5}, {9, 1, 3}, two, 5, {9, 2, 3}); });
  refused<regroup::shape_error>([&] { ragged_work({9, 2, 4}, two, 5, {9, 1, 4}, {9, 1, 3}, three, 5, {9, 2, 3}); });
  refused<regroup::shape_error>([&] { ragged_work({9, 2, 4}, none, 5, {9, 1, 4}, {9, 1, 3}, none, 5, {9, 2, 3}); });
  refused<regroup::shape_error>([&] { ragged_work({9, 2, 4}, two, 5, {9, 1, 4}, {9, 1, 3}, two, 5, {2, 9, 3}); });
  refused<regroup::shape_error>([&] { ragged_work({9, 1, 4}, two, 1 << 30, {9, 1, 4}, {9, 1, 16384}, two, 5, {9, 1, 16384}); });
  refused<regroup::shape_error>([&] { ragged_work({9, 2, 4}, two, 5, {9, 1, 4}, {9, 1, 3}, two, 5, {2, 2, 5, 3}); });
  refused<regroup::argument_error>([&] { ragged_work({9, 2, 4}, two, -1, {9, 1, 4}, {9, 1, 3}, two, 5, {9, 2, 3}); });
  refused<regroup::argument_error>([&] { ragged_work({9, 2, 4}, two, 5, {9, 1, 4}, {9, 1, 3}, two, -1, {9, 2, 3}); });
  refused<regroup::shape_error>([&] {
    ragged_work({9, 2, 4}, two, 5, {9, 1, 4}, {9, 1, 3}, two, 5, {9, 2, 3}, {.logsumexp = somewhere<float>({2, 9}, 5)});
  });
  refused<regroup::overlap_error>([&] {  // the last tokens, past what the bounds need
    ragged_work({9, 2, 4}, two, 1, {9, 1, 4}, {9, 1, 3}, two, 1, {9, 2, 3},
                {.logsumexp = cuda::device_view<float>(somewhere<float>({9, 1, 4}, 2).data() + 34, {9, 2})});
  });
  const cuda::attention_options<> options;
  const cuda::device_view<const int> apart(two.data(), {2}, {2}), beside(two.data(), {3});
  const auto keys = cuda::ragged(somewhere<float>({9, 1, 4}, 2), somewhere<float>({9, 1, 3}, 3), beside, 5);
  const auto q = somewhere<float>({9, 2, 4});
  refused<regroup::shape_error>([&] {
    cuda::attention_work_of<float>(cuda::ragged(q, apart, 5), keys, somewhere<float>({9, 2, 3}, 4), options);
  });
  refused<regroup::shape_error>([&] {  // padded queries
    cuda::attention_work_of<float>(somewhere<float>({2, 2, 4, 4}), keys, somewhere<float>({2, 2, 4, 3}, 4), options);
  });
  refused<regroup::shape_error>([&] {  // keys without a batch's axis
    cuda::attention_work_of<float>(cuda::ragged(q, beside, 5),
                                   cuda::dense(somewhere<float>({1, 9, 4}, 2), somewhere<float>({1, 9, 3}, 3)),
                                   somewhere<float>({9, 2, 3}, 4), options);
  });
}

template <class T>
cuda::attention_call<T> whole_rows(int rows, int dv) {
  const auto of = call_of(2, 4, 1, rows, 5, dv);
  cuda::attention_call<T> call{};
  call.queries = of.queries;
  call.batches = of.batches;
  call.key_heads = of.key_heads;
  call.group = of.group;
  call.d = of.d;
  call.dv = of.dv;
  call.has_q_rows = call.has_k_rows = call.has_v_rows = dv % 64 == 0;
  return call;
}
template <class Arithmetic, class T>
void expect_bounded_workspace(int rows, index leaves, int dv, int processors) {
  const auto plan = cuda::plan_attention<Arithmetic>(whole_rows<T>(rows, dv), leaves, processors);
  EXPECT_EQ(plan.units == 0, rows == 0);
  if (rows == 0) return;
  Arithmetic::template with_shape<T>(plan, [&]<class Shape>(Shape) {
    EXPECT_EQ(Shape::rows, plan.rows);
    const auto block = static_cast<std::size_t>(Shape::thread_rows) * 128 * sizeof(typename Shape::state);
    const index held = processors * Arithmetic::template resident_blocks<T, Shape>;
    EXPECT_EQ(plan.reach & (plan.reach - 1), 0);
    EXPECT_EQ(plan.parts, (leaves + plan.reach - 1) / plan.reach);
    EXPECT_LE(plan.blocks, std::max<index>(held, 1));
    EXPECT_LE(plan.blocks, plan.units * plan.parts);
    // Where units fill the device a block has all keys of its own; else each device's worth of parts is a few times over.
    EXPECT_TRUE(plan.parts == 1 || plan.units < held);
    EXPECT_TRUE(plan.parts == 1 || plan.units * plan.parts <= 4 * held);
    EXPECT_TRUE(plan.reach == 1 || plan.units >= held || 2 * plan.units * plan.parts > held) << plan.parts;
    EXPECT_GE(index{1} << plan.depth, std::min(plan.reach, leaves));
    EXPECT_EQ(plan.stack_bytes, block * static_cast<std::size_t>(plan.blocks * plan.depth));
    EXPECT_EQ(plan.tickets_at - plan.stack_bytes,
              plan.parts == 1 ? 0 : block * static_cast<std::size_t>(plan.units * plan.parts));
    EXPECT_EQ(plan.bytes - plan.tickets_at, plan.blocks < plan.units * plan.parts ? sizeof(cuda::tickets) : 0);
  });
}
TEST(attention_plans, bound_their_workspace_by_the_device) {
  for (const int rows : {0, 1, 8, 9, 64, 65, 4096, 1 << 20}) {
    for (const index leaves : {1, 2, 33, 1000, 100'000}) {
      for (const int dv : {1, 64, 128, 256}) {
        for (const int processors : {0, 1, 132}) {
          expect_bounded_workspace<cuda::plain_arithmetic, float>(rows, leaves, dv, processors);
          expect_bounded_workspace<cuda::tensor_arithmetic, float>(rows, leaves, dv, processors);
          expect_bounded_workspace<cuda::tensor_arithmetic, regroup::bfloat16>(rows, leaves, dv, processors);
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST(attention_plans, take_the_hosts_arguments) {
  const auto work = work_of({2, 6, 5, 16}, {2, 3, 2049, 16}, {2, 3, 2049, 4}, {2, 6, 5, 4});
  EXPECT_EQ(work.call.group, 2);
  EXPECT_EQ(work.call.most_rows(), 10);
  EXPECT_EQ(work.leaves, 3);
  EXPECT_EQ(work.call.scale, 0.25f);
  EXPECT_EQ(work_of({5, 16}, {7, 16}, {7, 4}, {5, 4}).call.key_heads, 1);
  EXPECT_EQ(work_of({5, 16}, {0, 16}, {0, 4}, {5, 4}).leaves, 1);
}

TEST(attention_plans, are_of_nothing_where_nothing_is_written) {  // the host returns at once, too
  const shape q{1, 1 << 10, 1 << 16, 16}, k{1, 1 << 10, 9, 16}, of_nothing{1, 1 << 10, 9, 0}, out{1, 1 << 10, 1 << 16, 0};
  const auto units = [&](const cuda::attention_options<>& options) {
    const auto work = work_of(q, k, of_nothing, out, options);
    return cuda::plan_attention<cuda::plain_arithmetic>(work.call, work.leaves, 132, 200'000).units;
  };
  EXPECT_EQ(units({}), 0);
  EXPECT_GT(units({.logsumexp = somewhere<float>({1, 1 << 10, 1 << 16}, 5)}), 0);
}

TEST(attention_plans, refuse_what_the_host_refuses) {
  refused<regroup::shape_error>([] { work_of({5, 16}, {7, 15}, {7, 4}, {5, 4}); });
  refused<regroup::shape_error>([] { work_of({5, 16}, {7, 16}, {8, 4}, {5, 4}); });
  refused<regroup::shape_error>([] { work_of({3, 5, 16}, {2, 7, 16}, {2, 7, 4}, {3, 5, 4}); });
  refused<regroup::shape_error>([] { work_of({5, 16}, {7, 16}, {7, 4}, {5, 5}); });
  refused<regroup::shape_error>([] { work_of({16}, {7, 16}, {7, 4}, {4}); });
  refused<regroup::argument_error>(
      [] { work_of({5, 16}, {7, 16}, {7, 4}, {5, 4}, cuda::attention_options<>{.scale = std::nan("")}); });
  refused<regroup::argument_error>([] {
    work_of({5, 16}, {7, 16}, {7, 4}, {5, 4}, cuda::attention_options<regroup::window>{.mask = {-2, 0}});
  });
  refused<regroup::shape_error>([] {
    work_of({5, 16}, {7, 16}, {7, 4}, {5, 4}, cuda::attention_options<>{.logsumexp = somewhere<float>({6}, 5)});
  });
  refused<regroup::shape_error>([] {
    work_of({2, 5, 16}, {1, 7, 16}, {1, 7, 4}, {2, 5, 4},
            cuda::attention_options<>{.sinks = somewhere<const float>({3}, 5)});
  });
  refused<regroup::shape_error>([] {
    work_of({2, 5, 16}, {1, 7, 16}, {1, 7, 4}, {2, 5, 4},
            cuda::attention_options<cuda::alibi>{.mask = {somewhere<const float>({3}, 5)}});
  });
  refused<regroup::overlap_error>([] {
    const cuda::attention_options<> options;
    cuda::attention_work_of<float>(somewhere<const float>({5, 16}), cuda::dense(somewhere<float>({7, 16}, 2),
                                                                               somewhere<float>({7, 16}, 3)),
                                   somewhere<float>({5, 16}, 3), options);
  });
  refused<regroup::shape_error>([] {
    work_of({1, 1, index{1} << 31, 1}, {1, 1, 7, 1}, {1, 1, 7, 1}, {1, 1, index{1} << 31, 1});
  });
}

TEST(attention_plans, refuse_tables_and_lengths_that_do_not_fit) {
  const auto with = [](const shape& table, const shape& lengths, const shape& strides) {
    const cuda::attention_options<> options;
    const cuda::device_view<const int> given(reinterpret_cast<const int*>(std::uintptr_t{5} << 40), lengths, strides);
    return cuda::attention_work_of<float>(
        somewhere<const float>({2, 1, 5, 16}),
        cuda::paged(somewhere<float>({9, 1, 16, 16}, 2), somewhere<float>({9, 1, 16, 4}, 3),
                    somewhere<const int>(table, 6), given),
        somewhere<float>({2, 1, 5, 4}, 4), options);
  };
  EXPECT_EQ(with({2, 70}, {2}, {1}).leaves, 2);
  EXPECT_EQ(with({2, 70}, {2}, {1}).call.page_size, 16);
  refused<regroup::shape_error>([&] { with({3, 70}, {2}, {1}); });
  refused<regroup::shape_error>([&] { with({70}, {2}, {1}); });
  refused<regroup::shape_error>([&] { with({2, 70}, {3}, {1}); });
  refused<regroup::shape_error>([&] { with({2, 70}, {2}, {2}); });
  refused<regroup::shape_error>([&] { with({2, 70}, {2, 1}, {1, 1}); });
}

}  // namespace
/// What a block may have of an A100, and of a card of compute capability 8.6 or 8.9.
TEST(attention_plans, of_fewer_rows_where_a_block_has_too_little_shared_memory) {
  using half = regroup::bfloat16;
  const auto rows = [](int dv, regroup::index block_bytes) {
    return cuda::plan_attention<cuda::tensor_arithmetic>(whole_rows<half>(4096, dv), 4, 100, block_bytes).rows;
  };
  EXPECT_EQ(rows(128, 166'912), 128);
  EXPECT_EQ(rows(128, 101'376), 64);
  EXPECT_EQ(rows(64, 101'376), 128);
  EXPECT_LE((cuda::tensor_arithmetic::shared_bytes<half, cuda::mma_shape<16>>), 101'376);
  EXPECT_LE((cuda::tensor_arithmetic::shared_bytes<float, cuda::mma_shape<16>>), 101'376);
}
