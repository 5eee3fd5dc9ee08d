// SPDX-License-Identifier: Apache-2.0
// A softmax over what lies on many machines: each rank has a part of the row, of any length. `mpiexec -n 3 ranks`; results
// have the same bits on any number of ranks.
#include <cmath>
#include <cstdio>
#include <vector>

#include "regroup/mpi/softmax.hpp"
#include "regroup/regroup.hpp"

int main() {
  const regroup::mpi::environment mpi;
  const regroup::mpi::ranks all{MPI_COMM_WORLD};

  const auto logit = [](regroup::index i) { return 9 * std::sin(static_cast<float>(i)); };
  const regroup::index n = 1'000'003, first = n * all.rank() / all.size(), last = n * (all.rank() + 1) / all.size();
  std::vector<float> mine;
  for (regroup::index i = first; i < last; ++i) mine.push_back(logit(i));

  const float lse = regroup::reduce(all, mine, regroup::log_sum_exp<float>{});
  regroup::softmax(all, mine, mine);  // probabilities, in place
  std::vector<float> cumulative(mine.size());
  regroup::inclusive_scan(all, mine, cumulative, regroup::plus<float>{});

  const float on_one = regroup::reduce(regroup::seq, regroup::generate(n, logit), regroup::log_sum_exp<float>{});
  std::printf("rank %d of %d: log-sum-exp %.9g (on one %.9g), probability up to here %.6f\n", all.rank(), all.size(), lse,
              on_one, cumulative.empty() ? 0 : cumulative.back());
  return lse == on_one ? 0 : 1;
}
