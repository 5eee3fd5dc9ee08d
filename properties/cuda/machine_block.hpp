// SPDX-License-Identifier: Apache-2.0
// The operations of cuda/block.hpp on an emulated device, for one of its threads. Each is counted, may be broken on purpose,
// and refuses what a device would silently get wrong.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>
#include <type_traits>
#include <typeindex>
#include <utility>

#include "fiber.hpp"
#include "machine.hpp"
#include "regroup/cuda/mma.hpp"
#include "regroup/math.hpp"

namespace emulated {

/// An array in shared memory, watched.
template <class T>
class machine::array {
 public:
  array(operations_of& by, shared_array& memory, int size) : by_(by), memory_(memory), size_(size) {}
  T get(int i) const;
  void set(int i, const T& x) const;

 private:
  friend class operations_of;
  /// The element that thread `by_` may write now, and is noted to.
  [[nodiscard]] std::size_t written(int i, bool is_copy) const;
  [[nodiscard]] std::size_t checked(int i) const {
    if (i < 0 || i >= size_) throw broken_kernel("index " + std::to_string(i) + " of " + std::to_string(size_));
    return static_cast<std::size_t>(i);
  }
  operations_of& by_;
  shared_array& memory_;
  int size_;
};

/// What one thread's kernel is called with: a regroup::cuda::cluster_block. `thread` counts through the cluster.
class machine::operations_of {
 public:
  operations_of(machine& m, int thread) : machine_(m), thread_(thread) {}
  void runs_on(fiber& f) { fiber_ = &f; }

