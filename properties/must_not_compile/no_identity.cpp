// expect: a monoid needs `identity() const`, the state of no elements
#include <vector>

#include "regroup/regroup.hpp"

struct sum {
  int operator()(int a, int b) const { return a + b; }
};

int main() { return regroup::reduce(regroup::seq, std::vector<int>{1, 2}, sum{}); }
