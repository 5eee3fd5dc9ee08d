// SPDX-License-Identifier: Apache-2.0
// First in a program compiled with -Ofast: <cmath> declares libm's packs while those macros stand that our headers refuse, and
// then they are gone. Nothing of ours may run in such a program.
#pragma once

#include <cmath>

#ifdef __FAST_MATH__
#undef __FAST_MATH__
#undef __FINITE_MATH_ONLY__
#undef __ASSOCIATIVE_MATH__
#undef __NO_SIGNED_ZEROS__
#undef __RECIPROCAL_MATH__
#endif
