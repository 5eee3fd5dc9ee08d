// expect: cross_entropy's targets are a view, a span or a contiguous container
#include <vector>

#include "regroup/regroup.hpp"

int main() {
  const std::vector<float> logits(6);
  return static_cast<int>(regroup::cross_entropy(regroup::seq, regroup::view(logits.data(), {2, 3}), 1));
}
