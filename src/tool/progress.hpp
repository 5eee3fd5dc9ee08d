// SPDX-License-Identifier: Apache-2.0
// A line of progress on standard error: only on a terminal, only after a second, erased at the end.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "array.hpp"
#include "command_line.hpp"

namespace regroup::tool {

class progress {
 public:
  /// `what` says what is being done; `total` is the number of elements, if `advance` will be called.
  progress(const settings& s, std::string what, index total = 0);
  ~progress();
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;
  void advance(index elements) { done_.fetch_add(elements, std::memory_order_relaxed); }

 private:
  void show();

  std::string what_;
  index total_;
  std::atomic<index> done_ = 0;
  bool ended_ = false;
  std::mutex mutex_;
  std::condition_variable end_;
  std::thread thread_;
};

}  // namespace regroup::tool
