// expect: softmax, log_softmax and logsumexp of segments do not go over ranks; this verb is one rank's, with ranks.local()
#include "regroup/algorithms/softmax_segments.hpp"
#include "regroup/mpi/ranks.hpp"

int main() {
  const regroup::mpi::ranks all(MPI_COMM_WORLD);
  float x[4] = {}, y[4];
  const int offsets[] = {0, 1, 4};
  regroup::softmax_segments(all, x, offsets, y);
}
