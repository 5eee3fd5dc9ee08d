// expect: regroup: keys and values are one argument, which says how they lie: attention(par, q, dense(k, v), out)
#include <vector>

#include "regroup/algorithms/attention.hpp"
#include "regroup/host/par.hpp"

int main() {
  std::vector<float> x(12), y(12);
  const auto q = regroup::view(x, {3, 4});
  regroup::attention(regroup::par, q, q, q, regroup::view(y, {3, 4}));
}
