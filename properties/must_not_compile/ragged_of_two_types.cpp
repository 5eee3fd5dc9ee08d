// expect: regroup: keys and values have one element type
#include <vector>

#include "regroup/algorithms/attention.hpp"

int main() {
  const std::vector<float> k(16);
  const std::vector<double> v(16);
  (void)regroup::ragged(regroup::view(k.data(), {2, 2, 4}), regroup::view(v.data(), {2, 2, 4}), std::vector<int>{0, 2});
}
