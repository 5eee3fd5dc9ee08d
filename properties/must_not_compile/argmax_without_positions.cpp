// expect: regroup: this monoid takes elements with their positions: pass `with_position{}` as the projection
#include <vector>

#include "regroup/host/seq.hpp"
#include "regroup/monoids/extremum.hpp"
#include "regroup/reduce.hpp"

regroup::index best(const std::vector<float>& x) { return regroup::reduce(regroup::seq, x, regroup::argmax<float>{}).position; }
