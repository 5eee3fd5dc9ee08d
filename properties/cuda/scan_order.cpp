// SPDX-License-Identifier: Apache-2.0
// The device scans evaluate the contract's tree: every prefix, around every edge, for every rule, out of place and in
// place, of one range, of rows and of segments; and a scan with any one operation broken is caught.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "../order/digest.hpp"
#include "../order/scans.hpp"
#include "faults.hpp"
#include "folds.hpp"
#include "six_sums.hpp"
#include "regroup/monoids/affine.hpp"
#include "regroup/monoids/log_sum_exp.hpp"
#include "regroup/monoids/moments.hpp"
#include "regroup/scan.hpp"

namespace {

using emulated::fault;
using emulated::machine;
using emulated::scan;
using emulated::schedule;
using order::rule;
using order::word;
using regroup::index;
using regroup::scan_kind;

constexpr std::int64_t tile = regroup::tile_elements;

template <class Y>
auto row_to(std::vector<Y>& ys, std::int64_t count = 1) {
  const auto n = static_cast<std::int64_t>(ys.size()) / count;
  return regroup::cuda::row_batch<Y>{ys.data(), count, n, n, 1};
}

template <rule Rule, class State>
void expect_scans(machine& on, std::int64_t n, const std::string& where) {
  const auto& [xs, inclusive, exclusive] = order::scans_of(n);
  const order::hashed<Rule, State> m;
  std::vector<word> ys(xs.size(), 99);
  scan<scan_kind::inclusive>(on, m, emulated::one_row(xs), row_to(ys));
  ASSERT_TRUE(ys == inclusive) << where;
  std::fill(ys.begin(), ys.end(), 99);
  scan<scan_kind::exclusive>(on, m, emulated::one_row(xs), row_to(ys));
  ASSERT_TRUE(ys == exclusive) << where << ", exclusive";
  ys = xs;
  scan<scan_kind::inclusive>(on, m, emulated::one_row(ys), row_to(ys));
  ASSERT_TRUE(ys == inclusive) << where << ", in place";
  ys = xs;
  scan<scan_kind::exclusive>(on, m, emulated::one_row(ys), row_to(ys));
  ASSERT_TRUE(ys == exclusive) << where << ", exclusive in place";
}

template <rule Rule, class State>
void every_edge() {
  for (const std::int64_t n : order::edges()) {
    if (n > (order::small() ? 2 : 20) * tile + 1) continue;
    for (auto [name, on] : emulated::machines(n)) {
      expect_scans<Rule, State>(on, n, name + ", n = " + std::to_string(n));
      if (testing::Test::HasFatalFailure()) return;
      if (n > 3 * tile) break;  // one schedule will do
    }
  }
}

/// The bits of `seq` for rows of real numbers, inclusive and exclusive.
template <class M, class X>
void expect_the_bits_of_seq(const M& m, const std::vector<X>& xs, std::int64_t count) {
  const auto n = static_cast<std::int64_t>(xs.size()) / count;
  using answer = regroup::answer_of<M>;
  const auto check = [&]<scan_kind Kind>(std::integral_constant<scan_kind, Kind>, const auto& verb) {
    std::vector<answer> expected(xs.size());
    std::vector<answer> ys(xs.size());
    verb(regroup::view<const X>(xs.data(), {count, n}), regroup::view<answer>(expected.data(), {count, n}));
    for (auto [name, on] : emulated::machines(n, false)) {
      scan<Kind>(on, m, emulated::rows_of(xs, count), row_to(ys, count));
      for (std::size_t i = 0; i < xs.size(); ++i) {
        ASSERT_EQ(order::digest_of(ys[i]), order::digest_of(expected[i]))
            << name << ", " << count << " rows of " << n << " at " << i;
      }
    }
  };
  check(std::integral_constant<scan_kind, scan_kind::inclusive>{},
        [&](auto x, auto y) { regroup::inclusive_scan_rows(regroup::seq, x, y, m); });
  check(std::integral_constant<scan_kind, scan_kind::exclusive>{},
        [&](auto x, auto y) { regroup::exclusive_scan_rows(regroup::seq, x, y, m); });
}

/// Scans rows in place with one block, against the trees; with teams of `short_team` threads where that is not 0.
template <scan_kind Kind>
std::function<bool(machine&)> scans(std::int64_t rows, std::int64_t n, int short_team = 0) {
  return [=](machine& on) {
    const auto& [xs, inclusive, exclusive] = order::scans_of(n);
    std::vector<word> ys;
    for (std::int64_t r = 0; r < rows; ++r) ys.insert(ys.end(), xs.begin(), xs.end());
    const order::hashed<rule::pieces> m;
    const auto batch = emulated::rows_of(ys, rows);
    auto plan = regroup::cuda::plan_scan(lengths_of(batch));
    if (short_team != 0) plan = {.short_team = short_team, .shortest = n, .has_long = false, .levels = 0};
    const emulated::device_memory<std::byte> workspace(emulated::scan_bytes<Kind, word>(plan, batch), std::byte{0x5a});
    regroup::cuda::launch_scan<Kind>([&](const auto& kernel, std::int64_t) { on.run(kernel, 1); }, plan, m, batch,
                                     row_to(ys, rows), workspace.data());
    for (std::int64_t r = 0; r < rows; ++r) {
      const auto& expected = Kind == scan_kind::inclusive ? inclusive : exclusive;
      if (!std::equal(expected.begin(), expected.end(), ys.begin() + r * n)) return false;
    }
    return true;
  };
}

/// What comes before every lane of a row of tiles, whose lanes' totals are elements.
struct chained_lanes {
  index tiles;
  regroup::cuda::handed_on<word> on;
  word* before;
  template <regroup::cuda::block Block>
  constexpr void operator()(Block& b) const {
    regroup::cuda::team<regroup::cuda::block_threads, Block> of(b);
    for (index t = 0; t < tiles; ++t) {
      const index lane = 128 * t + of.rank();
      before[lane] = chained_before(order::hashed<rule::pieces>{}, of, order::element(lane), t, t + 1 < tiles, on);
      b.barrier();
    }
  }
};
/// A row of 67 tiles, by one block: totals and nodes of 32 and 64 tiles are handed on.
bool hands_on(machine& on) {
  constexpr std::size_t tiles = 67;
  const order::hashed<rule::pieces> m;
  const emulated::device_memory<regroup::cuda::handed<word>> places(tiles + 3, {0, 0});
  std::vector<word> before(128 * tiles);
  on.run(chained_lanes{tiles, {places.data(), places.data() + tiles}, before.data()}, 1);
  std::vector<word> totals;
  for (std::size_t t = 0; t < tiles; ++t) {
    std::vector<word> p(128);  // Kogge and Stone's
    for (std::size_t j = 0; j < 128; ++j) p[j] = order::element(static_cast<std::int64_t>(128 * t + j));
    for (std::size_t d = 1; d < 128; d *= 2) {
      for (std::size_t j = 127; j >= d; --j) p[j] = m(p[j - d], p[j]);
    }
    for (std::size_t j = 0; j < 128; ++j) {
      word expected = j == 0 ? m.identity() : p[j - 1];
      if (t > 0) {
        const word carry = *reference::perfect(m, order::operands({totals.begin(), totals.end()}));
        expected = j == 0 ? carry : m(carry, expected);
      }
      if (before[128 * t + j] != expected) return false;
    }
    totals.push_back(p[127]);
  }
  return true;
}

/// Two rows of 129 tiles: their totals become nodes, by one block.
bool joins_totals(machine& on) {
  const std::int64_t n = 129 * tile;
  const order::hashed<rule::pieces> m;
  const regroup::cuda::row_batch<const word> rows{nullptr, 2, n, n, 1};
  std::vector<word> nodes;
  for (std::int64_t t = 0; t < 2 * 129; ++t) nodes.push_back(order::element(t));
  const std::vector<word> totals = nodes;
  on.run(regroup::cuda::scan_nodes<order::hashed<rule::pieces>, regroup::cuda::row_batch<const word>>{m, rows, 1,
                                                                                                    nodes.data()},
         1);
  for (std::ptrdiff_t r = 0; r < 2; ++r) {
    for (std::ptrdiff_t t = 1; t <= 128; ++t) {
      const auto first = totals.begin() + 129 * r;
      const auto carry = regroup::cuda::carry_into(m, nodes.data() + 129 * r, t);
      if (carry != *reference::perfect(m, order::operands({first, first + t}))) return false;
    }
  }
  return true;
}

}  // namespace

