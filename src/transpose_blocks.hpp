// SPDX-License-Identifier: Apache-2.0
// Transposes a matrix by square blocks, whose size each instruction set's file chooses. Level: lane.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "regroup/host/transpose.hpp"
#include "shuffles.hpp"

namespace regroup::host::transposition {

/// Functions that transpose elements of 1, 2, 4 and 8 bytes.
struct transposers {
  void (*bytes)(const matrix&);
  void (*half_words)(const matrix&);
  void (*words)(const matrix&);
  void (*long_words)(const matrix&);
};
#if defined(__x86_64__)
extern const transposers transposers_v3, transposers_v4;
#endif

namespace {

/// copy_lines_past_caches with the instruction set fixed.
template <int Bytes>
void copy_line(std::byte* to, const std::byte* from, std::size_t bytes) {
#ifdef __AVX512F__
  const auto* const line = reinterpret_cast<const __m512i*>(from);
  if constexpr (Bytes == 64) return _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(line));
#endif
#ifdef __AVX2__
  const auto* const half = reinterpret_cast<const __m256i*>(from);
  auto* const half_to = reinterpret_cast<__m256i*>(to);
  if constexpr (Bytes == 32) {
    _mm256_stream_si256(half_to, _mm256_loadu_si256(half));
    return _mm256_stream_si256(half_to + 1, _mm256_loadu_si256(half + 1));
  }
#endif
  copy_lines_past_caches(to, from, bytes);
}

/// A square in registers of Bytes, whose rows may begin anywhere. Each 16-byte lane holds a row of its own; rows are joined
/// into registers as they are loaded.
template <class Word, int Bytes>
struct block {
  typedef Word vector __attribute__((vector_size(Bytes)));  // NOLINT: an alias cannot carry it in a template
  static constexpr int size = sizeof(Word), in_lane = 16 / size, side = Bytes / size;
  static constexpr int steps = std::max(in_lane * Bytes / 128, 1);
  /// Steps are in bytes.
  template <class Meanwhile>
  [[gnu::always_inline]] static void transpose(const char* from, index from_step, char* to, index to_step,
                                               const Meanwhile& meanwhile) {
    for (index part = 0; part < side / in_lane; ++part, from += 16, to += in_lane * to_step) {
      vector x[static_cast<std::size_t>(in_lane)];
      unrolled<in_lane>([&](int i) { x[i] = joined(from + i * from_step, in_lane * from_step); });
      transpose_in_lanes(x);
      for (int step = 0; step < steps / 2; ++step) meanwhile();
      unrolled<in_lane>([&](int i) { std::memcpy(to + i * to_step, &x[i], Bytes); });
      for (int step = steps / 2; step < steps; ++step) meanwhile();
    }
  }

 private:
  static vector joined(const char* from, [[maybe_unused]] index step) {
    vector x;
    if constexpr (Bytes == 16) {
      std::memcpy(&x, from, sizeof x);
    } else {
#ifdef __AVX2__
      const auto load = [](const char* lane) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(lane)); };
      const __m256i two = _mm256_inserti128_si256(_mm256_castsi128_si256(load(from)), load(from + step), 1);
      if constexpr (Bytes == 32) x = vector(two);
#ifdef __AVX512F__
      if constexpr (Bytes == 64) {
        const __m512i three = _mm512_inserti32x4(_mm512_castsi256_si512(two), load(from + 2 * step), 2);
        x = vector(_mm512_inserti32x4(three, load(from + 3 * step), 3));
      }
#endif
#endif
    }
    return x;
  }
};

/// A word of any type at any address. (A template argument would lose the attributes.)
template <class Word>
struct anywhere {
  typedef Word word __attribute__((may_alias, aligned(1)));
};

