// expect: a view is no mask by itself; additive(view) adds its numbers to the scores
#include <vector>

#include "regroup/regroup.hpp"

int main() {
  std::vector<float> x(16), bias(4);
  const regroup::view rows(x.data(), {2, 2, 4});
  regroup::attention(regroup::seq, rows, regroup::dense(rows, rows), rows, {.mask = regroup::view(bias.data(), {2, 2})});
}
