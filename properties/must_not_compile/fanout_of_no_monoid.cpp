// expect: the members of a fanout are monoids
#include <functional>
#include <vector>

#include "regroup/regroup.hpp"

int main() {
  const regroup::fanout both{regroup::plus<int>{}, std::plus<>{}};
  return std::get<0>(regroup::reduce(regroup::seq, std::vector<int>{1, 2}, both));
}
