// SPDX-License-Identifier: Apache-2.0
// The same monoid over the ranks of an MPI program; started alone, it is one rank.
#include "average.hpp"

#include <regroup/mpi/ranks.hpp>
#include <vector>

int main() {
  const regroup::mpi::environment mpi;
  const regroup::mpi::ranks all{MPI_COMM_WORLD};
  std::vector<double> xs(100'001);
  for (std::size_t i = 0; i < xs.size(); ++i) xs[i] = static_cast<double>(i);
  return regroup::reduce(all, xs, average{}) == 50'000 ? 0 : 1;
}
