// expect: regroup: the combine returns more than `identity()`'s type holds, the state's: return 0.0 there, not 0
// expect: regroup: `lift` returns more than `identity()`'s type holds, the state's: return 0.0 there, not 0
// expect: regroup: a monoid's `lift` returns a state, the type of `identity()`
// expect: regroup: a state has at most 65,536 bytes, for loops keep many on the stack; let it hold a std::vector
#include <array>
#include <string>
#include <vector>

#include "regroup/host/seq.hpp"
#include "regroup/reduce.hpp"

struct sum {
  auto identity() const { return 0; }
  double operator()(double a, double b) const { return a + b; }
};
struct halves {
  auto identity() const { return 0; }
  auto lift(int x) const { return x / 2.0; }
  int operator()(int a, int b) const { return a + b; }
};
struct words {
  int identity() const { return 0; }
  std::string lift(int x) const { return std::to_string(x); }
  int operator()(int a, int b) const { return a + b; }
};
struct counts {
  using state = std::array<long, 20'000>;
  state identity() const { return {}; }
  state lift(int) const { return {}; }
  state operator()(const state& a, const state&) const { return a; }
};

int main() {
  (void)regroup::reduce(regroup::seq, std::vector<double>(9), sum{});
  (void)regroup::reduce(regroup::seq, std::vector<int>(9), halves{});
  (void)regroup::reduce(regroup::seq, std::vector<int>(9), words{});
  (void)regroup::reduce(regroup::seq, std::vector<int>(9), counts{});
}
