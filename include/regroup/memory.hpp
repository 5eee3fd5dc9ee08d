// SPDX-License-Identifier: Apache-2.0
// How a large result is written: with non-temporal stores, so that no cache line is read only to be overwritten. And how
// elements are prefetched before they are read.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace regroup {

/// Outputs of more bytes than this, more than a core's share of most third-level caches, are written with non-temporal stores.
inline constexpr std::size_t cached_output_bytes = std::size_t{8} << 20;

inline constexpr std::size_t cache_line = 64;

#if defined(__x86_64__)
/// Non-temporal stores of a whole cache line (AVX-512) or half of one (AVX), instead of four 16-byte ones: writing
/// interleaved with computation takes 20% less time, 10% with halves.
[[gnu::target("avx512f")]] inline void copy_whole_lines(std::byte* to, const std::byte* from, std::size_t bytes) {
  using line [[gnu::vector_size(64), gnu::may_alias]] = long long;
  using line_anywhere [[gnu::aligned(1)]] = line;
  for (std::size_t i = 0; i < bytes; i += sizeof(line)) {
    const line x = *reinterpret_cast<const line_anywhere*>(from + i);
    asm volatile("vmovntdq %1, %0" : "=m"(*reinterpret_cast<line*>(to + i)) : "v"(x));
  }
}
[[gnu::target("avx")]] inline void copy_half_lines(std::byte* to, const std::byte* from, std::size_t bytes) {
  using half [[gnu::vector_size(32), gnu::may_alias]] = long long;
  using half_anywhere [[gnu::aligned(1)]] = half;
  for (std::size_t i = 0; i < bytes; i += sizeof(half)) {
    const half x = *reinterpret_cast<const half_anywhere*>(from + i);
    asm volatile("vmovntdq %1, %0" : "=m"(*reinterpret_cast<half*>(to + i)) : "x"(x));
  }
}
#endif

/// Copies whole cache lines to an aligned address with non-temporal stores; ranges must not overlap. Other threads may not
/// see them before `finish_past_caches()`.
inline void copy_lines_past_caches(void* to, const void* from, std::size_t bytes) {
#if defined(__x86_64__)
  // Each is called by name, so that callers compiled for those instructions inline it: a loop keeps no registers over a call.
  const auto copy = [&](const auto& lines) { lines(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes); };
  if (__builtin_cpu_supports("avx512f")) return copy(copy_whole_lines);
  if (__builtin_cpu_supports("avx")) return copy(copy_half_lines);
  auto* const out = static_cast<__m128i*>(to);
  const auto* const in = static_cast<const __m128i*>(from);
  for (std::size_t i = 0; i < bytes / sizeof(__m128i); ++i) _mm_stream_si128(out + i, _mm_loadu_si128(in + i));
#else
  std::memcpy(to, from, bytes);
#endif
}
inline void finish_past_caches() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

/// Whether this is an AMD processor: what is worth prefetching differs from Intel's.
inline bool is_amd() noexcept {
#if defined(__x86_64__)
  return __builtin_cpu_is("amd");
#else
  return false;
#endif
}

inline constexpr std::size_t page_bytes = 4096;  ///< of a small page, the kind most arrays lie in

/// Prefetches the first line of each small page that begins in the `bytes` from `first` on, so that its address is
/// translated; the range may lie past the end of any array. Nothing of a page is fetched before that, and a Zen 4 does not
/// keep the translation if lines are prefetched into the second-level cache. Forced inline: g++ drops calls of functions that
/// only prefetch.
[[gnu::always_inline]] inline void find_pages(const void* first, std::size_t bytes) {
  const auto from = reinterpret_cast<std::uintptr_t>(first);
  for (auto page = (from + page_bytes - 1) / page_bytes * page_bytes; page < from + bytes; page += page_bytes) {
    __builtin_prefetch(reinterpret_cast<const void*>(page), 0, 3);
  }
}
/// How far ahead of the current read, in whole steps, where everything is read in order. (Zen 4 in a virtual machine: sums
/// are 1.2 times, softmax's rows up to 1.8 times as fast.) With large pages it costs nothing; a shorter distance costs up to
/// an eighth.
inline constexpr std::size_t pages_ahead = std::size_t{128} << 10;
[[gnu::always_inline]] inline void find_pages_ahead(const void* now, std::size_t bytes, std::size_t step = 1) {
  const std::size_t ahead = (pages_ahead + step - 1) / step * step;
  find_pages(reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(now) + ahead), bytes);
}
/// The same for non-temporal writes, on AMD only: on Intel, prefix sums take a tenth longer with it, with pages of either
/// size.
[[gnu::always_inline]] inline void find_written_pages_ahead(const void* now, std::size_t bytes, std::size_t step = 1) {
  if (is_amd()) find_pages_ahead(now, bytes, step);
}

