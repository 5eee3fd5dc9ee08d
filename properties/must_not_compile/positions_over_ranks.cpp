// expect: regroup: a projection of ranks would have positions in a rank's part, not in the whole
#include <vector>

#include "regroup/monoids/extremum.hpp"
#include "regroup/mpi/ranks.hpp"

int main() {
  const regroup::mpi::ranks all(MPI_COMM_WORLD);
  return static_cast<int>(
      regroup::reduce(all, std::vector<float>(9), regroup::argmax<float>{}, regroup::with_position{}).position);
}
