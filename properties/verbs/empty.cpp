// SPDX-License-Identifier: Apache-2.0
// Without elements every verb answers lower(identity), or writes nothing.
#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "operators.hpp"
#include "regroup/error.hpp"
#include "regroup/host/par.hpp"
#include "regroup/host/seq.hpp"
#include "regroup/reduce.hpp"
#include "regroup/scan.hpp"
#include "regroup/stream.hpp"

namespace {

/// A sum whose answer for nothing is 42, so that a forgotten lower is seen.
struct plus_42 {
  static constexpr bool is_commutative = true;
  int identity() const { return 0; }
  int operator()(int a, int b) const { return a + b; }
  int lower(int s) const { return s + 42; }
};

template <class F>
void with_executors(const F& f) {
  f(regroup::seq);
  f(regroup::par);
  f(regroup::par.with_threads(7));
}

const std::vector<int> nothing;

}  // namespace

TEST(empty, reduce) {
  with_executors([](const auto& ex) {
    EXPECT_EQ(regroup::reduce(ex, nothing, plus_42{}), 42);
    EXPECT_EQ(regroup::reduce(ex, std::deque<int>{}, plus_42{}), 42);
    EXPECT_EQ(regroup::reduce(ex, regroup::view<const int>(), plus_42{}), 42);
    EXPECT_EQ(regroup::reduce(ex, regroup::generate(0, [](regroup::index) { return 1; }), plus_42{}), 42);
    EXPECT_EQ(regroup::reduce(ex, std::vector<std::string>{}, verbs::join{}), "");
  });
}

TEST(empty, rows_and_axes) {
  with_executors([](const auto& ex) {
    std::vector<int> out(3, 7);
    regroup::reduce_rows(ex, regroup::view<const int>(nothing.data(), {3, 0}), out, plus_42{});
    EXPECT_EQ(out, std::vector<int>(3, 42));
    std::vector<int> none;
    regroup::reduce_rows(ex, regroup::view<const int>(nothing.data(), {0, 3}), none, plus_42{});
    std::fill(out.begin(), out.end(), 7);
    regroup::reduce_axes(ex, regroup::view<const int>(nothing.data(), {0, 3}), {0}, out, plus_42{});
    EXPECT_EQ(out, std::vector<int>(3, 42));
  });
}

TEST(empty, segments_and_runs) {
  with_executors([](const auto& ex) {
    std::vector<int> out(2, 7);
    regroup::reduce_segments(ex, nothing, std::vector<int>{0, 0, 0}, out, plus_42{});
    EXPECT_EQ(out, std::vector<int>(2, 42));
    std::vector<int> none;
    regroup::reduce_segments(ex, nothing, std::vector<int>{0}, none, plus_42{});
    EXPECT_EQ(regroup::reduce_by_key(ex, nothing, nothing, none, none, plus_42{}), 0);
  });
}

TEST(empty, scans) {
  with_executors([](const auto& ex) {
    std::vector<int> none;
    regroup::inclusive_scan(ex, nothing, none, plus_42{});
    regroup::exclusive_scan(ex, nothing, none, plus_42{});
    regroup::inclusive_scan_segments(ex, nothing, std::vector<int>{0, 0}, none, plus_42{});
    std::vector<int> one(1);
    regroup::exclusive_scan(ex, std::vector<int>{5}, one, plus_42{});
    EXPECT_EQ(one[0], 42);
    regroup::inclusive_scan(ex, std::vector<int>{5}, one, plus_42{});
    EXPECT_EQ(one[0], 47);
    const regroup::view<int> rows(nullptr, {regroup::index{1} << 60, 0});  // at once, however many rows
    regroup::inclusive_scan_rows(ex, rows, rows, plus_42{});
  });
}

TEST(empty, accumulator) {
  regroup::accumulator acc{plus_42{}};
  EXPECT_EQ(acc.value(), 42);
  EXPECT_EQ(acc.size(), 0);
  acc.push(nothing);
  EXPECT_EQ(acc.value(), 42);
}
