// SPDX-License-Identifier: Apache-2.0
// A test of the tests: breaks every operation of a kernel in turn. It also finds operations that nothing needs.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "emulator.hpp"

namespace emulated {

/// Breaks every operation of a kind in turn, from the first on, or those in [from, until), as the busiest thread counts
/// them; by every warp, or by one. `run` says whether all is well. Returns how many there were.
inline int each_is_caught(fault::kind what, const std::function<bool(machine&)>& run, int from = 0, int until = 1 << 20,
                          int warp = -1) {
  machine whole(schedule::forward, 1, {fault::none, 0, warp});
  EXPECT_TRUE(run(whole));
  const int count = whole.operations(what);
  for (int which = from; which < std::min(count, until); ++which) {
    machine broken(schedule::random, 3, {what, which, warp});
    bool caught = false;
    try {
      caught = !run(broken);
    } catch (const broken_kernel&) {
      caught = true;
    }
    EXPECT_TRUE(caught) << "operation " << which << " of " << count << ", of kind " << what << ", by warp " << warp;
  }
  return count;
}
inline int each_is_caught_of(int warp, fault::kind what, const std::function<bool(machine&)>& run, int until = 1 << 20) {
  return each_is_caught(what, run, 0, until, warp);
}

}  // namespace emulated
