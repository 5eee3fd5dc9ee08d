// SPDX-License-Identifier: Apache-2.0
// A stand-in for as much of oneTBB as host/par.hpp uses, on threads that ThreadSanitizer can see: the real one's binary is
// not instrumented, so every task it hands over would look like a race. Here starting and joining a thread are the only
// order between workers, which is the least that par may rely on.
#pragma once
#include <utility>

namespace tbb {

namespace this_task_arena {
inline thread_local int current = 4;
inline int max_concurrency() { return current; }
}  // namespace this_task_arena

class task_arena {
 public:
  explicit task_arena(int count) : count_(count) {}
  int max_concurrency() const { return count_; }
  template <class F>
  void execute(const F& f) {
    struct restore {
      int before;
      ~restore() { this_task_arena::current = before; }
    } const at_end{std::exchange(this_task_arena::current, count_)};
    f();
  }

 private:
  int count_;
};

}  // namespace tbb
