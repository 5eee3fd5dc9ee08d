// SPDX-License-Identifier: Apache-2.0
// Transposes a matrix on any processor, in blocks of 16 bytes by 16 on x86-64, and chooses the instruction set.
#include "targets.hpp"
#include "transpose_blocks.hpp"

namespace regroup::host::transposition {

namespace {

const transposers& best() {
  static constexpr transposers baseline = transposers_of<16>();
#if defined(__x86_64__)
  return best_of(transposers_v4, transposers_v3, baseline);
#else
  return baseline;
#endif
}

}  // namespace

void bytes(const matrix& x) { best().bytes(x); }
void half_words(const matrix& x) { best().half_words(x); }
void words(const matrix& x) { best().words(x); }
void long_words(const matrix& x) { best().long_words(x); }

}  // namespace regroup::host::transposition
