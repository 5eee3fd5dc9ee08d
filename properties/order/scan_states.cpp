// SPDX-License-Identifier: Apache-2.0
// Scans whose states are not numbers: an aggregate, and a class that cannot be taken apart.
#include "scans.hpp"

TEST(scan_states, aggregates) { order::expect_scans_at_every_edge<order::hashed<order::rule::striped, order::aggregate>>(); }
TEST(scan_states, opaque) { order::expect_scans_at_every_edge<order::hashed<order::rule::pieces, order::opaque>>(); }
TEST(scan_states, opaque_declared_commutative) {
  order::expect_scans_at_every_edge<order::hashed<order::rule::striped, order::opaque>>();
}
