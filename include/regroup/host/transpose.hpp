// SPDX-License-Identifier: Apache-2.0
// Transposes: a tile's pieces, or a group's rows, become columns, so that what a loop over lanes reads is contiguous; and
// back again. Moves bytes, computes nothing. Level: lane.
#pragma once

#include <type_traits>

#include "regroup/host/tile.hpp"
#include "regroup/memory.hpp"

namespace regroup::host {

/// Where an element of a tile stands: piece by piece, as in memory, or as `transposed_lanes` finds it.
enum class transposed_to { lanes, pieces };

namespace transposition {
/// A transpose of `rows` x `columns` elements, to[c * to_pitch + r] = from[r * from_pitch + c], and the memory traffic beside
/// it: one line for every two that are transposed.
struct matrix {
  const void* from;
  index from_pitch;
  void* to;
  index to_pitch, rows, columns;
  traffic* meanwhile;
};
/// Elements of 1, 2, 4 and 8 bytes, by squares in registers of the best instruction set.
void bytes(const matrix& x);
void half_words(const matrix& x);
void words(const matrix& x);
void long_words(const matrix& x);
}  // namespace transposition

/// Transposes a matrix: to[c * to_pitch + r] = from[r * from_pitch + c].
template <class X>
requires std::is_trivially_copyable_v<X>
void transpose(const X* from, index from_pitch, X* to, index to_pitch, index rows, index columns,
               traffic* meanwhile = nullptr) {
  const transposition::matrix x{from, from_pitch, to, to_pitch, rows, columns, meanwhile};
  if constexpr (sizeof(X) == 1) {
    transposition::bytes(x);
  } else if constexpr (sizeof(X) == 2) {
    transposition::half_words(x);
  } else if constexpr (sizeof(X) == 4) {
    transposition::words(x);
  } else if constexpr (sizeof(X) == 8) {
    transposition::long_words(x);
  } else {
    for (index r = 0; r < rows; ++r) {
      for (index c = 0; c < columns; ++c) to[c * to_pitch + r] = from[r * from_pitch + c];
    }
  }
}

/// `n` elements of a tile, from the first of some piece on, word by word.
template <index Words = 1, index Pitch = lanes, class X>
requires std::is_trivially_copyable_v<X>
void transpose(const X* from, X* to, index n, transposed_to where, traffic* meanwhile = nullptr) {
  constexpr index in_piece = piece_elements * Words;
  const index whole = n / piece_elements;
  const auto* const in = reinterpret_cast<const word_of<X, Words>*>(from);
  auto* const out = reinterpret_cast<word_of<X, Words>*>(to);
  if (where == transposed_to::lanes) {
    host::transpose(in, in_piece, out, Pitch, whole, in_piece, meanwhile);
  } else {
    host::transpose(in, Pitch, out, in_piece, in_piece, whole, meanwhile);
  }
  for (index k = whole * piece_elements; k < n; ++k) {
    const index i = k % piece_elements, j = k / piece_elements;
    if (where == transposed_to::lanes) {
      transposed_lanes<X, Words, Pitch>(to, i).set(j, from[k]);
    } else {
      to[k] = transposed_lanes<const X, Words, Pitch>(from, i).get(j);
    }
  }
}

}  // namespace regroup::host