  [[nodiscard]] int thread() const { return thread_ % machine_.block_threads_; }
  [[nodiscard]] index block() const { return machine_.block_ + cluster_rank(); }
  [[nodiscard]] index blocks() const { return machine_.blocks_; }
  [[nodiscard]] int cluster_rank() const { return thread_ / machine_.block_threads_; }
  [[nodiscard]] int cluster_blocks() const { return static_cast<int>(machine_.shared_.size()); }
  void barrier() {
    if (!hit(fault::skip_barrier)) wait(waiting::barrier, machine_.block_threads_);
  }
  void cluster_arrive(bool has_written) {
    if (own().has_reached && !has_written) throw broken_kernel("a thread arrives that does not say what it has written");
    own().has_reached = false;
    own().has_arrived = true;
  }
  void cluster_wait() {
    if (!own().has_arrived) throw broken_kernel("a thread waits for its cluster before it has arrived");
    own().has_arrived = false;
    if (!hit(fault::skip_barrier)) wait(waiting::cluster, static_cast<int>(machine_.threads_.size()));
  }
  bool any(bool x);
  template <int Width>
  void group_barrier() {
    machine_.group_width_ = std::min(machine_.group_width_, Width);
    if (!hit(fault::skip_barrier)) wait(waiting::group, Width);
  }
  template <int Width, class T>
  T shuffle_down(const T& x, int d) {
    const int from = thread_ % Width + d + (hit(fault::shift_shuffle) ? 1 : 0);
    return from_group<Width>(x, from < Width ? from - thread_ % Width : 0);
  }
  template <int Width, class T>
  T shuffle_up(const T& x, int d) {
    const int from = thread_ % Width - d - (hit(fault::shift_shuffle) ? 1 : 0);
    return from_group<Width>(x, from >= 0 ? from - thread_ % Width : 0);
  }
  /// A fault takes a place too low: one too high would, after d = 1, ..., have the same.
  template <int Width, class T>
  T shuffle_xor(const T& x, int d) {
    const int own_place = thread_ % Width, shift = hit(fault::shift_shuffle) ? Width - 1 : 0;
    return from_group<Width>(x, ((own_place ^ d) + shift) % Width - own_place);
  }
  template <int Width, class T>
  T broadcast(const T& x) {
    return from_group<Width>(x, (hit(fault::shift_shuffle) && Width > 1 ? 1 : 0) - thread_ % Width);
  }
  /// The lanes' words are where the documentation has them; products are exact, and sums rounded once.
  template <class T>
  regroup::cuda::mma_sums mma(const regroup::cuda::mma_left& left, const regroup::cuda::mma_right& right,
                              regroup::cuda::mma_sums sums) {
    namespace cuda = regroup::cuda;
    const std::pair held(left, right);
    own().value = &held;
    wait(waiting::shuffle, cuda::warp_threads);
    constexpr int depth = cuda::mma_depth<T>;
    double rows[16][16] = {}, columns[16][8] = {};
    const int shift = hit(fault::shift_shuffle) ? 1 : 0;
    for (int lane = 0; lane < cuda::warp_threads; ++lane) {
      const int from = thread_ / cuda::warp_threads * cuda::warp_threads + (lane + shift) % cuda::warp_threads;
      const auto& [a, b] = *static_cast<const decltype(held)*>(machine_.threads_[static_cast<std::size_t>(from)].value);
      for (int i = 0; i < depth / 2; ++i) {
        const auto at = cuda::mma_place_left<T>(lane, i);
        rows[at.row][at.column] = static_cast<double>(regroup::widen(cuda::mma_element<T>(a.words, i)));
      }
      for (int i = 0; i < depth / 4; ++i) {
        const auto at = cuda::mma_place_right<T>(lane, i);
        columns[at.row][at.column] = static_cast<double>(regroup::widen(cuda::mma_element<T>(b.words, i)));
      }
    }
    for (int i = 0; i < 4; ++i) {
      const auto at = cuda::mma_place_sum(thread_ % cuda::warp_threads, i);
      double sum = static_cast<double>(sums.sums[i]);
      for (int k = 0; k < depth; ++k) sum += rows[at.row][k] * columns[k][at.column];
      sums.sums[i] = static_cast<float>(sum);
    }
    wait(waiting::shuffle, cuda::warp_threads);
    return sums;
  }
  /// The lanes' words of four matrices, each of eight rows that the documentation's lanes point to.
  template <bool Transposed>
  regroup::cuda::mma_left matrices(const array<regroup::cuda::mma_row>& x, int i) {
    namespace cuda = regroup::cuda;
    const cuda::mma_row own_row = x.get(i);
    own().value = &own_row;
    wait(waiting::shuffle, cuda::warp_threads);
    const int lane = thread_ % cuda::warp_threads, shift = hit(fault::shift_shuffle) ? 1 : 0;
    cuda::mma_left taken{};
    for (int matrix = 0; matrix < 4; ++matrix) {
      for (int e = 0; e < 2; ++e) {
        const auto at = cuda::mma_place_loaded(lane, e, Transposed);
        const int from = thread_ - lane + (matrix * 8 + at.row + shift) % cuda::warp_threads;
        const auto& row = *static_cast<const cuda::mma_row*>(machine_.threads_[static_cast<std::size_t>(from)].value);
        taken.words[matrix] |= (row.words[at.column / 2] >> at.column % 2 * 16 & 0xffffu) << e * 16;
      }
    }
    wait(waiting::shuffle, cuda::warp_threads);
    return taken;
  }
  /// Products that run while the thread goes on, done as late as can be: when it waits for them.
  static constexpr bool has_wide_products = true;
  template <class... Arrays>
  void begin_products(Arrays&...) {
    own().products.emplace_back();
  }
  void end_products() {}
  template <int N, class... Arrays>
  void wait_for_products(Arrays&...) {
    if (hit(fault::skip_wait)) return;
    auto& batches = own().products;
    const std::size_t count = batches.size() > N ? batches.size() - N : 0;
    for (std::size_t i = 0; i < count; ++i) {
      for (const auto& product : batches[i]) product();
    }
    batches.erase(batches.begin(), batches.begin() + static_cast<std::ptrdiff_t>(count));
  }
  template <class T, int Eights>
  void multiply_rows(const array<regroup::cuda::mma_row>& x, regroup::cuda::mma_buffer left, int row,
                     regroup::cuda::mma_buffer right, int piece, bool adds, float* upper, float* lower) {
    own().products.back().push_back(
        [=, this] { regroup::cuda::multiply_rows<T, Eights>(*this, x, left, row, right, piece, adds, upper, lower); });
  }
  template <class T, int Eights>
  void multiply_columns(const regroup::cuda::mma_left& left, const array<regroup::cuda::mma_row>& x,
                        regroup::cuda::mma_buffer right, int row, float* upper, float* lower) {
    own().products.back().push_back(
        [=, &left, this] { regroup::cuda::multiply_columns<T, Eights>(*this, left, x, right, row, upper, lower); });
  }
  template <class T>
  [[nodiscard]] std::uint32_t narrowed(float x, float y) const {
    return regroup::cuda::factor_of(regroup::cuda::mma_pair<T>{{T(x), T(y)}}).words[0];
  }
  [[nodiscard]] float exp2(float x) const { return regroup::math::exp2(x); }
  template <class T>
  void copy(const array<T>& to, int i, const void* from, bool is_there) {
    static_assert(sizeof(T) == 16);
    if (reinterpret_cast<std::uintptr_t>(from) % 16 != 0) throw broken_kernel("a copy from an address that is not aligned");
    own().copies.push_back({&to.memory_, to.written(i, true), is_there ? from : nullptr});
  }
  void wait_for_copies() {
    if (hit(fault::skip_wait)) return;
    for (const copy_on_its_way& c : own().copies) {
      std::byte* const to = c.to->bytes.data() + 16 * c.at;
      if (c.from == nullptr) {
        std::memset(to, 0, 16);
      } else {
        std::memcpy(to, c.from, 16);
      }
      c.to->writer[c.at] = now();
    }
    own().copies.clear();
  }
  index ticket(regroup::cuda::tickets& t) const { return t.taken++; }
  template <class T>
  void publish(regroup::cuda::handed<T>& to, const T& x) const {
    to.value = x;
    to.is_there = 1;
  }
  template <class T>
  T wait_for(const regroup::cuda::handed<T>& at) const {  // blocks run one after another
    if (at.is_there != 1) throw broken_kernel("a block waits for one that may not have begun");
    return at.value;
  }
  template <class T, int N>
  array<T> shared() {
    return array_of<T, N>(machine_.shared_[static_cast<std::size_t>(cluster_rank())]);
  }
  template <class T, int N>
  array<T> large() {
    return shared<T, N>();
  }
  template <class T, int N>
  array<T> shared_of(int rank) {
    const int at = hit(fault::own_block) ? cluster_rank() : rank;  // shifted, all would still be told
    block_memory& other = machine_.shared_[static_cast<std::size_t>(at)];
    if (at != cluster_rank()) {
      if (own().has_arrived) throw broken_kernel("shared memory of another block after arriving at a barrier");
      if (own().cluster_epoch == 0) throw broken_kernel("shared memory of a block that may not have begun");
      if (other.is_left) throw broken_kernel("shared memory of a block that has left");
      other.touched = std::max(other.touched, own().cluster_epoch + 1);
      own().has_reached = true;
    }
    return array_of<T, N>(other);
  }

