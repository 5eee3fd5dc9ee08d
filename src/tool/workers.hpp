// SPDX-License-Identifier: Apache-2.0
// `par` behind a declaration, so that oneTBB's headers are read once.
#pragma once

#include <memory>

#include "command_line.hpp"
#include "regroup/host/threads.hpp"

namespace regroup {
class parallel;
}

namespace regroup::tool {

inline constexpr int most_threads = 1024;  // for --threads; more would only wait, and bits do not depend on it

/// The executor of every command: all cores, or the threads asked for.
class workers : public host::threads<workers> {
 public:
  explicit workers(const settings& s);
  [[nodiscard]] int concurrency() const;
  void bulk(index n, const host::task& f) const;

 private:
  std::shared_ptr<const parallel> threads_;
};

}  // namespace regroup::tool
