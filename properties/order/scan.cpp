// SPDX-License-Identifier: Apache-2.0
// Both scans at every edge of the order: every prefix has the contract's tree, which for every monoid is that of contiguous
// pieces; also in place.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scans.hpp"

TEST(scan, contiguous_pieces) { order::expect_scans_at_every_edge<order::hashed<order::rule::pieces>>(); }

namespace {
/// Integers combine quickly, and in squares, unless they say otherwise.
struct slow : order::hashed<order::rule::pieces> {
  static constexpr bool is_quick = false;
};
}  // namespace
TEST(scan, by_lanes) { order::expect_scans_at_every_edge<slow>(); }
TEST(scan, declared_commutative) { order::expect_scans_at_every_edge<order::hashed<order::rule::striped>>(); }
TEST(scan, a_tile_lift_never_enters) { order::expect_scans_at_every_edge<order::hashed<order::rule::tile>>(); }

TEST(scan, every_short_length) {
  for (std::int64_t n = 0; n <= 300; ++n) order::expect_scans<order::hashed<order::rule::striped, order::word>>(n);
}