/// Whether this is a Zen 5, which reads fastest if lines are prefetched into the first cache, not by way of the second (sums 42
/// GB/s instead of 31), and mostly once. No earlier AMD processor has these instructions.
inline bool asks_first_cache() noexcept {
#if defined(__x86_64__)
  return is_amd() && __builtin_cpu_supports("avx512vp2intersect");
#else
  return false;
#endif
}

/// Prefetches lines that will only be read, which may lie past the end of any array, into the cache of a level; more than once,
/// because a Zen 4 drops some prefetches. (Prefix sums and softmax's rows of 4096 are 1.2 times as fast.) A tight loop says
/// itself whether to ask `once`. Forced inline, as above.
template <int Times = 2, int Level = 2>
[[gnu::always_inline]] inline void fetch_lines(const void* first, std::size_t bytes, bool once = asks_first_cache()) {
  const auto* const line = static_cast<const std::byte*>(first);
  if (Level == 2 && once) {
    for (std::size_t at = 0; at < bytes; at += cache_line) __builtin_prefetch(line + at, 0, 3);
    return;
  }
  for (std::size_t at = 0; at < bytes; at += cache_line) {
    for (int time = 0; time < Times; ++time) __builtin_prefetch(line + at, 0, 4 - Level);
  }
}

/// The bytes from `p` to the next cache line.
inline std::size_t bytes_to_line(const void* p) {
  return (cache_line - reinterpret_cast<std::uintptr_t>(p) % cache_line) % cache_line;
}

/// Memory traffic interleaved with computation, a few lines at a time so that memory keeps up: lines to be read next are
/// prefetched into the second-level cache, and a result is copied with non-temporal stores. The ends of a result that share a
/// cache line with other data are stored normally.
class traffic {
 public:
  /// The lines to be fetched next; they may lie past the end of any array.
  void fetch(const void* first, std::size_t bytes) {
    fetched_ = reinterpret_cast<std::uintptr_t>(first) - at_;
    fetch_end_ = at_ + bytes;
  }
  /// The next result; finishes writing the one before.
  void write(const void* from, void* to, std::size_t bytes) {
    finish();
    const std::size_t ragged = std::min(bytes_to_line(to), bytes);
    if (ragged > 0) std::memcpy(to, from, ragged);
    from_ = static_cast<const std::byte*>(from) + ragged;
    to_ = static_cast<std::byte*>(to) + ragged;
    at_ = fetch_end_ = 0;
    write_end_ = bytes - ragged;
  }
  /// The next lines of both; `copy_lines` copies with non-temporal stores.
  template <std::size_t Lines = 1, class CopyLines>
  [[gnu::always_inline]] void step(const CopyLines& copy_lines) {
    const std::size_t end = at_ + Lines * cache_line;
    if (end <= fetch_end_) {
      for (std::size_t i = at_; i < end; i += cache_line) fetch_line(fetched_ + i);
    } else if (Lines > 1 && at_ < fetch_end_) {  // unrolled: a loop around this one stays innermost
      for (std::size_t i = at_; i < end; i += cache_line) {
        if (i < fetch_end_) fetch_line(fetched_ + i);
      }
    }
    if (end <= write_end_) {
      copy_lines(to_ + at_, from_ + at_, Lines * cache_line);
    } else if (Lines > 1 && at_ < write_end_) {
      copy_lines(to_ + at_, from_ + at_, (write_end_ - at_) / cache_line * cache_line);
    }
    at_ = end;
  }
  void finish() {
    const std::size_t lines = write_end_ / cache_line * cache_line, rest = write_end_ - lines;
    if (at_ < lines) copy_lines_past_caches(to_ + at_, from_ + at_, lines - at_);
    if (rest > 0) std::memcpy(to_ + lines, from_ + lines, rest);
    write_end_ = 0;
  }

 private:
  /// Into the second cache, twice, as `fetch_lines`; on a Zen 5 too, where something is written beside (prefix sums run at 43
  /// GB/s, by way of the first cache at 40).
  [[gnu::always_inline]] static void fetch_line(std::uintptr_t line) {
    for (int time = 0; time < 2; ++time) __builtin_prefetch(reinterpret_cast<const void*>(line), 0, 2);
  }
  std::size_t at_ = 0;  // of both
  std::size_t fetch_end_ = 0, write_end_ = 0;
  std::uintptr_t fetched_ = 0;
  const std::byte* from_ = nullptr;
  std::byte* to_ = nullptr;
};

}  // namespace regroup
