// expect: name its type where the monoid's lift takes many: accumulator<count, std::string>
#include <string>
#include <vector>

#include "regroup/regroup.hpp"

int main() {
  regroup::accumulator words{regroup::count{}};
  words.push(std::vector<std::string>{"one", "two"});
  return static_cast<int>(words.value());
}
