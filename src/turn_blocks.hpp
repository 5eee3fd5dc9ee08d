// SPDX-License-Identifier: Apache-2.0
// A matrix turned by square blocks, of which each instruction set's file knows its own. Level: lane.
#pragma once

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "regroup/host/turn.hpp"
#include "shuffles.hpp"

namespace regroup::host::turning {

using turner = void(const void* from, index from_pitch, void* to, index to_pitch, index rows, index columns);

#if defined(__x86_64__)
turner half_words_v3, words_v3, long_words_v3;
#endif

namespace {

/// A square in registers of Bytes, of rows that begin anywhere: lane by lane, each with rows of its own, which are joined as
/// they are loaded.
template <class Word, int Bytes>
struct block {
  typedef Word vector __attribute__((vector_size(Bytes)));  // NOLINT: an alias cannot carry it in a template
  static constexpr int size = sizeof(Word), in_lane = 16 / size, side = Bytes / size;
  /// Steps are in bytes.
  static void turn(const char* from, index from_step, char* to, index to_step) {
    for (index part = 0; part < side / in_lane; ++part, from += 16, to += in_lane * to_step) {
      vector x[static_cast<std::size_t>(in_lane)];
      unrolled<in_lane>([&](int i) { x[i] = joined(from + i * from_step, in_lane * from_step); });
      turn_in_lanes(x);
      unrolled<in_lane>([&](int i) { std::memcpy(to + i * to_step, &x[i], Bytes); });
    }
  }

 private:
  static vector joined(const char* from, [[maybe_unused]] index step) {
    vector x;
    if constexpr (Bytes == 16) {
      std::memcpy(&x, from, sizeof x);
    } else {
      static_assert(Bytes == 32);
#ifdef __AVX2__
      const auto load = [](const char* lane) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(lane)); };
      x = vector(_mm256_inserti128_si256(_mm256_castsi128_si256(load(from)), load(from + step), 1));
#endif
    }
    return x;
  }
};

/// By squares of Bytes; what is left over is turned with elements beside it again, in a square that ends where they do. A
/// matrix narrower than a square is turned by smaller ones, or element by element.
template <class Word, int Bytes>
void turn_by(const void* from, index from_pitch, void* to, index to_pitch, index rows, index columns) {
  using square = block<Word, Bytes>;
  constexpr index size = square::size, side = square::side;
  const index from_step = from_pitch * size, to_step = to_pitch * size;
  const auto* const in = static_cast<const char*>(from);
  auto* const out = static_cast<char*>(to);
  if (rows >= side && columns >= side) {
    const index next = side * from_step;
    const bool far = next >= 4096;  // memory does not foresee rows that far apart, and is asked for the next ones
    for (index r = 0; r < rows; r += side) {
      const index row = std::min(r, rows - side);
      for (index c = 0; c < columns; c += side) {
        const index column = std::min(c, columns - side);
        for (index i = 0; far && c % (64 / size) == 0 && i < side; ++i) {
          __builtin_prefetch(in + (row + i) * from_step + column * size + next);
        }
        square::turn(in + row * from_step + column * size, from_step, out + column * to_step + row * size, to_step);
      }
    }
  } else if constexpr (Bytes > 16) {
    turn_by<Word, 16>(from, from_pitch, to, to_pitch, rows, columns);
  } else {
    for (index r = 0; r < rows; ++r) {
      for (index c = 0; c < columns; ++c) std::memcpy(out + c * to_step + r * size, in + r * from_step + c * size, size);
    }
  }
}

}  // namespace
}  // namespace regroup::host::turning