TEST(scan_order, contiguous_pieces) { every_edge<rule::pieces, word>(); }
TEST(scan_order, declared_commutative) { every_edge<rule::striped, order::aggregate>(); }
TEST(scan_order, a_tile_lift_never_enters) { every_edge<rule::tile, word>(); }

TEST(scan_order, carries_over_two_levels_of_nodes) {
  if (order::small()) GTEST_SKIP() << "131 tiles";
  machine on;
  expect_scans<rule::pieces, word>(on, 131 * tile + 5, "131 tiles");
}

TEST(scan_order, rows_of_every_length) {
  using order::kind;
  for (const std::int64_t n : {1, 2, 31, 33, 100, 128, 129, 1000, 1024, 1025, 4096, 4097, 13'000}) {
    const std::int64_t count = n < 200 ? 37 : 3;
    const auto xs = order::numbers<float>(kind::special, n * count, static_cast<std::uint64_t>(n));
    if (order::small() && n > 5000) return;
    expect_the_bits_of_seq(regroup::plus<double>{}, xs, count);  // answers wider than elements
    expect_the_bits_of_seq(regroup::log_sum_exp<float>{}, xs, count);
    std::vector<regroup::affine_map<float>> maps;
    std::vector<regroup::bfloat16> halves;
    for (const float x : xs) {
      maps.push_back({x * 0.125f, 1 - x});
      halves.push_back(regroup::bfloat16(x));
    }
    expect_the_bits_of_seq(regroup::affine<float>{}, maps, count);
    expect_the_bits_of_seq(regroup::moments<float>{}, halves, count);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(scan_order, rows_of_a_tile_share_a_block) {
  for (const std::int64_t n : {1025, 2000, 4096}) {
    const auto& [row, inclusive, exclusive] = order::scans_of(n);
    std::vector<word> xs;
    for (int r = 0; r < 3; ++r) xs.insert(xs.end(), row.begin(), row.end());
    for (auto [name, on] : emulated::machines()) {
      std::vector<word> ys(xs.size());
      scan<scan_kind::inclusive>(on, order::hashed<rule::pieces>{}, emulated::rows_of(xs, 3), row_to(ys, 3), 1);
      for (int r = 0; r < 3; ++r) ASSERT_TRUE(std::equal(inclusive.begin(), inclusive.end(), ys.begin() + r * n)) << name << n;
      scan<scan_kind::exclusive>(on, order::hashed<rule::pieces>{}, emulated::rows_of(xs, 3), row_to(ys, 3), 1);
      for (int r = 0; r < 3; ++r) ASSERT_TRUE(std::equal(exclusive.begin(), exclusive.end(), ys.begin() + r * n)) << name << n;
    }
  }
}

TEST(scan_order, segments_of_any_mix) {
  order::dice random(6);
  for (const std::int64_t typical : {4, 600}) {
    std::vector<int> offsets = {0};
    for (int s = 0; s < 40; ++s) {
      const std::int64_t most = random(0, 9) == 0 ? 3 * tile : 2 * typical;
      offsets.push_back(offsets.back() + static_cast<int>(random(0, 4) == 0 ? 0 : random(1, most)));
    }
    const auto xs = order::elements(offsets.back());
    std::vector<word> ys(xs.size(), 99);
    using batch = regroup::cuda::segment_batch<const word, int>;
    const batch in{xs.data(), offsets.data(), 40, offsets.back()};
    std::int64_t most_blocks = 1;  // which look at every place each; then 2 and 3 that share them
    for (auto [name, on] : emulated::machines(0)) {
      std::fill(ys.begin(), ys.end(), 99);
      scan<scan_kind::exclusive>(on, order::hashed<rule::striped>{}, in,
                                 regroup::cuda::segment_batch<word, int>{ys.data(), offsets.data(), 40, offsets.back()},
                                 most_blocks++);
      for (std::size_t s = 0; s < 40; ++s) {
        const std::vector<word> segment(xs.begin() + offsets[s], xs.begin() + offsets[s + 1]);
        const std::vector<word> got(ys.begin() + offsets[s], ys.begin() + offsets[s + 1]);
        ASSERT_TRUE(got == order::expected_exclusive(segment)) << name << ", segment " << s << " of " << segment.size();
      }
    }
  }
}

TEST(scan_order, segments_into_states_as_large_as_there_are) {
  const std::vector<int> offsets = {0, 3, 3, 900, 5100, 5101};
  std::vector<double> xs(static_cast<std::size_t>(offsets.back()));
  for (std::size_t i = 0; i < xs.size(); ++i) xs[i] = static_cast<double>(i % 97) * 0.37 - 11;
  std::vector<six_sums::state> expected(xs.size()), ys(xs.size());
  regroup::inclusive_scan_segments(regroup::seq, xs, offsets, expected, six_sums{});
  for (auto [name, on] : emulated::machines(0)) {
    const regroup::cuda::segment_batch<const double, int> in{xs.data(), offsets.data(), 5, offsets.back()};
    const regroup::cuda::segment_batch<six_sums::state, int> out{ys.data(), offsets.data(), 5, offsets.back()};
    scan<scan_kind::inclusive>(on, six_sums{}, in, out);
    ASSERT_TRUE(ys == expected) << name;
  }
  regroup::exclusive_scan(regroup::seq, xs, expected, six_sums{});
  for (auto [name, on] : emulated::machines(0)) {
    scan<scan_kind::exclusive>(on, six_sums{}, emulated::rows_of(xs, 1), row_to(ys, 1));
    ASSERT_TRUE(ys == expected) << name;
  }
}

TEST(scan_faults, every_operation) {
  const auto tile_by_tile = scans<scan_kind::exclusive>(1, tile + 4000);
  const auto by_warps = scans<scan_kind::exclusive>(5, 1024);
  const auto by_four = scans<scan_kind::inclusive>(33, 128, 4);
  const auto by_blocks = scans<scan_kind::inclusive>(2, 1500);
  for (const auto& run : {tile_by_tile, by_warps, by_four, by_blocks, std::function<bool(machine&)>(joins_totals)}) {
    EXPECT_GT(emulated::each_is_caught(fault::skip_barrier, run), 1);
  }
  EXPECT_GT(emulated::each_is_caught(fault::shift_shuffle, by_warps), 5);
  EXPECT_GT(emulated::each_is_caught(fault::shift_shuffle, by_four), 2);
  EXPECT_GT(emulated::each_is_caught(fault::shift_shuffle, joins_totals), 4);
  if (order::small()) return;  // some hundred scans
  machine whole;
  EXPECT_TRUE(hands_on(whole));
  const int shuffles = whole.operations(fault::shift_shuffle);
  EXPECT_GT(emulated::each_is_caught(fault::shift_shuffle, hands_on, 0, 40), 60 * 23);
  EXPECT_GT(emulated::each_is_caught(fault::shift_shuffle, hands_on, shuffles - 4 * 23 - 6), 60 * 23);  // from tile 63 on
  for (const auto what : {fault::shift_get, fault::shift_set}) {
    EXPECT_GT(emulated::each_is_caught(what, by_warps), 60);
    EXPECT_GT(emulated::each_is_caught(what, by_four, 0, 31), 60);
    EXPECT_GT(emulated::each_is_caught(what, by_four, 32, 96), 60);  // 31 is the last of what a total nobody reads needs
    EXPECT_GT(emulated::each_is_caught(what, tile_by_tile), 60);
    EXPECT_GT(emulated::each_is_caught(what, joins_totals), 0);
  }
}
