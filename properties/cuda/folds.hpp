// SPDX-License-Identifier: Apache-2.0
// What the tests of folds and scans share: folds and scans of host memory by emulated kernels, as cuda::device launches them.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "../order/cases.hpp"
#include "emulator.hpp"
#include "regroup/cuda/fold_plan.hpp"
#include "regroup/cuda/scan_plan.hpp"

namespace emulated {

/// Puts states where the host reads them, and counts how often each row was answered.
template <class State>
struct collected {
  State* states;
  int* answers;
  constexpr void operator()(index row, const State& s) const {
    states[row] = s;
    ++answers[row];
  }
};

/// Objects side by side, bool among them; exactly as many, for the sanitizer.
template <class T>
class device_memory {
 public:
  device_memory(index count, const T& x) : values_(new T[static_cast<std::size_t>(count)]), count_(count) {
    std::fill(begin(), end(), x);
  }
  [[nodiscard]] T* data() const { return values_.get(); }
  [[nodiscard]] T* begin() const { return values_.get(); }
  [[nodiscard]] T* end() const { return values_.get() + count_; }
  T& operator[](index i) const { return values_[static_cast<std::size_t>(i)]; }

 private:
  std::unique_ptr<T[]> values_;
  index count_;
};

/// The state of every row of a batch, on at most so many blocks, with exactly the workspace that the plan asks for.
template <class M, class Batch>
device_memory<regroup::state_of<M>> fold(machine& on, const M& m, const Batch& rows, const regroup::cuda::fold_plan& plan,
                                         index most_blocks = regroup::cuda::most_blocks) {
  using state = regroup::state_of<M>;
  device_memory<state> states(rows.size(), m.identity());
  const device_memory<int> answers(rows.size(), 0);
  const device_memory<state> workspace(workspace_states(plan, rows), m.identity());
  const auto launch = [&](const auto& kernel, index blocks) { on.run(kernel, std::min(blocks, most_blocks)); };
  launch_fold(launch, plan, m, rows, workspace.data(), collected<state>{states.data(), answers.data()});
  for (const int n : answers) {
    if (n != 1) throw broken_kernel("a row has been answered " + std::to_string(n) + " times");
  }
  return states;
}
template <class M, class Batch>
auto fold(machine& on, const M& m, const Batch& rows, int processors = 1) {
  return fold(on, m, rows, regroup::cuda::plan_fold(lengths_of(rows), processors, sizeof(regroup::state_of<M>)));
}

/// The bytes that a scan asks for.
template <regroup::scan_kind Kind, class State, class Batch>
index scan_bytes(const regroup::cuda::scan_plan& plan, const Batch& rows) {
  return static_cast<index>(regroup::cuda::scan_workspace<State>(plan, rows, Kind));
}
/// Scans a batch, on at most so many blocks, with exactly the workspace that the plan asks for.
template <regroup::scan_kind Kind, class M, class In, class Out>
void scan(machine& on, const M& m, const In& rows, const Out& answers, index most_blocks = regroup::cuda::most_blocks) {
  const auto plan = regroup::cuda::plan_scan(lengths_of(rows));
  const device_memory<std::byte> workspace(scan_bytes<Kind, regroup::state_of<M>>(plan, rows), std::byte{0x5a});
  const auto launch = [&](const auto& kernel, index blocks) { on.run(kernel, std::min(blocks, most_blocks)); };
  regroup::cuda::launch_scan<Kind>(launch, plan, m, rows, answers, workspace.data());
}
/// A vector as one row.
template <class X>
regroup::cuda::row_batch<const X> one_row(const std::vector<X>& xs) {
  const auto n = static_cast<index>(xs.size());
  return {xs.data(), 1, n, n, 1};
}
template <class X>
regroup::cuda::row_batch<const X> rows_of(const std::vector<X>& xs, index count) {
  const auto n = static_cast<index>(xs.size()) / count;
  return {xs.data(), count, n, n, 1};
}

/// The orders in which the threads of a block may run: all of them where rows are short, or where `many`; else one.
inline constexpr index short_row = 300;
inline std::vector<std::pair<std::string, machine>> machines(index length = short_row + 1, bool many = !order::small()) {
  std::vector<std::pair<std::string, machine>> some = {{"random", machine(schedule::random, 7)}};
  if (many || length <= short_row) {
    some.push_back({"forward", machine(schedule::forward)});
    some.push_back({"backward", machine(schedule::backward)});
  }
  return some;
}

}  // namespace emulated
