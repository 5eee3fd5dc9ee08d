// SPDX-License-Identifier: Apache-2.0
// Attention whose keys lie on many ranks: every rank gets the merged state, which is that of all keys within the error bound.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "parts.hpp"
#include "regroup/mpi/attention.hpp"
#include "regroup/regroup.hpp"

namespace ranks_test {
namespace {

using regroup::attention_state;
using regroup::view;

std::vector<float> waves(index n, float pace) {
  std::vector<float> x;
  for (index i = 0; i < n; ++i) x.push_back(std::sin(static_cast<float>(i) * pace));
  return x;
}

TEST(attention, keys_on_ranks) {
  constexpr index heads = 2, queries = 3, d = 8;
  order::dice random(41);
  const auto q = waves(heads * queries * d, 1.3f);
  for (const index keys : {1, 50, 3000}) {
    const auto k = waves(keys * d, 0.7f), v = waves(keys * d, 0.11f);
    const view<const float> vq(q.data(), {heads, queries, d});
    const auto dense = [&](index first, index count) {
      const auto part = [&](const std::vector<float>& x) { return view<const float>(x.data() + first * d, {1, count, d}); };
      return regroup::dense(part(k), part(v));
    };
    const auto [first, count] = mine(cuts(keys, random));
    std::vector<float> expected(q.size()), got(q.size());
    regroup::attention(regroup::seq, vq, dense(0, keys), view(expected.data(), vq.extents()));
    for (const bool skips_nothing : {true, false}) {  // a rank without keys may bring nothing at all
      auto mine = count == 0 && !skips_nothing ? attention_state<float>()
                                               : attention_state<float>(all().local(), vq, dense(first, count));
      regroup::mpi::merge(all(), std::move(mine)).normalise(view(got.data(), vq.extents()));
      for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 2e-6f) << keys << " keys";
      // Everybody has the same bits: the least and the greatest are one.
      std::vector<std::int32_t> bits(got.size()), least(got.size()), greatest(got.size());
      std::ranges::transform(got, bits.begin(), [](float x) { return std::bit_cast<std::int32_t>(x); });
      const view<const std::int32_t> rows(bits.data(), {static_cast<index>(bits.size()), 1});
      regroup::reduce_rows(all(), rows, least, regroup::minimum<std::int32_t>{});
      regroup::reduce_rows(all(), rows, greatest, regroup::maximum<std::int32_t>{});
      EXPECT_EQ(least, greatest);
    }
  }
}

TEST(attention, other_queries) {
  if (all().size() == 1) return;
  try {
    (void)regroup::mpi::merge(all(), attention_state<float>({1, all().rank() == 1 ? 3 : 2}, 4));
    FAIL() << "nothing was thrown";
  } catch (const regroup::shape_error&) {
    EXPECT_EQ(all().rank(), 0);
  } catch (const regroup::mpi::error&) {
    EXPECT_NE(all().rank(), 0);
  }
}

}  // namespace
}  // namespace ranks_test
