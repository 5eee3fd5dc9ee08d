// SPDX-License-Identifier: Apache-2.0
// What the tests that need a GPU share: memory that comes and goes with a vector, work in a captured graph, and the exit
// code of a test that finds no GPU: 77, which ctest shows as skipped.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "regroup/cuda/device.cuh"

namespace gpu {

/// A copy of a vector in device memory.
template <class T>
class array {
 public:
  explicit array(const std::vector<T>& xs) : size_(static_cast<regroup::index>(xs.size())) {
    regroup::cuda::check(cudaMalloc(&data_, xs.size() * sizeof(T) + 1), "cudaMalloc");
    regroup::cuda::check(cudaMemcpy(data_, xs.data(), xs.size() * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  ~array() { cudaFree(data_); }
  array(const array&) = delete;
  array& operator=(const array&) = delete;
  [[nodiscard]] T* data() const { return data_; }
  [[nodiscard]] regroup::cuda::device_view<T> view() const { return {data_, {size_}}; }
  [[nodiscard]] regroup::cuda::device_view<T> rows(regroup::index count) const { return {data_, {count, size_ / count}}; }
  [[nodiscard]] std::vector<T> values() const {
    std::vector<T> xs(static_cast<std::size_t>(size_));
    regroup::cuda::check(cudaMemcpy(xs.data(), data_, xs.size() * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return xs;
  }
  /// Every bit set: NaN, or -1.
  void forget() const {
    regroup::cuda::check(cudaMemset(data_, 0xff, static_cast<std::size_t>(size_) * sizeof(T)), "cudaMemset");
  }

 private:
  T* data_ = nullptr;
  regroup::index size_;
};

/// Under compute-sanitizer (REGROUP_SMALL) longer inputs are left out.
inline bool is_left_out(regroup::index n) { return n > 20'000 && std::getenv("REGROUP_SMALL") != nullptr; }

/// Faults so far; each is printed.
inline int faults = 0;
inline void expect(bool right, const char* what, regroup::index where = -1) {
  if (right) return;
  ++faults;
  std::printf("wrong: %s, %lld\n", what, static_cast<long long>(where));
}

/// work(device) captured in a graph, so that it neither allocates nor waits, and launched twice; look() after either.
template <class Work, class Look>
void in_a_graph(const Work& work, const Look& look) {
  using regroup::cuda::check;
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  check(cudaStreamCreate(&stream), "cudaStreamCreate");
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
  work(regroup::cuda::device(stream));
  check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  check(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  for (int launch = 0; launch < 2; ++launch) {
    check(cudaGraphLaunch(executable, stream), "cudaGraphLaunch");
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    look();
  }
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

/// Runs `body` where there is a GPU; otherwise says that the program has compiled and linked, and no more.
template <class Body>
int main_of(const Body& body) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("no CUDA device: compiled and linked only");
    return faults == 0 ? 77 : 1;
  }
  body();
  std::printf("%d faults\n", faults);
  return faults == 0 ? 0 : 1;
}

}  // namespace gpu
