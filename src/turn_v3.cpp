// SPDX-License-Identifier: Apache-2.0
// A matrix turned with AVX2.
#if defined(__x86_64__)
#include "turn_blocks.hpp"

namespace regroup::host::turning {

void half_words_v3(const void* from, index from_pitch, void* to, index to_pitch, index rows, index columns) {
  turn_by<std::uint16_t, 32>(from, from_pitch, to, to_pitch, rows, columns);
}
void words_v3(const void* from, index from_pitch, void* to, index to_pitch, index rows, index columns) {
  turn_by<std::uint32_t, 32>(from, from_pitch, to, to_pitch, rows, columns);
}
void long_words_v3(const void* from, index from_pitch, void* to, index to_pitch, index rows, index columns) {
  turn_by<std::uint64_t, 32>(from, from_pitch, to, to_pitch, rows, columns);
}

}  // namespace regroup::host::turning
#endif
