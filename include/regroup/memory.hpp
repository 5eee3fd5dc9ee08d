// SPDX-License-Identifier: Apache-2.0
// How a large result reaches memory: past the caches, so that no line is read only to be overwritten.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace regroup {

/// Outputs of more bytes than this are written past the caches: more than a core's share of most third-level caches.
inline constexpr std::size_t cached_output_bytes = std::size_t{8} << 20;

inline constexpr std::size_t cache_line = 64;

/// Copies whole cache lines to an aligned place by non-temporal stores; ranges must not overlap. Nobody else sees them
/// before `finish_past_caches()`.
inline void copy_lines_past_caches(void* to, const void* from, std::size_t bytes) {
#if defined(__x86_64__)
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

/// The bytes from `p` to the next cache line.
inline std::size_t bytes_to_line(const void* p) {
  return (cache_line - reinterpret_cast<std::uintptr_t>(p) % cache_line) % cache_line;
}

/// Copies elements side by side, as part of an output of `total_bytes`.
template <class T>
void copy_out(std::span<const T> from, T* to, std::size_t total_bytes) {
  if constexpr (std::is_trivially_copyable_v<T>) {
    if (total_bytes > cached_output_bytes) {
      auto* const out = reinterpret_cast<std::byte*>(to);
      const auto* const in = reinterpret_cast<const std::byte*>(from.data());
      const std::size_t before = std::min(bytes_to_line(out), from.size_bytes());
      const std::size_t lines = (from.size_bytes() - before) / cache_line * cache_line;
      std::memcpy(out, in, before);
      copy_lines_past_caches(out + before, in + before, lines);
      std::memcpy(out + before + lines, in + before + lines, from.size_bytes() - before - lines);
      return finish_past_caches();
    }
  }
  std::copy(from.begin(), from.end(), to);
}

}  // namespace regroup
