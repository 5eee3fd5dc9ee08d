// SPDX-License-Identifier: Apache-2.0
// All cores, through oneTBB. Re-entrant and safe to nest: work inside work goes to the same scheduler.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include "regroup/host/threads.hpp"

namespace regroup {

/// Folds on oneTBB's threads: as many as the calling thread's arena has, or `with_threads(n)`, or in an arena of the
/// caller's own, `in(arena)`. Copies share their arena. Results do not depend on any of this. Inside TBB's loops its threads
/// serve both; inside an OpenMP team TBB's workers come on top of the team, once for all of it: there `seq` adds nobody.
class parallel : public host::threads<parallel> {
 public:
  parallel() noexcept = default;

  /// The same with `count` threads, the calling one included; fewer where TBB's own limit, or a smaller number that was asked
  /// for before and is still in use, is below. Throws argument_error below 1.
  [[nodiscard]] parallel with_threads(int count) const {
    if (count < 1) throw_argument("a thread count must be 1 or more; got " + std::to_string(count));
    parallel result;
    result.own_ = std::make_shared<owned>(count);
    result.arena_ = &result.own_->arena;
    return result;
  }
  /// The same inside somebody else's arena, which must outlive its use.
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
    explicit owned(int count)
        : allowed(tbb::global_control::max_allowed_parallelism,
                  std::max(static_cast<std::size_t>(count),
                           tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism))),
          arena(count) {}
    tbb::global_control allowed;
    tbb::task_arena arena;
  };
  std::shared_ptr<owned> own_;
  tbb::task_arena* arena_ = nullptr;
};

inline const parallel par{};

}  // namespace regroup
