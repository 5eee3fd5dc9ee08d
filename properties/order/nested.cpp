// SPDX-License-Identifier: Apache-2.0
// A verb inside a verb: the element of an outer fold is the answer of an inner one, on any pair of executors, and
// several threads may call at once.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cases.hpp"
#include "recorder.hpp"
#include "regroup/reduce.hpp"
#include "regroup/scan.hpp"

namespace {

constexpr std::int64_t outer = 300;

std::int64_t inner(std::int64_t i) { return (i * 7919) % 13000; }

std::vector<order::word> inner_trees() {
  std::vector<order::word> trees;
  for (std::int64_t i = 0; i < outer; ++i)
    trees.push_back(order::expected<order::rule::striped>(order::elements(inner(i), i)));
  return trees;
}

}  // namespace

TEST(nested, an_element_that_is_a_reduction) {
  const order::word tree = order::expected<order::rule::pieces>(inner_trees());
  order::for_some_executors([&](const auto& ex, const std::string& name) {
    const auto element = [&](regroup::index i) {
      return regroup::reduce(regroup::par,
                             regroup::generate(inner(i), [i](regroup::index k) { return order::element(i + k); }),
                             order::hashed<order::rule::striped>{});
    };
    EXPECT_EQ(regroup::reduce(ex, regroup::generate(outer, element), order::hashed<order::rule::pieces>{}), tree)
        << name;
  });
}

/// Whoever waits inside an element may be handed more of the scan around it, or of another, which must not wait for that
/// element.
TEST(nested, elements_that_run_work_of_their_own_are_scanned) {
  const std::int64_t n = order::small() ? 20'000 : 60'000;
  const auto element = [](regroup::index i) {
    std::atomic<int> calls = 0;
    if (i % 16 == 0) regroup::par.bulk(4, [&](regroup::index) { ++calls; });
    return order::element(i) + static_cast<order::word>(calls % 4);
  };
  const auto tree = order::expected_inclusive(order::elements(n));
  order::for_some_executors([&](const auto& ex, const std::string& name) {
    std::vector<order::word> ys(static_cast<std::size_t>(n));
    regroup::inclusive_scan(ex, regroup::generate(n, element), ys, order::hashed<order::rule::pieces>{});
    EXPECT_TRUE(ys == tree) << name;
  });
  std::vector<order::word> two[2] = {std::vector<order::word>(tree.size()), std::vector<order::word>(tree.size())};
  const auto at_once = regroup::par.with_threads(4);
  at_once.bulk(2, [&](regroup::index i) {
    const auto deeper = [&](regroup::index k) {
      if (k % 64 == 0) at_once.bulk(2, [&](regroup::index) { at_once.bulk(2, [](regroup::index) {}); });
      return order::element(k);
    };
    regroup::inclusive_scan(at_once, regroup::generate(n, deeper), two[i], order::hashed<order::rule::pieces>{});
  });
  EXPECT_TRUE(two[0] == tree);
  EXPECT_TRUE(two[1] == tree);
}

TEST(nested, a_verb_inside_bulk) {
  const auto trees = inner_trees();
  std::vector<order::word> found(trees.size());
  regroup::par.with_threads(3).bulk(outer, [&](regroup::index i) {
    found[static_cast<std::size_t>(i)] = regroup::reduce(regroup::par.with_threads(2), order::elements(inner(i), i),
                                                         order::hashed<order::rule::striped>{});
  });
  EXPECT_EQ(found, trees);
}

TEST(nested, bulk_runs_every_number_once) {
  order::for_each_executor([](const auto& ex, const std::string& name) {
    for (const std::int64_t count : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> runs(static_cast<std::size_t>(count));
      ex.bulk(count, [&](regroup::index i) { ++runs[static_cast<std::size_t>(i)]; });
      for (const auto& r : runs) EXPECT_EQ(r, 1) << name << ", count " << count;
    }
  });
}

TEST(nested, several_threads_at_once) {
  const auto xs = order::elements(100'001);
  const order::word tree = order::expected<order::rule::striped>(xs);
  const auto ys = order::expected_inclusive(xs);
  std::vector<std::thread> callers;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&] {
      for (int repeat = 0; repeat < 5; ++repeat) {
        if (regroup::reduce(regroup::par, xs, order::hashed<order::rule::striped>{}) != tree) ++wrong;
        std::vector<order::word> out(xs.size());
        regroup::inclusive_scan(regroup::par, xs, out, order::hashed<order::rule::striped>{});
        if (out != ys) ++wrong;
      }
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

namespace {

/// Threads that one thread plays: who waits inside a task runs the next one, as a pool's threads may.
struct players : regroup::host::threads<players> {
  struct tasks {
    std::function<void(regroup::index)> f;
    regroup::index next = 0, end = 0;
    bool play() {
      if (next >= end) return false;
      f(next++);
      return true;
    }
  };
  std::shared_ptr<tasks> left = std::make_shared<tasks>();

  static int concurrency() { return 3; }
  template <class F>
  void bulk(regroup::index n, const F& f) const {
    const tasks before = std::exchange(*left, tasks{[&f](regroup::index i) { f(i); }, 0, n});
    while (left->play()) {
    }
    *left = before;
  }
};

}  // namespace

/// The same where it is the combine that waits, the one after `calls` of those that join whole tiles to something.
TEST(nested, a_combine_that_runs_work_of_its_own_is_scanned) {
  struct waits {
    struct state {
      order::word tree;
      std::int64_t count;
    };
    players pool;
    int* calls;
    state identity() const { return {0, 0}; }
    state lift(order::word x) const { return {x, 1}; }
    state operator()(state a, state b) const {
      if (a.count >= 4096 && b.count >= 32 && (*calls)-- == 0) pool.left->play();
      return {order::skip_or_mix(a.tree, b.tree), a.count + b.count};
    }
    order::word lower(const state& s) const { return s.tree; }
  };
  const std::int64_t n = 5 * 4096 + 100;
  const auto xs = order::elements(n);
  const auto tree = order::expected_inclusive(xs);
  const players pool;
  int before = 0, calls = 0;
  do {
    calls = before;
    std::vector<order::word> ys(xs.size());
    regroup::inclusive_scan(pool, xs, ys, waits{pool, &calls});
    ASSERT_TRUE(ys == tree) << before;
    ++before;
  } while (calls < 0);
  EXPECT_GT(before, 5);
}
