// expect: a monoid needs `operator()(state, state) const` that returns the combined state, left operand first
#include <vector>

#include "regroup/regroup.hpp"

struct sum {
  int identity() const { return 0; }
  int combine(int a, int b) const { return a + b; }
};

int main() { return regroup::reduce(regroup::seq, std::vector<int>{1, 2}, sum{}); }
