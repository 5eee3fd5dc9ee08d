// expect: regroup: these elements would be cut to integers, which this monoid takes
#include <vector>

#include "regroup/host/seq.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/monoids/fanout.hpp"
#include "regroup/reduce.hpp"

auto sum_and_count(const std::vector<float>& x) {
  return regroup::reduce(regroup::seq, x, regroup::fanout{regroup::count{}, regroup::plus<int>{}});
}
