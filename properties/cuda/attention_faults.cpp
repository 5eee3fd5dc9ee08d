// SPDX-License-Identifier: Apache-2.0
// A test of the tests: attention with any one barrier left out, or any one shuffle or index of shared memory one place off,
// is caught, by the emulator or by wrong bits.
#include <gtest/gtest.h>

#include <functional>

#include "attentions.hpp"
#include "faults.hpp"

namespace {

using cases::tensor;
using emulated::each_is_caught;
using emulated::fault;
using emulated::machine;
using emulated::on_device;
using regroup::index;
namespace cuda = regroup::cuda;

struct problem {
  tensor<float> q, k, v;
};
problem normal(index batches, index rows, index keys, index d, index dv) {
  return {cases::normal<float>({batches, 1, rows, d}, 1), cases::normal<float>({batches, 1, keys, d}, 2),
          cases::normal<float>({batches, 1, keys, dv}, 3)};
}

/// Attention by so many blocks at most, against the host.
template <class Mask = regroup::no_mask>
std::function<bool(machine&)> attends(const problem& p, index most_blocks, const Mask& mask = {}) {
  const auto expected = emulated::on_the_host<float>(p.q.view(), regroup::dense(p.k.view(), p.v.view()), {.mask = mask});
  return [=](machine& on) {
    const auto got = emulated::attend<float>(on, p.q.view(), cuda::dense(on_device(p.k), on_device(p.v)),
                                             cuda::attention_options<Mask>{.mask = mask}, 1, most_blocks);
    return static_cast<bool>(same_bits(got, expected));
  };
}

/// Each of 8 rows sees one tile of 64 keys, and no two rows of a warp, or of neighbours, can stand for each other.
struct one_tile_each {
  [[nodiscard]] constexpr regroup::key_range range(index, index, index query) const {
    const index tile = query % 2 * 4 + query / 2;
    return {64 * tile, 64 * tile + 64};
  }
};
/// Every row sees every key, with a score of its own.
struct by_query {
  template <class Real>
  constexpr Real operator()(Real s, index, index, index query, index) const {
    return s * static_cast<Real>(query + 1);
  }
};

TEST(attention_faults, every_barrier) {  // three places in turn, two tiles, two panels of columns
  EXPECT_EQ(each_is_caught(fault::skip_barrier, attends(normal(3, 8, 66, 33, 3), 1)), 3 * (1 + 2 * (1 + 2 + 1)));
}

TEST(attention_faults, every_shuffle) {  // the largest score stands where one step of the reduction alone can lose it
  problem p = normal(6, 8, 64, 1, 2);
  for (float& x : p.q.values) x = 1;
  for (index b = 0; b < 6; ++b) p.k.view()(b, 0, b == 5 ? 0 : 2 * (16 >> b), 0) = 9;
  EXPECT_EQ(each_is_caught(fault::shift_shuffle, attends(p, 6)), 2 * 6);
}

TEST(attention_faults, every_index_of_shared_memory) {
  if (order::small()) GTEST_SKIP() << "some hundred kernels";
  // The first of a thread's reads tell it which keys its rows see, the others what they hold.
  EXPECT_GT(each_is_caught(fault::shift_get, attends(normal(1, 8, 512, 1, 1), 1, one_tile_each{}), 0, 8), 8);
  EXPECT_GT(each_is_caught(fault::shift_get, attends(normal(1, 8, 64, 5, 2), 1, by_query{}), 8), 140);
  EXPECT_EQ(each_is_caught(fault::shift_set, attends(normal(1, 8, 64, 5, 2), 1, by_query{})), 1 + 1 + 1 + 4 + 2);
}

}  // namespace
