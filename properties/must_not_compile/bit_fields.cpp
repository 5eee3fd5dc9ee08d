// expect: bit-field
#include <vector>

#include "regroup/host/seq.hpp"
#include "regroup/reduce.hpp"

struct flags {
  unsigned seen : 3;
  unsigned bad : 5;
};
struct sum {
  flags identity() const { return {0, 0}; }
  flags lift(int x) const { return {1, x < 0 ? 1U : 0U}; }
  flags operator()(flags a, flags b) const { return {a.seen | b.seen, a.bad | b.bad}; }
};

int main() { return regroup::reduce(regroup::seq, std::vector<int>{1, 2}, sum{}).seen; }
