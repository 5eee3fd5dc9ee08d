// SPDX-License-Identifier: Apache-2.0
// The operations that a kernel needs from the machine: its thread and block numbers, barriers, values handed to neighbours,
// arrays in shared memory. Kernels are plain C++ templates over these operations. A device implements each with an
// instruction (cuda/device_block.cuh); the tests emulate them (properties/cuda/emulator.hpp), so every kernel also runs
// without a GPU. Kernels are constexpr, which nvcc's --expt-relaxed-constexpr accepts as device code, so no macro is needed.
// Level: block.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "regroup/executor.hpp"

namespace regroup::cuda {

/// Threads of a block, one for each lane of a tile; and of a warp.
inline constexpr int block_threads = static_cast<int>(lanes);
inline constexpr int warp_threads = 32;
/// Blocks of one launch at most; kernels step over what is left.
inline constexpr index most_blocks = index{1} << 20;

/// A place of global memory where blocks count what they have taken; 0 before a kernel.
struct [[gnu::may_alias]] tickets {
  std::uint32_t taken;
};
/// A place of global memory where a block hands on a value; nothing is there before a kernel. Small ones travel in one
/// access of 16 bytes.
template <class T>
struct alignas(16) [[gnu::may_alias]] handed {
  static constexpr bool is_small = sizeof(T) <= 12 && alignof(T) <= 4;
  T value;
  std::uint32_t is_there;
};

/// The operations, all of them collective but the first three. A group is `Width` neighbouring threads of a warp (1, 2, 4,
/// ..., 32), aligned; threads of different groups may be anywhere.
///     thread(), blocks(), block()        the thread in its block; how many blocks, and which of them
///     barrier()                          every thread of the block arrives; shared memory written before is seen after
///     any(x)                             a barrier, and whether some thread of the block said true
///     group_barrier<Width>()             the same for a group
///     shuffle_down<Width>(x, d)          x of the thread d places further in the group; one's own past its end
///     shuffle_up<Width>(x, d)            x of the thread d places before; one's own ahead of its start
///     shuffle_xor<Width>(x, d)           x of the thread in the group whose number differs in the bits of d
///     broadcast<Width>(x)                x of the group's first thread
///     mma<T>(left, right, sums)          a warp's product of small matrices, added to sums (cuda/mma.hpp)
///     matrices<Transposed>(x, i)         a warp's four matrices 8 x 8 from rows in shared memory (mma_place_loaded)
///     multiply_rows<T, N>(...), multiply_columns<T, N>(...)   a block's products with what they read from shared memory
///     has_wide_products                  whether those need no registers for what they read (a type's constant)
///     begin_products(), end_products()   around a batch of those two, which run while the thread goes on
///     wait_for_products<N>(sums...)      until all but the last N batches are done: till then shared memory stays as it is
///     shared<T, N>()                     the block's array of N objects T, one for each pair (T, N): `get(i)`, `set(i, x)`
///     large<T, N>()                      one array more, of a kernel that says its bytes, `large_bytes`; aligned to 1024
/// And what a thread does alone:
///     narrowed<T>(x, y)                  both rounded to 16 bits, side by side in a word (cuda/mma.hpp)
///     exp2(x)                            2^x within 4 u; 0 below 2^-126
///     ticket(tickets)                    how many have been taken before, by any thread of any block
///     publish(handed, x)                 hands x on; and x, of who has begun before whoever waits for it, say by an earlier
///     wait_for(handed)                   ticket
///     copy(x, i, from, is_there)         16 bytes on their way from aligned global memory to x[i], or zeros; there for this
///     wait_for_copies()                  thread after its next wait, and for others after a barrier behind that
template <class B>
concept block = requires(B& b, float x, int i) {
  { b.thread() } -> std::same_as<int>;
  { b.block() } -> std::same_as<index>;
  { b.blocks() } -> std::same_as<index>;
  b.barrier();
  { b.any(true) } -> std::same_as<bool>;
  b.template group_barrier<warp_threads>();
  { b.template shuffle_down<warp_threads>(x, i) } -> std::same_as<float>;
  { b.template shuffle_up<warp_threads>(x, i) } -> std::same_as<float>;
  { b.template shuffle_xor<warp_threads>(x, i) } -> std::same_as<float>;
  { b.template broadcast<warp_threads>(x) } -> std::same_as<float>;
  { b.template shared<float, 2>().get(i) } -> std::same_as<float>;
  b.template shared<float, 2>().set(i, x);
};

/// The smaller, by value: std::min takes references, and a device has no address for a constant of the host's. nvcc says
/// nothing of it and compiles a trap.
template <class T>
constexpr T smaller(T a, std::type_identity_t<T> b) {
  return b < a ? b : a;
}

/// f(0), ..., f(N - 1), every index a constant once inlined: arrays indexed so stay in registers.
template <int N, class F>
constexpr void unrolled(const F& f) {
  [&]<int... i>(std::integer_sequence<int, i...>) { (f(i), ...); }(std::make_integer_sequence<int, N>{});
}

/// Room for one value, which need not have a default constructor.
template <class T>
union slot {
  static_assert(std::is_trivially_copyable_v<T>, "regroup: what is kept in a device's memory must be trivially copyable");
  char nothing;
  T value;
  constexpr slot() noexcept : nothing(0) {}
};
template <class T, int N>
using slots = slot<T>[static_cast<std::size_t>(N)];

/// Blocks of a kernel that a multiprocessor is to hold at once, which bounds the registers of a thread (65,536 in all): by
/// the bytes that each thread holds of elements and of a state. A kernel says it by `static constexpr int resident_blocks`.
constexpr int resident_blocks_for(std::size_t element_bytes, std::size_t state_bytes) {
  const std::size_t registers = 64 + element_bytes / 4 + state_bytes / 2;
  const std::size_t blocks = 65536 / block_threads / registers;
  return static_cast<int>(blocks < 3 ? 3 : blocks > 8 ? 8 : blocks);
}
template <class Kernel>
inline constexpr int resident_blocks = [] {
  if constexpr (requires { Kernel::resident_blocks; }) return int{Kernel::resident_blocks};
  return 4;
}();

/// Bytes of a kernel's `large` array: past the 48 KiB that `shared` arrays share.
template <class Kernel>
inline constexpr std::size_t large_bytes = [] {
  if constexpr (requires { Kernel::large_bytes; }) return std::size_t{Kernel::large_bytes};
  return std::size_t{0};
}();
/// Threads of its blocks, which it says by `static constexpr int threads` where they are not a tile's lanes.
template <class Kernel>
inline constexpr int threads_of = [] {
  if constexpr (requires { Kernel::threads; }) return int{Kernel::threads};
  return block_threads;
}();

/// Whether a T may go to a device with a kernel, as bytes. (A std::tuple's assignment is not trivial, but nobody assigns.)
template <class T>
inline constexpr bool travels = std::is_trivially_copy_constructible_v<T> && std::is_trivially_destructible_v<T>;
template <class T>
constexpr void require_to_travel() {
  static_assert(travels<T>,
                "regroup: a monoid and a projection go to a device as bytes, so they hold nothing that owns memory of the "
                "host's, such as a std::vector");
}

/// What a device asks of a state: it travels bytewise through registers, shared memory and shuffles.
inline constexpr std::size_t most_state_bytes = 96;
inline constexpr std::size_t most_scanned_bytes = 48;
inline constexpr std::size_t most_state_alignment = 16;
template <class M, std::size_t Most = most_state_bytes>
constexpr void require_device_monoid() {
  static_assert(std::is_trivially_copyable_v<state_of<M>>,
                "regroup: on a device a state travels as bytes, so it must be trivially copyable; this one is not");
  static_assert(sizeof(state_of<M>) <= Most,
                "regroup: on a device a state has at most 96 bytes, and 48 in a scan: a block keeps one or two a lane");
  static_assert(alignof(state_of<M>) <= most_state_alignment,
                "regroup: on a device a state is aligned to at most 16 bytes, as shared memory and the longest loads are");
}

}  // namespace regroup::cuda
