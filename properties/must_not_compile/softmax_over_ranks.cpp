// expect: softmax, log_softmax, logsumexp and cross_entropy with regroup/mpi/softmax.hpp; this verb is one rank's, with ranks.local()
#include "regroup/algorithms/softmax.hpp"
#include "regroup/mpi/ranks.hpp"

int main() {
  const regroup::mpi::ranks all(MPI_COMM_WORLD);
  float x[4] = {}, y[4];
  regroup::softmax(all, regroup::view(x, {1, 4}), regroup::view(y, {1, 4}));
}
