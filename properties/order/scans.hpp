// SPDX-License-Identifier: Apache-2.0
// What the tests of the scans share: both scans of one input, by some executors, out of place and in place.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cases.hpp"
#include "recorder.hpp"
#include "regroup/scan.hpp"

namespace order {

struct scans {
  std::vector<word> xs, inclusive, exclusive;
};

/// n elements and what their scans must write, computed once.
inline const scans& scans_of(std::int64_t n) {
  static std::map<std::int64_t, scans> known;
  const auto found = known.find(n);
  if (found != known.end()) return found->second;
  const auto xs = elements(n);
  auto inclusive = expected_inclusive(xs);
  auto exclusive = inclusive;
  if (n > 0) {
    exclusive.pop_back();
    exclusive.insert(exclusive.begin(), 0);
  }
  return known[n] = {xs, std::move(inclusive), std::move(exclusive)};
}

template <class M>
void expect_scans(std::int64_t n) {
  const auto& [xs, inclusive, exclusive] = scans_of(n);
  const M m;
  const auto check = [&, &xs = xs, &inclusive = inclusive, &exclusive = exclusive](const auto& ex,
                                                                                   const std::string& name) {
    const std::string where = name + ", n = " + std::to_string(n);
    std::vector<word> ys(xs.size(), 99);
    regroup::inclusive_scan(ex, xs, ys, m);
    EXPECT_TRUE(ys == inclusive) << where;
    std::fill(ys.begin(), ys.end(), 99);
    regroup::exclusive_scan(ex, xs, ys, m);
    EXPECT_TRUE(ys == exclusive) << where << ", exclusive";
    ys = xs;
    regroup::inclusive_scan(ex, ys, ys, m);
    EXPECT_TRUE(ys == inclusive) << where << ", in place";
    ys = xs;
    regroup::exclusive_scan(ex, ys, ys, m);
    EXPECT_TRUE(ys == exclusive) << where << ", exclusive in place";
  };
  for_some_executors(check);
}

template <class M>
void expect_scans_at_every_edge() {
  for (const std::int64_t n : edges()) {
    expect_scans<M>(n);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace order
