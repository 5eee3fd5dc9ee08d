// expect: regroup: page tables and lengths are integers
#include "regroup/algorithms/attention.hpp"

int main() {
  const float pool[16] = {};
  const bool table[2] = {};
  const regroup::view pages(pool, {2, 1, 2, 4});
  (void)regroup::paged(pages, pages, regroup::view(table, {1, 2}));
}
