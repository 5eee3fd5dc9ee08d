// expect: softmax, log_softmax, logsumexp and cross_entropy take float16, bfloat16, float or double
#include <vector>

#include "regroup/regroup.hpp"

int main() {
  std::vector<int> x(8);
  std::vector<float> y(8);
  regroup::softmax(regroup::seq, x, y);
}
