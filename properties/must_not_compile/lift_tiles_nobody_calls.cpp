// expect: regroup: `lift_tiles` is const, stands beside a `lift_tile`
#include "regroup/host/seq.hpp"
#include "regroup/reduce.hpp"

struct sum {  // does not say that it is exact
  static constexpr bool is_commutative = true;
  double identity() const { return 0; }
  double operator()(double a, double b) const { return a + b; }
  double lift_tile(const auto& tile) const { return tile[0]; }
  double lift_tiles(const auto&) const { return 0; }
};

int main() { return regroup::reduce(regroup::seq, std::vector<double>{1, 2}, sum{}) > 0 ? 0 : 1; }
