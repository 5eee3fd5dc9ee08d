// SPDX-License-Identifier: Apache-2.0
// A tile turned by square blocks, of which each instruction set's file knows its own. Level: lane.
#pragma once

#include <cstring>

#include "regroup/host/turn.hpp"

namespace regroup::host::turning {

using turner = void(const void* from, void* to, index pieces, turning_to where);

#if defined(__x86_64__)
turner half_words_v3, words_v3, long_words_v3;
#endif

namespace {

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
