// SPDX-License-Identifier: Apache-2.0
// A device in plain C++: the operations of cuda/block.hpp with the threads of a block as fibers, run one after another in
// an order that is forward, backward or random. It refuses what a device would silently get wrong: a read of shared
// memory that nobody wrote, or that a copy has not reached yet; an access that no barrier separates from another thread's
// (a race); a barrier or shuffle that some threads miss. Blocks of a cluster run together, and none may touch the memory of
// another that may not have begun yet or may have ended. And it can break a kernel on purpose, to show that a test would
// notice (`fault`).
#pragma once

#include <exception>
#include <memory>
#include <vector>

#include "fiber.hpp"
#include "machine.hpp"
#include "machine_block.hpp"

namespace emulated {

template <class Kernel>
void machine::run(const Kernel& kernel, index blocks, int threads, int cluster) {
  struct runner {
    operations_of of;
    const Kernel& kernel;
    fiber on;
    runner(machine& m, int thread, const Kernel& k)
        : of(m, thread), kernel(k), on(
                                        [](void* self) {
                                          auto& r = *static_cast<runner*>(self);
                                          auto& own = r.of.own();
                                          try {
                                            if (!own.thrown) r.kernel(r.of);
                                            if (!own.thrown) r.of.machine_.leave(r.of.thread_);
                                          } catch (...) {
                                            own.thrown = std::current_exception();
                                          }
                                          own.done = true;
                                        },
                                        this) {
      of.runs_on(on);
    }
  };
  std::vector<std::unique_ptr<runner>> runners;
  for (int t = 0; t < cluster * threads; ++t) runners.push_back(std::make_unique<runner>(*this, t, kernel));
  // After the first exception every other fiber is resumed with one, so that all frames are left in order.
  const auto run_cluster = [&] {
    for (auto& r : runners) r->on.restart();
    std::exception_ptr failed;
    for (bool moved = true; moved;) {
      moved = false;
      bool alive = false;
      for (const int t : order_of(cluster * threads)) {
        thread& own = threads_[static_cast<std::size_t>(t)];
        if (own.done) continue;
        alive = true;
        try {
          if (!failed && own.on != waiting::nothing) {
            if (!arrived(t)) continue;
            release(t);
          }
        } catch (...) {
          failed = std::current_exception();
        }
        if (failed) own.thrown = failed;
        runners[static_cast<std::size_t>(t)]->on.resume();
        moved = true;
        if (own.thrown && !failed) failed = own.thrown;
      }
      if (alive && !moved) {
        failed = std::make_exception_ptr(broken_kernel("threads wait for each other in different operations"));
        moved = true;
      }
    }
    if (failed) std::rethrow_exception(failed);
  };
  for (const int number : order_of(static_cast<int>(blocks / cluster))) {
    start_cluster(index{number} * cluster, blocks, threads, cluster);
    run_cluster();
  }
}

}  // namespace emulated
