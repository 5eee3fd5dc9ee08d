// SPDX-License-Identifier: Apache-2.0
// Your own thread pool as an executor: say how many threads there are and how to run n calls. The order of combination
// does not depend on threads, so any pool is safe and gives the same bits.
#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

#include "regroup/regroup.hpp"

struct my_pool : regroup::host::threads<my_pool> {
  int concurrency() const { return 4; }
  void bulk(regroup::index n, const auto& f) const {  // f(0), ..., f(n - 1), each once, on any threads
    std::atomic<regroup::index> next = 0;
    std::vector<std::jthread> workers;
    for (int w = 0; w < concurrency(); ++w) {
      workers.emplace_back([&] {
        for (regroup::index i = next++; i < n; i = next++) f(i);
      });
    }
  }  // joins
};

int main() {
  const auto x = regroup::generate(2'000'000, [](regroup::index i) { return 1 / (1 + static_cast<float>(i)); });
  const float mine = regroup::reduce(my_pool{}, x, regroup::plus<float>{});
  const float theirs = regroup::reduce(regroup::par, x, regroup::plus<float>{});
  std::printf("my pool %.9g, oneTBB %.9g, one thread %.9g\n", mine, theirs,
              regroup::reduce(regroup::seq, x, regroup::plus<float>{}));
  return mine == theirs ? 0 : 1;
}
