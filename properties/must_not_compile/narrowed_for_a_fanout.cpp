// expect: regroup: what is pushed is narrowed to the one element that all members of this fanout share
#include <vector>

#include "regroup/regroup.hpp"

int main() {
  regroup::accumulator sums{regroup::fanout{regroup::plus<float>{}, regroup::maximum<int>{}}};
  sums.push(std::vector<int>{16'777'217});  // no float, and so not the largest any more
  return std::get<1>(sums.value());
}
