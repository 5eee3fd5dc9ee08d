// expect: regroup: reduce_by_key does not go over ranks
#include <vector>

#include "regroup/monoids/arithmetic.hpp"
#include "regroup/mpi/ranks.hpp"

int main() {
  const regroup::mpi::ranks all(MPI_COMM_WORLD);
  std::vector<int> keys(4), keys_out(4), x(4), out(4);
  regroup::reduce_by_key(all, keys, x, keys_out, out, regroup::plus<int>{});
}
