// SPDX-License-Identifier: Apache-2.0
// A test of the tests: attention on tensor cores with any one barrier or wait left out, or any one shuffle, product or index of
// shared memory one place off, is caught.
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "faults.hpp"
#include "mma_problem.hpp"

namespace {

using emulated::each_is_caught;
using emulated::fault;
using emulated::machine;
using emulated::on_device;
using regroup::bfloat16;
using regroup::causal;
using regroup::index;
using tensor_cores::problem;
namespace cuda = regroup::cuda;

template <class T, class Mask = regroup::no_mask>
std::function<bool(machine&)> attends(const problem<T>& p, const Mask& mask = {}) {
  return [=, expected = tensor_cores::attend(p, mask)](machine& on) {
    const auto got = emulated::attend<T, float, Mask, cuda::tensor_arithmetic>(
        on, p.q.view(), cuda::dense(on_device(p.k), on_device(p.v)), cuda::attention_options<Mask>{.mask = mask});
    return static_cast<bool>(same_bits(got, expected));
  };
}

// A block looks at what its rows see of all keys, and then of the leaf: two barriers each, the shuffles of a warp's 16 rows and
// a broadcast, a read of a row's keys and of each warp's. The plain kernel's tests break them.
constexpr int looks = 2, barriers_of_look = 2, shuffles_of_look = 4 + 1, gets_of_look = 1 + 4, sets_of_look = 2;

TEST(attention_mma_faults, every_barrier) {  // two tiles, and two panels of columns of each matrix
  EXPECT_EQ(each_is_caught(fault::skip_barrier, attends<float>({1, 1, 64, 66, 33, 34})),
            looks * barriers_of_look + 1 + 2 * (2 * 2 + 3));
  // Of 16 bits v has one panel. A column of the second tile is not finite: the leaf is folded twice.
  for (const index more : {0, 1}) {  // copied in pieces, or one by one
    problem<bfloat16> p(1, 1, 64, 70, 72 + more, 64 - more);
    p.v.view()(0, 0, 67, 0) = bfloat16(std::numeric_limits<float>::infinity());  // whose weight another lane has
    constexpr int once = 1 + 3 * 2, outcome = 1, of_row = 1;
    EXPECT_EQ(each_is_caught(fault::skip_barrier, attends(p, causal{}), 0,
                             looks * barriers_of_look + once + outcome + once + of_row),
              looks * barriers_of_look + 2 * (once + outcome) + of_row + 1);
  }
}

// Three tiles, folded twice. Not needed are the first tile's between its halves, before which nothing is read, and the last
// tile's, with which nothing is staged.
TEST(attention_mma_faults, every_barrier_of_halves_that_overlap) {
  problem<bfloat16> p(1, 1, 128, 130, 64, 64);
  p.v.view()(0, 0, 67, 0) = bfloat16(std::numeric_limits<float>::infinity());
  const auto run = attends(p);
  constexpr int looked = looks * barriers_of_look, of_tile = 2, once = 1 + 3 * of_tile, outcome = 1, of_row = 1;
  constexpr int again = looked + once + outcome;
  EXPECT_EQ(each_is_caught(fault::skip_barrier, run, 0, looked + 1), again + once + 2 * of_row + outcome + 1);
  each_is_caught(fault::skip_barrier, run, looked + 2, looked + 1 + 2 * of_tile);
  each_is_caught(fault::skip_barrier, run, again - outcome, again + 1);
  each_is_caught(fault::skip_barrier, run, again + 2, again + 1 + 2 * of_tile + 2 * of_row);
}

TEST(attention_mma_faults, every_wait) {  // for copies, each half's scores, and O, of three tiles
  for (const int halves : {1, 2}) {
    const auto run = attends<bfloat16>({1, 1, 64 * halves, 130, 64, 64 * halves});
    const int of_tile = 1 + halves + 1, before_last = 2 * of_tile - 1;  // that O is waited for with the last tile's scores
    EXPECT_EQ(each_is_caught(fault::skip_wait, run, 0, before_last), 3 * of_tile);
    each_is_caught(fault::skip_wait, run, before_last + 1);
  }
  // Of 64 columns halves overlap: each waits for the other's O and for its own scores. Before the first weights nothing runs
  // beside them, and after the last nothing is staged, and scores are for nobody.
  const auto run = attends<bfloat16>({1, 1, 128, 130, 64, 64});
  constexpr int begin = 2, of_tile = 2 * 2 + 1, staged_last = begin + 3 * of_tile - 2;
  EXPECT_EQ(each_is_caught(fault::skip_wait, run, 0, begin), begin + 3 * of_tile + 1);
  each_is_caught(fault::skip_wait, run, begin + 1, staged_last);
  each_is_caught(fault::skip_wait, run, staged_last + 2);
}

TEST(attention_mma_faults, every_product_and_shuffle) {  // of one tile that every product is needed for
  constexpr int before = looks * shuffles_of_look;
  EXPECT_EQ(each_is_caught(fault::shift_shuffle, attends<bfloat16>({1, 1, 64, 64, 64, 64}), before),
            before + 4 * (1 + 4 + 8) + 2 + 4 * (4 + 8) + 2);
  // of floats, three times as many, and half as deep: of O's those of eight keys
  EXPECT_EQ(each_is_caught(fault::shift_shuffle, attends<float>({1, 1, 64, 64, 8, 64}), before, before + 24 + 4 + 24),
            before + 24 + 4 + 8 * 8 * 3);
}

/// Every row sees every key, with scores of its own.
struct by_query {
  constexpr float operator()(float s, index, index, index query, index) const {
    return s + 0.05f * static_cast<float>(query % 7) * s;
  }
};

TEST(attention_mma_faults, every_index_of_shared_memory) {
  constexpr int before = looks * gets_of_look;
  // Queries' places, matrices of q and k, rows, matrices of v; and what is put, from eight columns a thread.
  const auto of_16_bits = attends<bfloat16>({1, 1, 64, 64, 64, 64}, by_query{});
  EXPECT_EQ(each_is_caught(fault::shift_get, of_16_bits, before), before + 4 + 4 * (1 + 4) + 2 + 16 + 4 * (1 + 4));
  EXPECT_EQ(each_is_caught(fault::shift_set, of_16_bits), looks * sets_of_look + 3 * 4 + 2 + 2 * 8);
  // Of halves that overlap the second of two tiles; its last scores are for nobody.
  const auto of_halves = attends<bfloat16>({1, 1, 128, 128, 64, 64}, by_query{});
  constexpr int scores = 4 * (1 + 4), values = 16, of_half = 2 + scores + values, put = 2 * 4 * (1 + 4);
  constexpr int second = before + 2 * 4 + scores + 2 * of_half, end = second + 2 * of_half;
  EXPECT_EQ(each_is_caught(fault::shift_get, of_halves, second, end - values - scores), end + put);
  each_is_caught(fault::shift_get, of_halves, end - values);
  constexpr int looked = looks * sets_of_look;
  EXPECT_EQ(each_is_caught(fault::shift_set, of_halves, looked), looked + 2 * (4 + 2 * 4 + 2 + 2 * 8));
  // Of floats fragments are read one by one: two rows' places, k, and two panels of v, of which only one has columns.
  const auto of_float = attends<float>({1, 1, 64, 64, 8, 32}, by_query{});
  constexpr int needed = before + 2 + 8 + 2 + 8 * 4;
  EXPECT_EQ(each_is_caught(fault::shift_get, of_float, before, needed), needed + 8 * 4);
  EXPECT_EQ(each_is_caught(fault::shift_set, of_float), looks * sets_of_look + 8 + 2 * 8);
}

}  // namespace
