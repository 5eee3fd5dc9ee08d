// SPDX-License-Identifier: Apache-2.0
// A matrix turned on any processor, in blocks of 16 bytes by 16 where it is x86-64, and which instruction set serves.
#include "regroup/host/dispatch.hpp"
#include "turn_blocks.hpp"

namespace regroup::host::turning {

namespace {

bool has_v3() { return current_target() != target::baseline; }

}  // namespace

void half_words(const void* from, index from_pitch, void* to, index to_pitch, index rows, index columns) {
#if defined(__x86_64__)
  if (has_v3()) return half_words_v3(from, from_pitch, to, to_pitch, rows, columns);
#endif
  turn_by<std::uint16_t, 16>(from, from_pitch, to, to_pitch, rows, columns);
}
void words(const void* from, index from_pitch, void* to, index to_pitch, index rows, index columns) {
#if defined(__x86_64__)
  if (has_v3()) return words_v3(from, from_pitch, to, to_pitch, rows, columns);
#endif
  turn_by<std::uint32_t, 16>(from, from_pitch, to, to_pitch, rows, columns);
}
void long_words(const void* from, index from_pitch, void* to, index to_pitch, index rows, index columns) {
#if defined(__x86_64__)
  if (has_v3()) return long_words_v3(from, from_pitch, to, to_pitch, rows, columns);
#endif
  turn_by<std::uint64_t, 16>(from, from_pitch, to, to_pitch, rows, columns);
}

}  // namespace regroup::host::turning
