// SPDX-License-Identifier: Apache-2.0
// cuda::device{stream}: an executor of the verbs on a GPU, in the contract's order of combination, so a result has the
// bits of `seq`. Verbs allocate what they need, and return when their work is done; the same verbs with `_into` take the
// caller's workspace, allocate nothing, and return at once: they are ordered by the stream, and can be captured in a
// graph. Inputs and outputs are device_views (cuda/view.hpp). Every CUDA call is checked (cuda/error.hpp).
// Needs nvcc with -std=c++20 --expt-relaxed-constexpr. Level: device.
#pragma once

#include <functional>
#include <optional>
#include <type_traits>

#include "regroup/cuda/device_block.cuh"
#include "regroup/cuda/error.hpp"
#include "regroup/cuda/fold_plan.hpp"
#include "regroup/cuda/scan_plan.hpp"
#include "regroup/cuda/view.hpp"

namespace regroup::cuda {

inline void check(cudaError_t status, const char* doing) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // said here, so that no later call says it again
  throw_device(static_cast<int>(status), cudaGetErrorString(status), doing);
}

/// Device memory of the stream's pool, given back in the stream's order.
class device_buffer {
 public:
  device_buffer(std::size_t bytes, cudaStream_t stream) : bytes_(bytes), stream_(stream) {
    if (bytes > 0) check(cudaMallocAsync(&data_, bytes, stream), "allocating a workspace");
  }
  ~device_buffer() {
    if (data_ != nullptr) cudaFreeAsync(data_, stream_);
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

/// Puts answers where the caller wants them.
template <class M, class Out>
struct put_answer {
  M m;
  Out* to;
  index stride;
  constexpr void operator()(index row, const state_of<M>& s) const {
    to[row * stride] = static_cast<Out>(regroup::lower(m, s));
  }
};

/// CCCL's word for results that may differ from run to run (cuda/unordered.cuh). Without it results are more than its
/// `gpu_to_gpu`: they have the bits of a CPU.
struct not_guaranteed_t {};
inline constexpr not_guaranteed_t not_guaranteed{};
class unordered_device;
/// Products by tensor cores, for attention (cuda/attention.cuh): bits of one kind of device.
struct tensor_cores_t {};
inline constexpr tensor_cores_t tensor_cores{};
class tensor_device;

/// The current device's executor on a stream (the default one where none is given). Cheap to make and to copy. Throws
/// no_device_error where there is none.
class device {
 public:
  explicit device(cudaStream_t stream = nullptr) : stream_(stream) {
    int current = 0;
    check(cudaGetDevice(&current), "asking for the current device");
    check(cudaDeviceGetAttribute(&processors_, cudaDevAttrMultiProcessorCount, current), "asking for multiprocessors");
  }
  [[nodiscard]] cudaStream_t stream() const noexcept { return stream_; }
  [[nodiscard]] int processors() const noexcept { return processors_; }
  void synchronize() const { check(cudaStreamSynchronize(stream_), "waiting for the stream"); }

  /// The same verbs in the order that CUB is fastest in: `device{stream}.with(not_guaranteed)`, cuda/unordered.cuh.
  [[nodiscard]] unordered_device with(not_guaranteed_t) const;
  [[nodiscard]] tensor_device with(tensor_cores_t) const;

  /// Blocks of one cluster of a kernel's at most: 1 where it has been compiled for what is older than sm_90, whatever device
  /// runs that.
  template <class Kernel>
  [[nodiscard]] int most_cluster_blocks() const {
    cudaFuncAttributes compiled{};
    check(cudaFuncGetAttributes(&compiled, run_kernel<Kernel>), "asking for what a kernel was compiled");
    return compiled.ptxVersion >= oldest_with_clusters ? cuda::most_cluster_blocks : 1;
  }
  /// So many blocks, a multiple of those of a cluster.
  template <class Kernel>
  void launch(const Kernel& kernel, index blocks, int cluster = 1) const {
    static_assert(sizeof(Kernel) <= 4096, "regroup: a monoid on a device has at most about 4000 bytes of its own");
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(blocks));
    config.blockDim = dim3(block_threads);
    config.stream = stream_;
    cudaLaunchAttribute clusters{};
    clusters.id = cudaLaunchAttributeClusterDimension;
    clusters.val.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
    config.attrs = &clusters;
    config.numAttrs = cluster > 1 ? 1 : 0;
    check(cudaLaunchKernelEx(&config, run_kernel<Kernel>, kernel), "a launch");
  }

  /// put(row, state), on the device, for every row of a batch; workspace of `fold_bytes` bytes.
  template <class Batch, class M, class Put>
  void fold(const Batch& rows, const M& m, const Put& put, const cuda::workspace& w) const {
    require_monoid<M, element_in<Batch>>();
    require_device_monoid<M>();
    w.require(fold_bytes(rows, m));
    launch_fold([this](const auto& kernel, index blocks) { launch(kernel, blocks); }, plan<M>(rows), m, rows,
                static_cast<state_of<M>*>(w.data), put);
  }
  template <class Batch, class M>
  [[nodiscard]] std::size_t fold_bytes(const Batch& rows, const M&) const {
    return static_cast<std::size_t>(workspace_states(plan<M>(rows), rows)) * sizeof(state_of<M>);
  }

  /// The answers of every prefix of every row of a batch; workspace of `scan_bytes` bytes.
  template <scan_kind Kind, class In, class Out, class M>
  void scan(const In& rows, const Out& answers, const M& m, const cuda::workspace& w) const {
    require_monoid<M, element_in<In>>();
    require_device_monoid<M, most_scanned_bytes>();
    w.require(scan_bytes<Kind>(rows, m));
    launch_scan<Kind>([this](const auto& kernel, index blocks) { launch(kernel, blocks); },
                      plan_scan(lengths_of(rows)), m, rows, answers, static_cast<state_of<M>*>(w.data));
  }
  template <scan_kind Kind, class In, class M>
  [[nodiscard]] std::size_t scan_bytes(const In& rows, const M&) const {
    return static_cast<std::size_t>(workspace_states(plan_scan(lengths_of(rows)), rows, Kind)) * sizeof(state_of<M>);
  }

 private:
  template <class M, class Batch>
  [[nodiscard]] fold_plan plan(const Batch& rows) const {
    return plan_fold(lengths_of(rows), processors_, sizeof(state_of<M>));
  }
  cudaStream_t stream_;
  int processors_ = 0;
};

}  // namespace regroup::cuda