 private:
  friend class machine;

  template <class T, int N>
  array<T> array_of(block_memory& block) {
    static_assert(std::is_trivially_copyable_v<T>);
    auto& memory = block.arrays[{typeid(T), N}];
    if (memory.writer.empty()) {
      memory.bytes.assign(sizeof(T) * N, std::byte{0xa5});
      memory.writer.resize(N);
      memory.readers.resize(N);
    }
    return {*this, memory, N};
  }
  [[nodiscard]] struct machine::thread& own() const { return machine_.threads_[static_cast<std::size_t>(thread_)]; }
  /// What comes after a thread has arrived is not before the cluster's barrier.
  [[nodiscard]] access now() const {
    return {thread_, own().cluster_epoch + (own().has_arrived ? 1 : 0), own().block_epoch, own().group_epoch};
  }
  bool hit(fault::kind what) const {
    const int number = own().counts[what]++;
    if (machine_.fault_.warp >= 0 && machine_.fault_.warp != thread_ / regroup::cuda::warp_threads) return false;
    machine_.most_[what] = std::max(machine_.most_[what], number + 1);
    return machine_.fault_.what == what && machine_.fault_.which == number;
  }
  void wait(waiting on, int width) {
    own().on = on;
    own().width = width;
    fiber_->suspend();
    if (own().thrown) std::rethrow_exception(own().thrown);
  }
  /// x of the thread `ahead` further. Everybody hands a value in, then everybody takes one, then everybody goes on.
  template <int Width, class T>
  T from_group(const T& x, int ahead) {
    own().value = &x;
    wait(waiting::shuffle, Width);
    const T taken = *static_cast<const T*>(machine_.threads_[static_cast<std::size_t>(thread_ + ahead)].value);
    wait(waiting::shuffle, Width);
    return taken;
  }

  machine& machine_;
  int thread_;
  fiber* fiber_ = nullptr;
};

inline bool machine::operations_of::any(bool x) {
  if (hit(fault::skip_barrier)) return x;
  own().value = &x;
  const int threads = machine_.block_threads_;
  wait(waiting::barrier, threads);
  bool some = false;
  const auto first = machine_.threads_.begin() + cluster_rank() * threads;
  for (auto t = first; t != first + threads; ++t) some = some || *static_cast<const bool*>(t->value);
  wait(waiting::barrier, threads);
  return some;
}

template <class T>
T machine::array<T>::get(int i) const {
  const std::size_t at = checked((i + (size_ > 1 && by_.hit(fault::shift_get) ? 1 : 0)) % size_);
  const access& writer = memory_.writer[at];
  if (writer.thread < 0) throw broken_kernel("shared memory is read that nobody wrote");
  if (writer.is_copy) throw broken_kernel("a read does not wait for a copy");
  const machine& m = by_.machine_;
  if (!m.is_ordered(writer, by_.thread_, m.group_width_)) throw broken_kernel("a read races with a write");
  memory_.readers[at].push_back(by_.now());
  return *reinterpret_cast<const T*>(memory_.bytes.data() + at * sizeof(T));
}
template <class T>
std::size_t machine::array<T>::written(int i, bool is_copy) const {
  const std::size_t at = checked((i + (size_ > 1 && by_.hit(fault::shift_set) ? 1 : 0)) % size_);
  const machine& m = by_.machine_;
  const access& writer = memory_.writer[at];
  if (writer.is_copy) throw broken_kernel("a write does not wait for a copy");
  if (writer.thread >= 0 && !m.is_ordered(writer, by_.thread_, m.group_width_)) throw broken_kernel("two writes race");
  for (const access& reader : memory_.readers[at]) {
    if (!m.is_ordered(reader, by_.thread_, m.group_width_)) throw broken_kernel("a write races with a read");
  }
  memory_.writer[at] = by_.now();
  memory_.writer[at].is_copy = is_copy;
  memory_.readers[at].clear();
  return at;
}
template <class T>
void machine::array<T>::set(int i, const T& x) const {
  std::memcpy(memory_.bytes.data() + written(i, false) * sizeof(T), &x, sizeof(T));
}

}  // namespace emulated
