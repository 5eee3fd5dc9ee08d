// expect: regroup: these elements would be cut to integers, which this monoid takes
#include <vector>

#include "regroup/host/seq.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/reduce.hpp"

int sum(const std::vector<double>& x) { return regroup::reduce(regroup::seq, x, regroup::plus<int>{}); }
