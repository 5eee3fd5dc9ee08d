// expect: only accumulators with trivially copyable states and elements can be saved
#include <string>

#include "regroup/regroup.hpp"

struct concatenation {
  std::string identity() const { return {}; }
  std::string lift(char c) const { return std::string(1, c); }
  std::string operator()(const std::string& a, const std::string& b) const { return a + b; }
};

int main() { return static_cast<int>(regroup::accumulator{concatenation{}}.save().size()); }
