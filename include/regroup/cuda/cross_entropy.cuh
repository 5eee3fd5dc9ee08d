// SPDX-License-Identifier: Apache-2.0
// cross_entropy on a GPU, with the bits of the CPU (algorithms/cross_entropy.hpp): a fold of its own checks the targets, rows
// become losses and gradients as rows of softmax do (cuda/softmax.cuh), and the losses are summed in double in the
// contract's order. Needs nvcc with -std=c++20 --expt-relaxed-constexpr. Level: device.
#pragma once

#include "regroup/cuda/softmax.cuh"

namespace regroup {

namespace cuda {

template <class T>
T read_back(const device& on, const T* from) {
  T value;
  check(cudaMemcpyAsync(&value, from, sizeof(T), cudaMemcpyDeviceToHost, on.stream()), "copying a result");
  on.synchronize();
  return value;
}

}  // namespace cuda

/// cross_entropy (algorithms/cross_entropy.hpp) of rows of logits, one stride apart, against one target a row, at one stride.
/// Returns the mean or sum of the losses, in float (double for double), or 0 if no sum is wanted. `.gradient` may be exactly
/// the logits. Waits twice, because a target out of range is an argument_error that names its row; nothing is written then.
/// Throws as the host's, and device_error.
template <class X, class Target>
cuda::real_of<X> cross_entropy(const cuda::device& on, const cuda::device_view<X>& logits,
                               const cuda::device_view<Target>& targets, const cuda::entropy_options<X>& options = {}) {
  using real = cuda::real_of<X>;
  const cuda::entropy_work<X, Target> work(logits, targets, options);
  const cuda::device_buffer own(work.bytes(on) + 16, on.stream());
  const cuda::workspace w{static_cast<char*>(own.data()) + 16, work.bytes(on)};
  work.check(on, w);
  const auto said = cuda::read_back(on, static_cast<const cuda::check_targets::state*>(w.data));
  if (said.first_wrong >= 0) {
    work.refuse(said.first_wrong, cuda::read_back(on, work.target_at(said.first_wrong)));
  }
  auto* const loss = static_cast<real*>(own.data());
  work.run(on, loss, w);
  if (options.reduction != loss_reduction::none) return cuda::read_back(on, loss);
  on.synchronize();
  return real{0};
}

/// The bytes of workspace that `cross_entropy_into` needs with these options.
template <class X, class Target>
std::size_t cross_entropy_workspace(const cuda::device& on, const cuda::device_view<X>& logits,
                                    const cuda::device_view<Target>& targets,
                                    const cuda::entropy_options<X>& options = {}) {
  return cuda::entropy_work<X, Target>(logits, targets, options).bytes(on);
}
/// The same in stream order, into one place on the device, which stays unchanged if no sum is wanted. It cannot throw for a
/// target out of range: that row's loss and gradient are NaN, and so is the result.
template <class X, class Target, class Out>
void cross_entropy_into(const cuda::device& on, const cuda::device_view<X>& logits,
                        const cuda::device_view<Target>& targets, const cuda::device_view<Out>& out,
                        const cuda::workspace& w, const cuda::entropy_options<X>& options = {}) {
  require_place_for<Out, cuda::real_of<X>>();
  const cuda::entropy_work<X, Target> work(logits, targets, options);
  logits.require_places(out, 1);
  targets.require_apart_from(out, false, "the targets");
  if (options.losses) options.losses->require_apart_from(out, false, "another output");
  if (options.gradient) options.gradient->require_apart_from(out, false, "another output");
  work.check(on, w);
  work.run(on, out.data(), w);
}

template <class X, class... Rest>
cuda::refused_memory<X, Rest...> cross_entropy(const cuda::device&, const X&, const Rest&...);

}  // namespace regroup
