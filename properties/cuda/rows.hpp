// SPDX-License-Identifier: Apache-2.0
// What the tests of softmax's rows share: emulated kernels, launched as the verbs of cuda/softmax.cuh do, with exactly
// the workspace that is asked for.
#pragma once

#include <vector>

#include "../order/digest.hpp"
#include "folds.hpp"
#include "regroup/cuda/row_verbs.hpp"

namespace emulated {

namespace cuda = regroup::cuda;

/// What a cuda::device has for the verbs of rows; of so many blocks or clusters at most.
struct executor {
  machine& on;
  int clusters = cuda::most_cluster_blocks;
  index most_blocks = cuda::most_blocks;
  template <class Kernel>
  [[nodiscard]] int most_cluster_blocks() const {
    return clusters;
  }
  template <class Kernel>
  void launch(const Kernel& kernel, index blocks, int cluster = 1) const {
    on.run(kernel, std::min(blocks, most_blocks * cluster), cuda::threads_of<Kernel>, cluster);
  }
  template <class Batch, class M, class Put>
  void fold(const Batch& rows, const M& m, const Put& put, const cuda::workspace& w) const {
    w.require(fold_bytes(rows, m));
    launch_fold([this](const auto& kernel, index blocks) { launch(kernel, blocks); }, plan<M>(rows), m, rows,
                static_cast<regroup::state_of<M>*>(w.data), put);
  }
  template <class Batch, class M>
  [[nodiscard]] std::size_t fold_bytes(const Batch& rows, const M&) const {
    return static_cast<std::size_t>(workspace_states(plan<M>(rows), rows)) * sizeof(regroup::state_of<M>);
  }

 private:
  template <class M, class Batch>
  [[nodiscard]] static cuda::fold_plan plan(const Batch& rows) {
    return cuda::plan_fold(lengths_of(rows), 1, sizeof(regroup::state_of<M>));
  }
};

/// 16 bytes at a multiple of 16, of which workspaces are made: as many as are asked for and no more.
struct alignas(16) unit {
  std::byte bytes[16];
};
inline device_memory<unit> memory_of(std::size_t bytes) { return {static_cast<index>((bytes + 15) / 16), unit{}}; }

template <class Real, class In, class Out, class Look>
void run_rows(machine& on, const In& rows, const Out& out, regroup::softmax_parts::scaled<Real> seen, const Look& look,
              index most_blocks = cuda::most_blocks, int clusters = cuda::most_cluster_blocks) {
  const auto bytes = cuda::workspace_of<Real, Look>(rows).bytes;
  const auto workspace = memory_of(bytes);
  const executor launcher{on, clusters, most_blocks};
  const auto launch = [&](const auto& kernel, index blocks, int cluster) { launcher.launch(kernel, blocks, cluster); };
  cuda::launch_rows(launch, clusters, rows, out, seen, look, workspace.data());
}

/// softmax or log_softmax of every row, and the logsumexps.
template <template <class> class Map, class X, class Y, class Real = regroup::widened<std::remove_const_t<X>>>
std::vector<Real> normalise(machine& on, const cuda::row_batch<X>& x, const cuda::row_batch<Y>& y, double scale = 1,
                            index most_blocks = cuda::most_blocks, int clusters = cuda::most_cluster_blocks) {
  std::vector<Real> lse(static_cast<std::size_t>(x.count), Real{99});
  const auto seen = regroup::softmax_parts::scale_of<Real>(scale);
  run_rows(on, x, y, seen, cuda::look_normalise<Map, Real>{seen, {lse.data(), 1}}, most_blocks, clusters);
  return lse;
}

/// Places of a row of n elements that one wrong step of a tree leaves out: in the lanes of every strip, and of the first
/// past two tiles, which are as many as are folded by a way of their own.
inline std::vector<index> places_left_out(index n) {
  std::vector<index> places;
  for (index first = 0; first < n && first <= 2 * regroup::tile_elements; first += cuda::strip_elements) {
    for (const index lane : {0, 1, 2, 4, 8, 16, 32, 64, 96}) {
      if (first + lane < n) places.push_back(first + lane);
    }
  }
  return places;
}

/// The rows of an array.
template <class X>
cuda::row_batch<X> places_of(std::vector<X>& xs, index count) {
  const auto n = static_cast<index>(xs.size()) / count;
  return {xs.data(), count, n, n, 1};
}

}  // namespace emulated
