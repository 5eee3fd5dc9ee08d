// expect: regroup: these elements would be cut to integers, which this monoid takes
#include <vector>

#include "regroup/monoids/arithmetic.hpp"
#include "regroup/stream.hpp"

int largest(const std::vector<float>& x) {
  regroup::accumulator acc{regroup::maximum<int>{}};
  acc.push(x);
  return acc.value();
}
