// SPDX-License-Identifier: Apache-2.0
// The stand-in has no process-wide limit (see task_arena.h).
#pragma once
#include <cstddef>

namespace tbb {

class global_control {
 public:
  enum parameter { max_allowed_parallelism };
  global_control(parameter, std::size_t) {}
  static std::size_t active_value(parameter) { return 64; }
};

}  // namespace tbb
