// SPDX-License-Identifier: Apache-2.0
// cuda::device{stream}: an executor of the verbs on a GPU, in the contract's order of combination, so a result has the bits
// of `seq`. Verbs allocate what they need and return when their work is done. The same verbs with `_into` take the caller's
// workspace, allocate no device memory and return at once; they are ordered by the stream and can be captured in a graph.
// Inputs and outputs are device_views (cuda/view.hpp). Every CUDA call that can report to the caller is checked
// (cuda/error.hpp). Needs nvcc with -std=c++20 --expt-relaxed-constexpr. Level: device.
#pragma once

#ifndef __CUDACC__
#error "regroup: cuda/*.cuh is device code: compile this file by nvcc, as .cu"
#elif defined(__NVCC__) && !defined(__CUDACC_RELAXED_CONSTEXPR__)
#error "regroup: nvcc needs --expt-relaxed-constexpr, which the target regroup::cuda passes"
#endif

#include <concepts>
#include <functional>
#include <ranges>
#include <type_traits>

#include "regroup/cuda/device_block.cuh"
#include "regroup/cuda/error.hpp"
#include "regroup/cuda/fold_plan.hpp"
#include "regroup/cuda/scan_plan.hpp"
#include "regroup/cuda/view.hpp"
#include "regroup/require_monoid.hpp"

namespace regroup::cuda {

inline void check(cudaError_t status, const char* doing) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clear the error so that later calls do not report it again
  throw_device(static_cast<int>(status), cudaGetErrorString(status), doing);
}

/// A compile error that says in one sentence why a monoid over elements X, with states of at most `Most` bytes, cannot run on
/// a device.
template <class M, class X, std::size_t Most = most_state_bytes>
void require_on_device() {
  require_monoid<M, X>();
  require_device_monoid<M, Most>();
  require_device_functions<M, X>();
}

/// Device memory from the stream's pool, freed in stream order; an error of freeing it is not reported.
class device_buffer {
 public:
  device_buffer(std::size_t bytes, cudaStream_t stream) : bytes_(bytes), stream_(stream) {
    if (bytes > 0) check(cudaMallocAsync(&data_, bytes, stream), "allocating a workspace");
  }
  ~device_buffer() {
    if (data_ != nullptr && cudaFreeAsync(data_, stream_) != cudaSuccess) cudaGetLastError();  // as in `check`
  }
  device_buffer(const device_buffer&) = delete;
  device_buffer& operator=(const device_buffer&) = delete;
  [[nodiscard]] void* data() const noexcept { return data_; }
  [[nodiscard]] cuda::workspace workspace() const noexcept { return {data_, bytes_}; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_;
  cudaStream_t stream_;
};

/// CCCL's term for results that may differ from run to run (cuda/unordered.cuh). Without it results promise more than CCCL's
/// `gpu_to_gpu`: they have the bits of a CPU.
struct not_guaranteed_t {};
inline constexpr not_guaranteed_t not_guaranteed{};
class unordered_device;
/// Products by tensor cores, for attention (cuda/attention.cuh): the bits are those of one kind of device.
struct tensor_cores_t {};
inline constexpr tensor_cores_t tensor_cores{};
class tensor_device;

/// The current device's executor on a stream (by default the default stream). Cheap to make and to copy. It keeps the
/// properties of the device that is current when it is made, so use it while that device is current. Verbs without `_into`
/// need stream-ordered allocation (cudaMallocAsync). Throws no_device_error where there is no device.
class device {
 public:
  explicit device(cudaStream_t stream = nullptr) : stream_(stream) {
    int current = 0;
    check(cudaGetDevice(&current), "asking for the current device");
    check(cudaDeviceGetAttribute(&processors_, cudaDevAttrMultiProcessorCount, current), "asking for multiprocessors");
    check(cudaDeviceGetAttribute(&block_bytes_, cudaDevAttrMaxSharedMemoryPerBlockOptin, current), "asking for shared memory");
  }
  [[nodiscard]] cudaStream_t stream() const noexcept { return stream_; }
  [[nodiscard]] int processors() const noexcept { return processors_; }
  /// Bytes of shared memory that a block may ask for.
  [[nodiscard]] index block_bytes() const noexcept { return block_bytes_; }
  void synchronize() const { check(cudaStreamSynchronize(stream_), "waiting for the stream"); }

  /// Reductions and scans of ranges, and reductions of segments, by CUB in the order in which it is fastest:
  /// `device{stream}.with(not_guaranteed)`, cuda/unordered.cuh.
  [[nodiscard]] unordered_device with(not_guaranteed_t) const;
  [[nodiscard]] tensor_device with(tensor_cores_t) const;

