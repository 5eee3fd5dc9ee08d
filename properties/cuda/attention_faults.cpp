// SPDX-License-Identifier: Apache-2.0
// A test of the tests: attention with any one barrier left out, or any one shuffle or index of shared memory one place off,
// is caught, by the emulator or by wrong bits.
#include <gtest/gtest.h>

#include <functional>
#include <utility>

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

/// Attention by so many blocks, or fewer, against the host; or by one that has all keys of a row.
template <class Mask = regroup::no_mask>
std::function<bool(machine&)> attends(const problem& p, int blocks, const Mask& mask = {}, bool in_parts = true) {
  const auto expected = emulated::on_the_host<float>(p.q.view(), regroup::dense(p.k.view(), p.v.view()), {.mask = mask});
  return [=](machine& on) {
    const auto got = emulated::attend<float>(on, p.q.view(), cuda::dense(on_device(p.k), on_device(p.v)),
                                             cuda::attention_options<Mask>{.mask = mask}, in_parts ? blocks : 0, blocks);
    return static_cast<bool>(same_bits(got, expected));
  };
}

/// The same of keys in one page.
template <class Mask>
std::function<bool(machine&)> attends_page(const problem& p, const Mask& mask) {
  const auto expected = emulated::on_the_host<float>(p.q.view(), regroup::dense(p.k.view(), p.v.view()), {.mask = mask});
  return [=](machine& on) {
    static constexpr int table[] = {0};
    const auto keys = cuda::paged(on_device(p.k), on_device(p.v), cuda::device_view<const int>(table, {1, 1}));
    const auto got = emulated::attend<float>(on, p.q.view(), keys, cuda::attention_options<Mask>{.mask = mask});
    return static_cast<bool>(same_bits(got, expected));
  };
}

/// Each of 8 rows sees 64 keys that no other sees, so many apart, and no two rows of a warp, or of neighbours, can stand for
/// each other. `turned` says which of them are the first.
struct own_keys {
  index apart = 64, turned = 0;
  [[nodiscard]] constexpr regroup::key_range range(index, index, index query) const {
    const index tile = (query % 2 * 4 + query / 2 + turned) % 8;
    return {apart * tile, apart * tile + 64};
  }
};
/// Every row sees every key, with a score of its own.
struct by_query {
  template <class Real>
  constexpr Real operator()(Real s, index, index, index query, index) const {
    return s * static_cast<Real>(query + 1);
  }
};

// A block looks at what its rows see of all keys, which says which leaves they need, and then at what they see of each.
constexpr int looks = 2, leaf_keys = 1024;

TEST(attention_faults, every_barrier) {  // three places in turn, two of each look, two tiles, two panels of columns, weights
  EXPECT_EQ(each_is_caught(fault::skip_barrier, attends(normal(3, 8, 66, 33, 3), 1)), 3 * (looks * 2 + 2 * (2 + 1)));
  EXPECT_EQ(each_is_caught(fault::skip_barrier, attends_page(normal(1, 8, 66, 33, 3), by_query{})),
            looks * 2 + 2 * (1 + 2 + 1));
}

TEST(attention_faults, every_operation_of_tickets) {  // the last of each of three places
  const auto run = attends(normal(3, 8, 64, 1, 1), 1, regroup::no_mask{}, false);
  for (const auto& [what, last] : {std::pair{fault::skip_barrier, looks * 2 + 1 + 1 + 1},
                                   {fault::shift_set, looks * 2 + 1 + 4 + 2 + 1},
                                   {fault::shift_get, looks * (1 + 4) + 1 + 2 + 2 + 2 + 64 + 1}}) {
    EXPECT_EQ(each_is_caught(what, run, 1 << 20), 3 * last);
    for (int place = 1; place <= 3; ++place) each_is_caught(what, run, place * last - 1, place * last);
  }
}

TEST(attention_faults, every_shuffle) {  // the largest score stands where one step of the reduction alone can lose it
  problem p = normal(6, 8, 64, 1, 2);
  for (float& x : p.q.values) x = 1;
  for (index b = 0; b < 6; ++b) p.k.view()(b, 0, b == 5 ? 0 : 2 * (16 >> b), 0) = 9;
  constexpr int of_look = 2;  // of a warp's two rows
  EXPECT_EQ(each_is_caught(fault::shift_shuffle, attends(p, 6), looks * of_look), looks * of_look + 2 * 6);
  each_is_caught(fault::shift_shuffle, attends(normal(1, 8, 8 * leaf_keys, 1, 1), 1, own_keys{leaf_keys}, false), 0, of_look);
  each_is_caught(fault::shift_shuffle, attends(normal(1, 8, 512, 1, 1), 1, own_keys{}), of_look, looks * of_look);
}

TEST(attention_faults, every_index_of_shared_memory) {
  if (order::small()) GTEST_SKIP() << "some hundred kernels";
  constexpr int of_look = 1 + 4;  // a row's keys, and each warp's
  const problem far = normal(1, 8, 8 * leaf_keys, 1, 1), near = normal(1, 8, 512, 1, 1);
  each_is_caught(fault::shift_get, attends(far, 1, own_keys{leaf_keys}, false), 0, 1);
  each_is_caught(fault::shift_get, attends(near, 1, own_keys{}), of_look, of_look + 1);
  for (const auto& [warp, turned] : {std::pair{0, 0}, {1, 2}, {2, 1}, {3, 0}}) {  // whose rows see the first keys, or the last
    const int read = 1 + warp;
    each_is_caught(fault::shift_get, attends(far, 1, own_keys{leaf_keys, turned}, false), read, read + 1);
    each_is_caught(fault::shift_get, attends(near, 1, own_keys{64, turned}), of_look + read, of_look + read + 1);
  }
  const problem p = normal(1, 8, 64, 8, 2);  // two whole quads of columns: past the last all are as it
  EXPECT_GT(each_is_caught(fault::shift_get, attends(p, 1, by_query{}), looks * of_look), looks * of_look + 70);
  EXPECT_GT(each_is_caught(fault::shift_get, attends_page(p, by_query{}), looks * of_look), looks * of_look + 140);
  EXPECT_EQ(each_is_caught(fault::shift_set, attends(p, 1, by_query{})), looks * 2 + 1 + 4 + 2);
  EXPECT_EQ(each_is_caught(fault::shift_set, attends_page(p, by_query{})), looks * 2 + 1 + 1 + 4 + 2);
}

}  // namespace
