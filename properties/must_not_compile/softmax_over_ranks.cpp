// expect: regroup: over ranks go reduce and the scans, of ranges, rows, axes and segments; this verb is one rank's
#include "regroup/algorithms/softmax.hpp"
#include "regroup/mpi/ranks.hpp"

int main() {
  const regroup::mpi::ranks all(MPI_COMM_WORLD);
  float x[4] = {}, y[4];
  regroup::softmax(all, regroup::view(x, {1, 4}), regroup::view(y, {1, 4}));
}
