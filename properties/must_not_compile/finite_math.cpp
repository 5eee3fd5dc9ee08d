// expect: and so do -ffinite-math-only, -fassociative-math, -fno-signed-zeros and -freciprocal-math
#undef __FINITE_MATH_ONLY__
#define __FINITE_MATH_ONLY__ 1
#include "regroup/regroup.hpp"

int main() {}
