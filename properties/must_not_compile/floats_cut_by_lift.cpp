// expect: regroup: these elements would be cut to integers, which this monoid takes
#include <vector>

#include "regroup/host/seq.hpp"
#include "regroup/monoids/extremum.hpp"
#include "regroup/reduce.hpp"

regroup::index best(const std::vector<float>& x) {
  return regroup::reduce(regroup::seq, x, regroup::argmax<int>{}, regroup::with_position{}).position;
}
