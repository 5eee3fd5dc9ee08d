// SPDX-License-Identifier: Apache-2.0
// An executor over somebody else's threads takes a dozen lines and gives the same bits, since the tree does not depend on
// threads.
#include <gtest/gtest.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "../order/recorder.hpp"
#include "operators.hpp"
#include "regroup/error.hpp"
#include "regroup/host/par.hpp"
#include "regroup/host/seq.hpp"
#include "regroup/reduce.hpp"
#include "regroup/scan.hpp"
#include "regroup/stream.hpp"

namespace {

/// Starts its threads anew for every call; hands out numbers in turn.
struct crew : regroup::host::threads<crew> {
  int size = 3;
  explicit crew(int n) : size(n) {}
  [[nodiscard]] int concurrency() const { return size; }
  template <class F>
  void bulk(regroup::index count, F f) const {
    std::atomic<regroup::index> next = 0;
    std::exception_ptr thrown;
    std::mutex guard;
    std::vector<std::thread> threads;
    for (int t = 0; t < size; ++t) {
      threads.emplace_back([&] {
        try {
          for (regroup::index i = next++; i < count; i = next++) f(i);
        } catch (...) {
          const std::lock_guard lock(guard);
          thrown = std::current_exception();
          next = count;
        }
      });
    }
    for (auto& t : threads) t.join();
    if (thrown) std::rethrow_exception(thrown);
  }
};

/// Runs the numbers backwards on the calling thread, but claims many threads.
struct backwards : regroup::host::threads<backwards> {
  [[nodiscard]] int concurrency() const { return 64; }
  template <class F>
  void bulk(regroup::index count, F f) const {
    for (regroup::index i = count; i-- > 0;) f(i);
  }
};

template <class Executor>
void same_bits(const Executor& ex) {
  using order::rule;
  for (const std::int64_t n : {0, 1, 300, 4097, 60'001}) {
    const auto xs = order::elements(n);
    EXPECT_EQ(regroup::reduce(ex, xs, order::hashed<rule::pieces>{}), order::expected<rule::pieces>(xs));
    EXPECT_EQ(regroup::reduce(ex, xs, order::hashed<rule::striped>{}), order::expected<rule::striped>(xs));
    EXPECT_EQ(regroup::reduce(ex, xs, order::hashed<rule::tile>{}), order::expected<rule::tile>(xs));
    std::vector<order::word> ys(xs.size());
    regroup::inclusive_scan(ex, xs, ys, order::hashed<rule::striped>{});
    EXPECT_TRUE(ys == order::expected_inclusive(xs));
    ys = xs;
    regroup::exclusive_scan(ex, ys, ys, order::hashed<rule::pieces>{});
    EXPECT_TRUE(ys == order::expected_exclusive(xs));
    regroup::accumulator acc{order::hashed<rule::striped>{}, 777};
    acc.push(ex, xs);
    EXPECT_EQ(acc.value(), order::expected<rule::striped>(xs, 777));
  }
  const auto xs = order::elements(40 * 500);
  std::vector<order::word> out(40);
  regroup::reduce_rows(ex, regroup::view<const order::word>(xs.data(), {40, 500}), out, order::hashed<rule::striped>{});
  for (std::int64_t r = 0; r < 40; ++r) {
    EXPECT_EQ(out[static_cast<std::size_t>(r)],
              order::expected<rule::striped>({xs.begin() + r * 500, xs.begin() + (r + 1) * 500}));
  }
}

}  // namespace

TEST(own_executor, a_crew_of_threads) {
  same_bits(crew{1});
  same_bits(crew{3});
  same_bits(crew{5});
}

TEST(own_executor, numbers_in_any_order) { same_bits(backwards{}); }

TEST(own_executor, exceptions_arrive) {
  std::vector<int> xs(100'000, 1);
  xs[77'777] = -1;
  const auto before = verbs::alive.load();
  EXPECT_THROW((void)regroup::reduce(crew{4}, xs, verbs::fragile<true>{verbs::where::lift}), verbs::refused);
  EXPECT_EQ(verbs::alive, before);
}
