// SPDX-License-Identifier: Apache-2.0
// Counts what the whole program allocates with `new`: the demo replaces it.
#pragma once

#include <cstddef>

namespace demo {

/// The most bytes that were allocated at once since this was made, beyond what was allocated then.
class peak_allocation {
 public:
  peak_allocation();
  [[nodiscard]] std::size_t bytes() const;

 private:
  std::size_t before_;
};

}  // namespace demo