  /// The most blocks in a cluster of a kernel: 1 if the kernel was compiled for devices older than sm_90, whatever device
  /// runs it.
  template <class Kernel>
  [[nodiscard]] int most_cluster_blocks() const {
    cudaFuncAttributes compiled{};
    check(cudaFuncGetAttributes(&compiled, run_kernel<Kernel>), "asking for what a kernel was compiled for");
    return compiled.ptxVersion >= oldest_with_clusters ? cuda::most_cluster_blocks : 1;
  }
  /// Launches a kernel on `blocks` blocks. `blocks` must be a multiple of `cluster`.
  template <class Kernel>
  void launch(const Kernel& kernel, index blocks, int cluster = 1) const {
    require_to_travel<Kernel>();
    static_assert(sizeof(Kernel) <= 4096, "regroup: a monoid on a device has at most about 4000 bytes of its own");
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(blocks));
    config.blockDim = dim3(threads_of<Kernel>);
    if (constexpr std::size_t bytes = large_bytes<Kernel>; bytes > 0) {
      config.dynamicSmemBytes = bytes;
      check(cudaFuncSetAttribute(run_kernel<Kernel>, cudaFuncAttributeMaxDynamicSharedMemorySize, int{bytes}),
            "asking for shared memory");
    }
    config.stream = stream_;
    cudaLaunchAttribute clusters{};
    clusters.id = cudaLaunchAttributeClusterDimension;
    clusters.val.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
    config.attrs = &clusters;
    config.numAttrs = cluster > 1 ? 1 : 0;
    check(cudaLaunchKernelEx(&config, run_kernel<Kernel>, kernel), "a launch");
  }

  /// Calls put(row, state), on the device, for every row of a batch; needs a workspace of `fold_bytes` bytes.
  template <class Batch, class M, class Put>
  void fold(const Batch& rows, const M& m, const Put& put, const cuda::workspace& w) const {
    require_on_device<M, element_in<Batch>>();
    w.require(fold_bytes(rows, m));
    launch_fold([this](const auto& kernel, index blocks) { launch(kernel, blocks); }, plan<M>(rows), m, rows,
                static_cast<state_of<M>*>(w.data), put);
  }
  template <class Batch, class M>
  [[nodiscard]] std::size_t fold_bytes(const Batch& rows, const M&) const {
    return static_cast<std::size_t>(workspace_states(plan<M>(rows), rows)) * sizeof(state_of<M>);
  }

  /// The answers of every prefix of every row of a batch; needs a workspace of `scan_bytes` bytes.
  template <scan_kind Kind, class In, class Out, class M>
  void scan(const In& rows, const Out& answers, const M& m, const cuda::workspace& w) const {
    require_on_device<M, element_in<In>, most_scanned_bytes>();
    require_place_for<place_of<source_in<Out>>, answer_of<M>>();
    w.require(scan_bytes<Kind>(rows, m));
    launch_scan<Kind>([this](const auto& kernel, index blocks) { launch(kernel, blocks); },
                      plan_scan(lengths_of(rows)), m, rows, answers, w.data);
  }
  template <scan_kind Kind, class In, class M>
  [[nodiscard]] std::size_t scan_bytes(const In& rows, const M&) const {
    return scan_workspace<state_of<M>>(plan_scan(lengths_of(rows)), rows, Kind);
  }

 private:
  template <class M, class Batch>
  [[nodiscard]] fold_plan plan(const Batch& rows) const {
    return plan_fold(lengths_of(rows), processors_, sizeof(state_of<M>));
  }
  cudaStream_t stream_;
  int processors_ = 0, block_bytes_ = 0;
};

template <class T>
device_view<const T> input(const device_view<T>& x) {
  return x;
}

/// Allocates what a verb needs, runs it, and waits.
template <class Run>
void with_workspace(const device& on, std::size_t bytes, const Run& run) {
  const device_buffer own(bytes, on.stream());
  run(own.workspace());
  on.synchronize();
}

/// Whether what a verb reads is no device view, or another argument is a range or view of the host's.
template <class X>
concept host_memory = !is_device_view<X> && !std::same_as<X, shape> &&
                      (std::ranges::range<const X> || requires(const X& x) { regroup::view(x); });
template <class X, class... Rest>
concept some_on_the_host = !is_device_view<X> || (host_memory<Rest> || ...);
/// What a verb on a device returns for memory of the host: nothing that compiles.
template <class X, class... Rest>
  requires some_on_the_host<X, Rest...>
struct refused_memory {
  static_assert(!std::same_as<X, X>,
                "regroup: cuda::device works in device memory; give it a cuda::device_view of what cudaMalloc returned, not "
                "a host pointer, view or container");
};

}  // namespace regroup::cuda

// The verbs.
#include "regroup/cuda/reduce.cuh"
#include "regroup/cuda/scan.cuh"
