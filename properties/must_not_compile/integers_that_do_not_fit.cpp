// expect: regroup: these integers do not fit in those that this monoid takes: give it the type of the elements
#include <vector>

#include "regroup/host/seq.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/reduce.hpp"

unsigned smallest(const std::vector<int>& x) { return regroup::reduce(regroup::seq, x, regroup::minimum<unsigned>{}); }
