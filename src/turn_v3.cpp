// SPDX-License-Identifier: Apache-2.0
// A tile turned with AVX2.
#if defined(__x86_64__)
#include "turn_blocks.hpp"

namespace regroup::host::turning {

void half_words_v3(const void* from, void* to, index pieces, turning_to where) {
  turn_by<block<std::uint16_t, 32>>(from, to, pieces, where);
}
void words_v3(const void* from, void* to, index pieces, turning_to where) {
  turn_by<block<std::uint32_t, 32>>(from, to, pieces, where);
}
void long_words_v3(const void* from, void* to, index pieces, turning_to where) {
  turn_by<block<std::uint64_t, 32>>(from, to, pieces, where);
}

}  // namespace regroup::host::turning
#endif
