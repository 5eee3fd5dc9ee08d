// expect: these elements cannot be lifted; give the monoid `lift(x) const` that returns its state
#include <string>
#include <vector>

#include "regroup/regroup.hpp"

int main() {
  const std::vector<std::string> words{"one", "two"};
  return static_cast<int>(regroup::reduce(regroup::seq, words, regroup::plus<double>{}));
}
