// SPDX-License-Identifier: Apache-2.0
// The stand-in's loop (see task_arena.h): as many threads as the arena allows each take the next index until none is left.
#pragma once
#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "task_arena.h"

namespace tbb {

template <class Index, class F>
void parallel_for(Index first, Index last, const F& f) {
  std::atomic<Index> next{first};
  std::mutex guard;
  std::exception_ptr thrown;
  const int concurrency = this_task_arena::max_concurrency();
  const auto work = [&] {
    this_task_arena::current = concurrency;
    for (Index i; (i = next.fetch_add(1, std::memory_order_relaxed)) < last;) {
      try {
        f(i);
      } catch (...) {
        const std::lock_guard lock(guard);
        if (!thrown) thrown = std::current_exception();
      }
    }
  };
  std::vector<std::thread> workers;
  for (Index i = 1; i < std::min<Index>(last - first, concurrency); ++i) workers.emplace_back(work);
  work();
  for (std::thread& worker : workers) worker.join();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace tbb