#if defined(__GNUC__) && !defined(__clang__)
#define REGROUP_O3 [[gnu::optimize("O3")]]  // without it g++ makes no shuffles of these loops
#else
#define REGROUP_O3
#endif
/// Takes all `Few` columns of a matrix apart, or puts so few rows together to one: loops whose steps the compiler sees.
template <class Word, index Few>
REGROUP_O3 void take_apart(const void* source, void* target, index to_pitch, index rows) {
  using word = typename anywhere<Word>::word;
  const word* __restrict const from = static_cast<const word*>(source);
  word* __restrict const to = static_cast<word*>(target);
  for (index r = 0; r < rows; ++r) {
    for (index c = 0; c < Few; ++c) to[c * to_pitch + r] = from[r * Few + c];
  }
}
template <class Word, index Few>
REGROUP_O3 void put_together(const void* source, index from_pitch, void* target, index columns) {
  using word = typename anywhere<Word>::word;
  const word* __restrict const from = static_cast<const word*>(source);
  word* __restrict const to = static_cast<word*>(target);
  for (index c = 0; c < columns; ++c) {
    for (index r = 0; r < Few; ++r) to[c * Few + r] = from[r * from_pitch + c];
  }
}
#undef REGROUP_O3

/// Whether these are so few columns, or rows, and that was done.
template <class Word, index Few>
bool transpose_few(const matrix& x) {
  if (x.columns == Few && x.from_pitch == Few) {
    take_apart<Word, Few>(x.from, x.to, x.to_pitch, x.rows);
  } else if (x.rows == Few && x.to_pitch == Few) {
    put_together<Word, Few>(x.from, x.from_pitch, x.to, x.columns);
  } else {
    return false;
  }
  return true;
}

/// Transposes by squares of Bytes. A remainder is covered by a square that ends at the matrix's edge and transposes some
/// elements again. A matrix narrower than a square is transposed by smaller ones, or element by element.
template <class Word, int Bytes, class Meanwhile>
[[gnu::always_inline]] inline void transpose_by_squares(const matrix& x, const Meanwhile& meanwhile) {
  using square = block<Word, Bytes>;
  constexpr index size = square::size, side = square::side;
  const index rows = x.rows, columns = x.columns, from_step = x.from_pitch * size, to_step = x.to_pitch * size;
  const auto* const in = static_cast<const char*>(x.from);
  auto* const out = static_cast<char*>(x.to);
  if (rows >= side && columns >= side) {
    const index next = side * from_step;
    const bool far = next >= 4096;  // the processor does not prefetch rows that far apart
    for (index r = 0; r < rows; r += side) {
      const index row = std::min(r, rows - side);
      for (index c = 0; c < columns; c += side) {
        const index column = std::min(c, columns - side);
        for (index i = 0; far && c % (64 / size) == 0 && i < side; ++i) {
          __builtin_prefetch(in + (row + i) * from_step + column * size + next);
        }
        square::transpose(in + row * from_step + column * size, from_step, out + column * to_step + row * size, to_step,
                     meanwhile);
      }
    }
  } else if constexpr (Bytes > 16) {
    transpose_by_squares<Word, Bytes / 2>(x, meanwhile);
  } else {
    for (index r = 0; r < rows; ++r) {
      for (index c = 0; c < columns; ++c) std::memcpy(out + c * to_step + r * size, in + r * from_step + c * size, size);
    }
  }
}

template <class Word, int Bytes>
void transpose_by(const matrix& x) {
  if (x.meanwhile == nullptr && (transpose_few<Word, 2>(x) || transpose_few<Word, 3>(x) || transpose_few<Word, 4>(x))) return;
  if (x.meanwhile == nullptr) return transpose_by_squares<Word, Bytes>(x, [] {});
  traffic t = *x.meanwhile;  // in registers
  transpose_by_squares<Word, Bytes>(x, [&] { t.step(copy_line<Bytes>); });
  *x.meanwhile = t;
}

template <int Bytes>
constexpr transposers transposers_of() {
  return {transpose_by<std::uint8_t, Bytes>, transpose_by<std::uint16_t, Bytes>, transpose_by<std::uint32_t, Bytes>,
          transpose_by<std::uint64_t, Bytes>};
}

}  // namespace
}  // namespace regroup::host::transposition
