// SPDX-License-Identifier: Apache-2.0
// n elements cost n - 1 combines and n lifts: absent operands are skipped, not combined with an identity. Only some of
// the pieces that vectors fold side by side are folded twice, where the last vector would lack some.
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "cases.hpp"
#include "recorder.hpp"
#include "regroup/reduce.hpp"
#include "regroup/stream.hpp"

namespace {

std::atomic<int> lifts = 0;
std::atomic<int> combines = 0;

struct boxed {
  std::vector<int> sum;
};

template <bool Commutative>
struct counting {
  static constexpr bool is_commutative = Commutative;
  boxed identity() const { return {}; }
  boxed lift(int x) const {
    ++lifts;
    return {{x}};
  }
  boxed operator()(const boxed& a, const boxed& b) const {
    ++combines;
    if (a.sum.empty()) return b;
    if (b.sum.empty()) return a;
    return {{a.sum[0] + b.sum[0]}};
  }
  int lower(const boxed& s) const { return s.sum.empty() ? 0 : s.sum[0]; }
};

/// Numbers folded in an array of states, counted as well.
template <bool Commutative>
struct counting_numbers {
  static constexpr bool is_commutative = Commutative;
  int identity() const { return 0; }
  int lift(int x) const {
    ++lifts;
    return x;
  }
  int operator()(int a, int b) const {
    ++combines;
    return a + b;
  }
};

template <class M>
void costs(const M& m, const int twice = 0) {
  for (const int n : {0, 1, 2, 37, 127, 128, 129, 4096, 4097, 9000}) {
    const std::vector<int> xs(static_cast<std::size_t>(n), 1);
    lifts = combines = 0;
    EXPECT_EQ(regroup::reduce(regroup::seq, xs, m), n);
    const auto expect_costs = [&](int of, int least) { EXPECT_TRUE(least <= of && of <= least + twice) << n << ": " << of; };
    expect_costs(lifts, n);
    expect_costs(combines, std::max(0, n - 1));
  }
}

}  // namespace

TEST(counting, contiguous_pieces) { costs(counting<false>{}); }
TEST(counting, striped_lanes) { costs(counting<true>{}); }
TEST(counting, contiguous_pieces_of_numbers) {
  constexpr int piece = regroup::tile_elements / regroup::lanes, of_a_vector = 8;
  costs(counting_numbers<false>{}, (of_a_vector - 1) * piece);
}
TEST(counting, striped_numbers) { costs(counting_numbers<true>{}); }

TEST(counting, a_row_of_37_costs_36_combines) {
  const std::vector<int> xs(37 * 10, 1);
  std::vector<int> out(10);
  lifts = combines = 0;
  regroup::reduce_rows(regroup::par, regroup::view<const int>(xs.data(), {10, 37}), out, counting<true>{});
  EXPECT_EQ(out, std::vector<int>(10, 37));
  EXPECT_EQ(combines, 360);
  combines = 0;
  regroup::reduce_rows(regroup::par, regroup::view<const int>(xs.data(), {10, 37}), out, counting_numbers<true>{});
  EXPECT_EQ(combines, 360);
}

TEST(counting, a_stream_lifts_each_element_once_when_it_holds_its_tile) {
  const std::vector<int> xs(9000, 1);
  regroup::accumulator acc{counting<true>{}};
  lifts = combines = 0;
  for (const int x : xs) acc.push_one(x);
  EXPECT_EQ(acc.value(), 9000);
  EXPECT_EQ(lifts, 9000);
  EXPECT_EQ(combines, 8999);
}