namespace regroup {

namespace cuda {

template <class T>
device_view<const T> input(const device_view<T>& x) {
  return x;
}

/// A place for one answer a row.
template <class M, class X, class Out>
put_answer<M, Out> output(const device_view<X>& in, const device_view<Out>& out, index count, const M& m) {
  return {m, out.data(), in.require_places(out, count)};
}

/// Allocates what a verb needs, runs it, and waits.
template <class Run>
void with_workspace(const device& on, std::size_t bytes, const Run& run) {
  const device_buffer own(bytes, on.stream());
  run(own.workspace());
  on.synchronize();
}

template <class X, class Offset, class Projection>
segment_batch<const X, Offset, Projection> segments_of(const device_view<X>& xs, const device_view<Offset>& offsets,
                                                       const Projection& projection) {
  if (xs.one_row().stride != 1 || offsets.one_row().stride != 1) {
    throw_shape("on a device segments need elements and offsets side by side");
  }
  if (offsets.size() == 0) throw_offsets("segment offsets need at least one entry, 0; got none");
  return {xs.data(), offsets.data(), offsets.size() - 1, xs.size(), projection};
}

template <scan_kind Kind, class X, class Y, class M, class Projection>
void scan_rows(const device& on, const device_view<X>& x, const device_view<Y>& y, const M& m,
               const std::optional<workspace>& w, const Projection& projection) {
  if (x.extents() != y.extents()) {
    throw_shape("a scan's output has the shape of its input, " + to_string(x.extents()) + "; got " +
                to_string(y.extents()));
  }
  x.require_apart_from(y, true);
  const auto in = input(x).rows(projection);
  const auto run = [&](const workspace& memory) { on.scan<Kind>(in, y.rows(), m, memory); };
  if (w) return run(*w);
  with_workspace(on, on.scan_bytes<Kind>(in, m), run);
}

template <class X>
constexpr void refuse_host_memory() {
  static_assert(is_device_view<X>,
                "regroup: cuda::device reads device memory; give it a cuda::device_view of what cudaMalloc returned, not "
                "a host pointer, view or container");
}

}  // namespace cuda

/// reduce (reduce.hpp) of a range, or a view of any rank that one stride reaches, on a GPU. Returns the host's bits; waits.
template <class X, class M, class Projection = std::identity>
answer_of<M> reduce(const cuda::device& on, const cuda::device_view<X>& xs, const M& m,
                    const Projection& projection = {}) {
  const auto row = cuda::input(xs).one_row(projection);
  const cuda::device_buffer result(sizeof(state_of<M>), on.stream());
  cuda::slot<state_of<M>> state;
  cuda::with_workspace(on, on.fold_bytes(row, m), [&](const cuda::workspace& w) {
    on.fold(row, m, cuda::put_state<state_of<M>>{static_cast<state_of<M>*>(result.data())}, w);
    cuda::check(cudaMemcpyAsync(&state, result.data(), sizeof(state_of<M>), cudaMemcpyDeviceToHost, on.stream()),
                "copying the result");
  });
  return regroup::lower(m, state.value);
}
/// The bytes of workspace that `reduce_into` needs.
template <class X, class M>
std::size_t reduce_workspace(const cuda::device& on, const cuda::device_view<X>& xs, const M& m) {
  return on.fold_bytes(cuda::input(xs).one_row(), m);
}
/// The same, into one place on the device, in the stream's order.
template <class X, class Out, class M, class Projection = std::identity>
void reduce_into(const cuda::device& on, const cuda::device_view<X>& xs, const cuda::device_view<Out>& out, const M& m,
                 const cuda::workspace& w, const Projection& projection = {}) {
  on.fold(cuda::input(xs).one_row(projection), m, cuda::output(xs, out, 1, m), w);
}

/// reduce_rows on a GPU: each row along the last axis; `out` has one place a row. Rows up to 128 or 1024 elements, by the
/// length of all, have 4 or 32 threads each; longer ones as many blocks as they have ranges of tiles.
template <class X, class Out, class M, class Projection = std::identity>
void reduce_rows(const cuda::device& on, const cuda::device_view<X>& x, const cuda::device_view<Out>& out, const M& m,
                 const Projection& projection = {}) {
  const auto rows = cuda::input(x).rows(projection);
  cuda::with_workspace(on, on.fold_bytes(rows, m), [&](const cuda::workspace& w) {
    on.fold(rows, m, cuda::output(x, out, rows.size(), m), w);
  });
}
template <class X, class M>
std::size_t reduce_rows_workspace(const cuda::device& on, const cuda::device_view<X>& x, const M& m) {
  return on.fold_bytes(cuda::input(x).rows(), m);
}
template <class X, class Out, class M, class Projection = std::identity>
void reduce_rows_into(const cuda::device& on, const cuda::device_view<X>& x, const cuda::device_view<Out>& out,
                      const M& m, const cuda::workspace& w, const Projection& projection = {}) {
  const auto rows = cuda::input(x).rows(projection);
  on.fold(rows, m, cuda::output(x, out, rows.size(), m), w);
}

/// reduce_segments on a GPU. The S + 1 offsets are in device memory, where nobody checks them: they must begin at 0, end at
/// the number of elements and never decrease.
template <class X, class Offset, class Out, class M, class Projection = std::identity>
void reduce_segments(const cuda::device& on, const cuda::device_view<X>& xs, const cuda::device_view<Offset>& offsets,
                     const cuda::device_view<Out>& out, const M& m, const Projection& projection = {}) {
  const auto segments = cuda::segments_of(xs, offsets, projection);
  cuda::with_workspace(on, on.fold_bytes(segments, m), [&](const cuda::workspace& w) {
    on.fold(segments, m, cuda::output(xs, out, segments.size(), m), w);
  });
}
template <class X, class Offset, class M>
std::size_t reduce_segments_workspace(const cuda::device& on, const cuda::device_view<X>& xs,
                                      const cuda::device_view<Offset>& offsets, const M& m) {
  return on.fold_bytes(cuda::segments_of(xs, offsets, std::identity{}), m);
}
template <class X, class Offset, class Out, class M, class Projection = std::identity>
void reduce_segments_into(const cuda::device& on, const cuda::device_view<X>& xs,
                          const cuda::device_view<Offset>& offsets, const cuda::device_view<Out>& out, const M& m,
                          const cuda::workspace& w, const Projection& projection = {}) {
  const auto segments = cuda::segments_of(xs, offsets, projection);
  on.fold(segments, m, cuda::output(xs, out, segments.size(), m), w);
}

/// The scans (scan.hpp) of a range, or of every row along the last axis, on a GPU; y has the shape of x and may be exactly
/// x. Two reads and a write of memory; rows up to 1024 elements are read once from beyond the cache.
template <class X, class Y, class M, class Projection = std::identity>
void inclusive_scan(const cuda::device& on, const cuda::device_view<X>& x, const cuda::device_view<Y>& y, const M& m,
                    const Projection& projection = {}) {
  cuda::scan_rows<scan_kind::inclusive>(on, x, y, m, std::nullopt, projection);
}
template <class X, class Y, class M, class Projection = std::identity>
void exclusive_scan(const cuda::device& on, const cuda::device_view<X>& x, const cuda::device_view<Y>& y, const M& m,
                    const Projection& projection = {}) {
  cuda::scan_rows<scan_kind::exclusive>(on, x, y, m, std::nullopt, projection);
}
/// The bytes of workspace that either scan of x needs.
template <class X, class M>
std::size_t scan_workspace(const cuda::device& on, const cuda::device_view<X>& x, const M& m) {
  return on.scan_bytes<scan_kind::exclusive>(cuda::input(x).rows(), m);
}
template <class X, class Y, class M, class Projection = std::identity>
void inclusive_scan_into(const cuda::device& on, const cuda::device_view<X>& x, const cuda::device_view<Y>& y,
                         const M& m, const cuda::workspace& w, const Projection& projection = {}) {
  cuda::scan_rows<scan_kind::inclusive>(on, x, y, m, w, projection);
}
template <class X, class Y, class M, class Projection = std::identity>
void exclusive_scan_into(const cuda::device& on, const cuda::device_view<X>& x, const cuda::device_view<Y>& y,
                         const M& m, const cuda::workspace& w, const Projection& projection = {}) {
  cuda::scan_rows<scan_kind::exclusive>(on, x, y, m, w, projection);
}

template <class X, class... Rest>
  requires(!cuda::is_device_view<X>)
void reduce(const cuda::device&, const X&, const Rest&...) {
  cuda::refuse_host_memory<X>();
}
template <class X, class... Rest>
  requires(!cuda::is_device_view<X>)
void reduce_rows(const cuda::device&, const X&, const Rest&...) {
  cuda::refuse_host_memory<X>();
}
template <class X, class... Rest>
  requires(!cuda::is_device_view<X>)
void reduce_segments(const cuda::device&, const X&, const Rest&...) {
  cuda::refuse_host_memory<X>();
}
template <class X, class... Rest>
  requires(!cuda::is_device_view<X>)
void inclusive_scan(const cuda::device&, const X&, const Rest&...) {
  cuda::refuse_host_memory<X>();
}
template <class X, class... Rest>
  requires(!cuda::is_device_view<X>)
void exclusive_scan(const cuda::device&, const X&, const Rest&...) {
  cuda::refuse_host_memory<X>();
}

}  // namespace regroup
