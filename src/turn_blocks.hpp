// SPDX-License-Identifier: Apache-2.0
// A tile turned by square blocks, of which each instruction set's file knows its own. Level: lane.
#pragma once

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include <cstdint>
#include <cstring>

#include "regroup/host/turn.hpp"
#include "shuffles.hpp"

namespace regroup::host::turning {

using turner = void(const void* from, void* to, index pieces, turning_to where);

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
  template <index FromStep, index ToStep>
  static void turn(const char* from, char* to) {
    for (index part = 0; part < side / in_lane; ++part, from += 16, to += in_lane * ToStep) {
      vector x[static_cast<std::size_t>(in_lane)];
      unrolled<in_lane>([&](int i) { x[i] = joined(from + i * FromStep, in_lane * FromStep); });
      turn_in_lanes(x);
      unrolled<in_lane>([&](int i) { std::memcpy(to + i * ToStep, &x[i], Bytes); });
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

/// Block::turn<FromStep, ToStep>(from, to): a square of Block::side elements of Block::size bytes; steps are in bytes.
template <class Block, index FromStep, index ToStep>
void by_blocks(const char* from, char* to, index rows, index columns) {
  constexpr index size = Block::size, side = Block::side;
  for (index r = 0; r + side <= rows; r += side) {
    for (index c = 0; c + side <= columns; c += side) {
      Block::template turn<FromStep, ToStep>(from + r * FromStep + c * size, to + c * ToStep + r * size);
    }
  }
  for (index r = 0; r < rows; ++r) {
    for (index c = r < rows / side * side ? columns / side * side : 0; c < columns; ++c) {
      std::memcpy(to + c * ToStep + r * size, from + r * FromStep + c * size, size);
    }
  }
}

template <class Block>
void turn_by(const void* from, void* to, index pieces, turning_to where) {
  const auto* const in = static_cast<const char*>(from);
  auto* const out = static_cast<char*>(to);
  constexpr index of_pieces = piece_elements * Block::size, of_lanes = lanes * Block::size;
  if (where == turning_to::lanes) {
    by_blocks<Block, of_pieces, of_lanes>(in, out, pieces, piece_elements);
  } else {
    by_blocks<Block, of_lanes, of_pieces>(in, out, piece_elements, pieces);
  }
}

}  // namespace
}  // namespace regroup::host::turning
