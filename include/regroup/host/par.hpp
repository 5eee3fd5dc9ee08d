// SPDX-License-Identifier: Apache-2.0
// All cores, through oneTBB. Re-entrant and safe to nest: work inside work goes to the same scheduler.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include "regroup/host/threads.hpp"

namespace regroup {

/// Folds on oneTBB's threads: as many as the calling thread's arena has, `with_threads(n)`, or those of the caller's own
/// arena, `in(arena)`. Copies share their arena. Results do not depend on any of this. Inside a TBB loop the same threads
/// serve both levels. Inside an OpenMP team TBB adds its workers to those of the team, once for the whole team; use `seq`
/// there to add no threads.
class parallel : public host::threads<parallel> {
 public:
  parallel() noexcept = default;

  /// The same with `count` threads, including the calling one; fewer if the program has asked TBB for fewer
  /// (`tbb::global_control`). Throws argument_error below 1.
  [[nodiscard]] parallel with_threads(int count) const {
    if (count < 1) throw_argument("a thread count must be 1 or more; got " + std::to_string(count));
    parallel result;
    result.own_ = std::make_shared<owned>(count);
    result.arena_ = &result.own_->arena;
    return result;
  }
  /// The same in the caller's arena, which must outlive every use of the result.
  [[nodiscard]] parallel in(tbb::task_arena& arena) const {
    parallel result;
    result.arena_ = &arena;
    return result;
  }

  [[nodiscard]] int concurrency() const {
    return arena_ != nullptr ? arena_->max_concurrency() : tbb::this_task_arena::max_concurrency();
  }
  template <class F>
  void bulk(index n, const F& f) const {
    const auto work = [&] { tbb::parallel_for(index{0}, n, f); };
    if (arena_ != nullptr) {
      arena_->execute(work);
    } else {
      work();
    }
  }

 private:
  struct owned {
    /// TBB takes the least of all such limits, so each is as large as 256, or the threads that it would begin by itself.
    static std::size_t most_threads() { return std::max<std::size_t>(256, std::thread::hardware_concurrency()); }
    explicit owned(int count)
        : allowed(tbb::global_control::max_allowed_parallelism, std::max(static_cast<std::size_t>(count), most_threads())),
          arena(count) {}
    tbb::global_control allowed;
    tbb::task_arena arena;
  };
  std::shared_ptr<owned> own_;
  tbb::task_arena* arena_ = nullptr;
};

inline const parallel par{};

}  // namespace regroup
