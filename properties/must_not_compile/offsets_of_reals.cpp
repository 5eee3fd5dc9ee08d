// expect: regroup: segment offsets are integers
#include <vector>

#include "regroup/regroup.hpp"

int main() {
  const std::vector<float> x(5, 1);
  std::vector<float> sums(2);
  regroup::reduce_segments(regroup::seq, x, std::vector<double>{0, 2.5, 5}, sums, regroup::plus<float>{});
  return static_cast<int>(sums[0]);
}
