// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <system_error>
#include <utility>

namespace regroup::tool {

progress::progress(const settings& s, std::string what, index total) : what_(std::move(what)), total_(total) {
  if (s.quiet || ::isatty(STDERR_FILENO) != 1) return;
  try {
    thread_ = std::thread([this] { show(); });
  } catch (const std::system_error&) {  // no thread, no progress
  }
}

progress::~progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  end_.notify_one();
  thread_.join();
}

void progress::show() {
  using std::chrono::seconds;
  const auto start = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  bool shown = false;
  while (!end_.wait_for(lock, seconds(1), [this] { return ended_; })) {
    const auto elapsed = std::chrono::duration_cast<seconds>(std::chrono::steady_clock::now() - start).count();
    const index done = done_.load(std::memory_order_relaxed);
    if (total_ > 0 && done > 0) {
      std::fprintf(stderr, "\r%s: %d%%, %d s ", what_.c_str(),
                   static_cast<int>(100.0 * static_cast<double>(done) / static_cast<double>(total_)),
                   static_cast<int>(elapsed));
    } else {
      std::fprintf(stderr, "\r%s: %d s ", what_.c_str(), static_cast<int>(elapsed));
    }
    shown = true;
  }
  if (shown) std::fprintf(stderr, "\r\033[K");
}

}  // namespace regroup::tool
