// SPDX-License-Identifier: Apache-2.0
// Called from inside other people's parallel loops we add no thread of our own. Inside TBB's the same threads serve both;
// inside an OpenMP team `seq` stays on the thread that calls, and `par` adds TBB's workers, one fewer than its threads, to
// the team, however many of the team call at once.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include "regroup/host/par.hpp"
#include "regroup/host/seq.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/reduce.hpp"
#include "regroup/scan.hpp"

namespace {

constexpr int callers = 3;
constexpr std::int64_t length = 24 * regroup::tile_elements;

/// Who works, and how many at once.
class crowd {
 public:
  void rest() {
    enter();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    const std::lock_guard lock(guard_);
    --now_;
  }
  [[nodiscard]] int most_at_once() const { return most_; }
  [[nodiscard]] bool is_only(std::thread::id id) const { return seen_ == std::set{id}; }

 private:
  void enter() {
    const std::lock_guard lock(guard_);
    seen_.insert(std::this_thread::get_id());
    most_ = std::max(most_, ++now_);
  }
  std::mutex guard_;
  std::set<std::thread::id> seen_;
  int now_ = 0;
  int most_ = 0;
};

/// A reduction, a scan and a loop, whose elements now and then rest, so that whoever may join does.
template <class Executor>
void work(const Executor& ex, crowd& workers) {
  const auto elements = regroup::generate(length, [&](regroup::index i) {
    if (i % regroup::tile_elements == 0) workers.rest();
    return i % 7;
  });
  const regroup::plus<std::int64_t> plus;
  const std::int64_t sum = regroup::reduce(ex, elements, plus);
  std::vector<std::int64_t> sums(static_cast<std::size_t>(length));
  regroup::inclusive_scan(ex, elements, sums, plus);
  EXPECT_EQ(sum, sums.back());
  ex.for_each(24, 1e5, [&](regroup::index) { workers.rest(); });
}

TEST(oversubscription, inside_tbb_its_threads_serve) {
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, callers);
  tbb::task_arena arena(callers);
  crowd workers;
  arena.execute([&] { tbb::parallel_for(0, 8, [&](int) { work(regroup::par, workers); }); });
  EXPECT_LE(workers.most_at_once(), callers);
  arena.execute([&] { tbb::parallel_for(0, 8, [&](int) { work(regroup::par.with_threads(2), workers); }); });
  EXPECT_LE(workers.most_at_once(), callers);
}

TEST(oversubscription, a_count_of_threads_is_a_bound) {
  crowd workers;
  work(regroup::par.with_threads(2), workers);
  EXPECT_LE(workers.most_at_once(), 2);
}

TEST(oversubscription, an_executor_has_its_threads_whatever_others_there_are) {
  const auto fewer = regroup::par.with_threads(2), more = regroup::par.with_threads(5);
  std::atomic<int> here = 0, met = 0;
  more.bulk(5, [&](regroup::index) {
    ++here;
    for (int i = 0; i < 2000 && here < 5; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (here == 5) ++met;
  });
  EXPECT_EQ(met, 5);
}

#ifdef _OPENMP
TEST(oversubscription, inside_openmp_seq_adds_nobody) {
#pragma omp parallel num_threads(callers)
  {
    crowd self;
    work(regroup::seq, self);
    EXPECT_TRUE(self.is_only(std::this_thread::get_id()));
    crowd alone;
    work(regroup::par.with_threads(1), alone);
    EXPECT_TRUE(alone.is_only(std::this_thread::get_id()));
  }
}

TEST(oversubscription, inside_openmp_par_adds_tbbs_workers_once) {
  constexpr int threads = 2;
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
  crowd workers;
#pragma omp parallel num_threads(callers)
  for (int repeat = 0; repeat < 3; ++repeat) work(regroup::par, workers);
  EXPECT_LE(workers.most_at_once(), callers + threads - 1);
}
#endif

}  // namespace
