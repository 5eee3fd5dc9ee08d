// expect: name its type where the monoid's lift takes many: accumulator<moments<float>, float>
#include <vector>

#include "regroup/regroup.hpp"

int main() {
  regroup::accumulator moments{regroup::moments<double>{}};
  moments.push(std::vector<double>{1, 2, 3});
  return static_cast<int>(moments.value().count);
}
