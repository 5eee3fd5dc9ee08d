// SPDX-License-Identifier: Apache-2.0
// The calling thread. `seq` is the specification: every other executor gives its bits.
#pragma once

#include "regroup/host/threads.hpp"

namespace regroup {

/// Folds on the calling thread.
struct sequential : host::threads<sequential> {
  [[nodiscard]] static constexpr int concurrency() noexcept { return 1; }
  template <class F>
  static void bulk(index n, const F& f) {
    for (index i = 0; i < n; ++i) f(i);
  }
};

inline constexpr sequential seq{};

}  // namespace regroup
