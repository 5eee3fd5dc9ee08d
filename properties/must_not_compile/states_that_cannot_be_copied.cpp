// expect: regroup: a monoid's state must be copyable
#include <memory>
#include <vector>

#include "regroup/host/seq.hpp"
#include "regroup/reduce.hpp"

struct owned {
  std::unique_ptr<int> identity() const { return {}; }
  std::unique_ptr<int> lift(int x) const { return std::make_unique<int>(x); }
  std::unique_ptr<int> operator()(const std::unique_ptr<int>& a, const std::unique_ptr<int>& b) const {
    return std::make_unique<int>((a ? *a : 0) + (b ? *b : 0));
  }
};

int main() { (void)regroup::reduce(regroup::seq, std::vector<int>{1, 2}, owned{}); }
