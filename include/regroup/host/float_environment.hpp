// SPDX-License-Identifier: Apache-2.0
// Rounding and the flushing of denormals, which belong to a thread, and decide bits. Level: thread.
#pragma once

#include <cfenv>

namespace regroup::host {

/// A thread's floating-point environment (rounding, flushing of denormals), for other threads to adopt.
class float_environment {
 public:
  float_environment() noexcept { std::fegetenv(&environment_); }

  /// Runs body() in the environment of the thread that made this object.
  template <class Body>
  void with(const Body& body) const {
    if (is_here()) return body();
    const float_environment here;
    std::fesetenv(&environment_);
    body();
    std::fesetenv(&here.environment_);
  }

 private:
#if defined(__x86_64__)
  static unsigned control() noexcept { return __builtin_ia32_stmxcsr() & ~0x3fu; }  // all but what has happened so far
  [[nodiscard]] bool is_here() const noexcept { return control() == control_; }
  unsigned control_ = control();
#else
  static bool is_here() noexcept { return false; }
#endif
  std::fenv_t environment_;
};

}  // namespace regroup::host
