// SPDX-License-Identifier: Apache-2.0
// Memory of attention's blocks: aligned to cache lines, not initialised, and kept for reuse. Level: block.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "regroup/monoid.hpp"

namespace regroup::attention_fold {

/// Numbers on whole cache lines, not initialised.
template <class Real>
class buffer {
 public:
  void resize(index n) {
    const index lines = (n + per_line - 1) / per_line;
    if (lines > size_) lines_ = std::make_unique_for_overwrite<line[]>(static_cast<std::size_t>(lines));
    size_ = std::max(size_, lines);
  }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] Real* data() noexcept { return reinterpret_cast<Real*>(lines_.get()); }
  [[nodiscard]] const Real* data() const noexcept { return reinterpret_cast<const Real*>(lines_.get()); }

 private:
  static constexpr index per_line = 64 / static_cast<index>(sizeof(Real));
  struct alignas(64) line {
    Real values[static_cast<std::size_t>(per_line)];
  };
  std::unique_ptr<line[]> lines_;
  index size_ = 0;
};

/// Keeps objects for reuse, because fresh memory is expensive.
template <class X>
class pool {
  struct give_back {
    pool* to;
    void operator()(X* x) const {
      const std::lock_guard lock(to->mutex_);
      to->waiting_.emplace_back(x);
    }
  };

 public:
  using pointer = std::unique_ptr<X, give_back>;
  [[nodiscard]] pointer take() {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) return {new X, {this}};
    X* const x = waiting_.back().release();
    waiting_.pop_back();
    return {x, {this}};
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<X>> waiting_;
};

/// The states of some queries: m and l, one a query, and unnormalised O, one row of dv a query. Not initialised.
template <class Real>
class fragment {
 public:
  using memory = pool<buffer<Real>>;
  fragment(index queries, index dv, memory& from) : queries_(queries), dv_(dv), numbers_(from.take()) {
    numbers_->resize((dv + 2) * queries);
  }
  [[nodiscard]] Real* o() const noexcept { return numbers_->data(); }
  [[nodiscard]] Real* m() const noexcept { return numbers_->data() + dv_ * queries_; }
  [[nodiscard]] Real* l() const noexcept { return m() + queries_; }

 private:
  index queries_, dv_;
  typename memory::pointer numbers_;
};

}  // namespace regroup::attention_fold
