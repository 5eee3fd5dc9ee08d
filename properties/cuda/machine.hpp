// SPDX-License-Identifier: Apache-2.0
// The state of the emulated device: the threads of the blocks of one cluster, which of them wait for which, what they have
// written to shared memory and who has read it since, and which accesses no barrier separates.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <stdexcept>
#include <typeindex>
#include <utility>
#include <vector>

#include "regroup/cuda/block.hpp"

namespace emulated {

using regroup::index;

/// What the emulator says of a kernel that is wrong.
struct broken_kernel : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class schedule { forward, backward, random };

/// One operation of a kind, counted from 0 in each thread's own order, that is left out or done at a wrong place: by every
/// warp, or by one, as they are counted through a cluster. An array of one element has no wrong place.
struct fault {
  enum kind { none, skip_barrier, skip_wait, shift_shuffle, shift_get, shift_set, own_block, kinds } what = none;
  int which = 0;
  int warp = -1;  // every
};

class machine {
 public:
  explicit machine(schedule order = schedule::forward, std::uint64_t seed = 1, fault broken = {})
      : order_(order), random_(seed), fault_(broken) {}

  /// Operations that the busiest thread has done, of those that a fault would hit, and of the kind.
  [[nodiscard]] int operations(fault::kind what) const { return most_[what]; }

  /// Runs a kernel over a grid, cluster after cluster of so many blocks.
  template <class Kernel>
  void run(const Kernel& kernel, index blocks, int threads = regroup::cuda::threads_of<Kernel>, int cluster = 1);

 private:
  template <class T>
  class array;
  class operations_of;
  friend class operations_of;

  struct access {
    int thread = -1;
    int cluster_epoch = 0;
    int block_epoch = 0;
    int group_epoch = 0;
    bool is_copy = false;  // on its way: not even its own thread may look
  };
  struct shared_array {
    std::vector<std::byte> bytes;
    std::vector<access> writer;               // of each element; thread -1: nobody yet
    std::vector<std::vector<access>> readers;  // since then
  };
  struct copy_on_its_way {
    shared_array* to;
    std::size_t at;
    const void* from;  // null for zeros
  };
  struct block_memory {
    std::map<std::pair<std::type_index, int>, shared_array> arrays;
    int touched = 0;   // the cluster's barriers before the last access of another block
    bool is_left = false;
  };
  enum class waiting { nothing, cluster, barrier, group, shuffle };
  struct thread {
    waiting on = waiting::nothing;
    int width = 0;
    int cluster_epoch = 0;
    int block_epoch = 0;
    int group_epoch = 0;
    bool done = true;
    bool has_arrived = false;  // at a barrier of the cluster, and does not wait yet
    bool has_reached = false;  // another block's memory since it arrived last
    const void* value = nullptr;  // what it hands to a shuffle
    int counts[fault::kinds] = {};
    std::vector<copy_on_its_way> copies;
    std::vector<std::vector<std::function<void()>>> products;  // batches that nobody has waited for
    std::exception_ptr thrown;
  };

  void start_cluster(index first_block, index blocks, int threads, int cluster) {
    block_ = first_block;
    blocks_ = blocks;
    block_threads_ = threads;
    shared_.assign(static_cast<std::size_t>(cluster), {});
    threads_.assign(static_cast<std::size_t>(cluster * threads), {});
    for (thread& t : threads_) t.done = false;
  }
  [[nodiscard]] std::vector<int> order_of(int count) {
    std::vector<int> order(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), 0);
    if (order_ == schedule::backward) std::reverse(order.begin(), order.end());
    if (order_ == schedule::random) std::shuffle(order.begin(), order.end(), random_);
    return order;
  }
  /// Whether thread t's wait is over: everybody it waits for is there, in the same operation.
  [[nodiscard]] bool arrived(int t) const {
    const thread& own = threads_[static_cast<std::size_t>(t)];
    const int width = own.width;
    const int first = t / width * width;
    for (int i = first; i < first + width; ++i) {
      const thread& other = threads_[static_cast<std::size_t>(i)];
      if (other.done) throw broken_kernel("a thread has returned that others wait for");
      if (other.on != own.on || other.width != own.width) return false;
    }
    return true;
  }
  void release(int t) {
    const thread own = threads_[static_cast<std::size_t>(t)];
    const int width = own.width;
    const int first = t / width * width;
    for (int i = first; i < first + width; ++i) {
      thread& other = threads_[static_cast<std::size_t>(i)];
      if (own.on == waiting::cluster) ++other.cluster_epoch;
      if (own.on == waiting::barrier) ++other.block_epoch;
      if (own.on == waiting::group) ++other.group_epoch;
      other.on = waiting::nothing;
    }
  }
  /// Whether `before`, by another thread, is certain to come before what thread `now` does.
  [[nodiscard]] bool is_ordered(const access& before, int now, int width) const {
    const thread& t = threads_[static_cast<std::size_t>(now)];
    if (before.thread == now || before.cluster_epoch < t.cluster_epoch) return true;
    if (before.thread / block_threads_ == now / block_threads_ && before.block_epoch < t.block_epoch) return true;
    return before.thread / width == now / width && before.group_epoch < t.group_epoch;
  }
  void leave(int t) {
    block_memory& memory = shared_[static_cast<std::size_t>(t / block_threads_)];
    memory.is_left = true;
    if (memory.touched > threads_[static_cast<std::size_t>(t)].cluster_epoch) {
      throw broken_kernel("a block leaves while another may use its shared memory");
    }
  }

  schedule order_;
  std::mt19937_64 random_;
  fault fault_;
  int most_[fault::kinds] = {};
  index block_ = 0;
  index blocks_ = 0;
  int block_threads_ = 0;
  std::vector<thread> threads_;       // of all the cluster's blocks
  std::vector<block_memory> shared_;  // of each of them
  int group_width_ = regroup::cuda::warp_threads;  // of the narrowest group barrier so far
};

}  // namespace emulated
