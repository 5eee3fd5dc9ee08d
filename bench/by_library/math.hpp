// SPDX-License-Identifier: Apache-2.0
// Other people's exp, exp2 and log over an array, in packs of one instruction set: glibc's libmvec, SLEEF, xsimd and Highway,
// the ones that were there to compile with. The same source is compiled for AVX2 and for AVX-512.
#pragma once

#include <cstddef>

namespace bench {

struct math_loop {
  const char* who;   ///< nullptr ends a table
  const char* work;  ///< exp/fp32 and so on
  void (*run)(const void* x, void* y, std::ptrdiff_t n);  ///< n is a multiple of 16
};
extern const math_loop math_loops_v3[], math_loops_v4[];

}  // namespace bench
