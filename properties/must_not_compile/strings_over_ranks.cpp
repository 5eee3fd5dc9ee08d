// expect: regroup: ranks send each other states, and elements of the tiles they cut: both must be trivially copyable
#include <string>
#include <vector>

#include "regroup/mpi/ranks.hpp"

struct joined {
  std::string identity() const { return {}; }
  std::string operator()(const std::string& a, const std::string& b) const { return a + b; }
};

int main() {
  const regroup::mpi::ranks all(MPI_COMM_WORLD);
  return static_cast<int>(regroup::reduce(all, std::vector<std::string>{"a"}, joined{}).size());
}
