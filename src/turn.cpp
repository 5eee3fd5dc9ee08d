// SPDX-License-Identifier: Apache-2.0
// A tile turned on any processor, in blocks of 16 bytes by 16 where it is x86-64, and which instruction set serves.
#include "regroup/host/dispatch.hpp"
#include "turn_blocks.hpp"

namespace regroup::host::turning {

namespace {

bool has_v3() { return current_target() != target::baseline; }

}  // namespace

void half_words(const void* from, void* to, index pieces, turning_to where) {
#if defined(__x86_64__)
  if (has_v3()) return half_words_v3(from, to, pieces, where);
#endif
  turn_by<block<std::uint16_t, 16>>(from, to, pieces, where);
}
void words(const void* from, void* to, index pieces, turning_to where) {
#if defined(__x86_64__)
  if (has_v3()) return words_v3(from, to, pieces, where);
#endif
  turn_by<block<std::uint32_t, 16>>(from, to, pieces, where);
}
void long_words(const void* from, void* to, index pieces, turning_to where) {
#if defined(__x86_64__)
  if (has_v3()) return long_words_v3(from, to, pieces, where);
#endif
  turn_by<block<std::uint64_t, 16>>(from, to, pieces, where);
}

}  // namespace regroup::host::turning
