// expect: leave -ffast-math out; it takes NaN, infinities, -0 and the order of combination from every operator
#define __FAST_MATH__ 1
#include "regroup/regroup.hpp"

int main() {}
