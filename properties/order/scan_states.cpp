// SPDX-License-Identifier: Apache-2.0
// The scans of states that are not numbers: an aggregate, and a class that nothing takes apart.
#include "scans.hpp"

TEST(scan_states, aggregates) { order::expect_scans_at_every_edge<order::hashed<order::rule::striped, order::aggregate>>(); }
TEST(scan_states, opaque) { order::expect_scans_at_every_edge<order::hashed<order::rule::pieces, order::opaque>>(); }
TEST(scan_states, opaque_declared_commutative) {
  order::expect_scans_at_every_edge<order::hashed<order::rule::striped, order::opaque>>();
}
