// expect: a monoid needs `identity() const`, the state of no elements
#include "regroup/regroup.hpp"

struct sum {
  int operator()(int a, int b) const { return a + b; }
};

int main() { regroup::accumulator all{sum{}}; }
