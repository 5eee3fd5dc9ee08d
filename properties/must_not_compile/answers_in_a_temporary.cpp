// expect: regroup: results would go to a temporary container, and be gone with it: give it a name
#include <vector>

#include "regroup/regroup.hpp"

void nowhere(const regroup::view<const double>& x) {
  regroup::reduce_rows(regroup::seq, x, std::vector<double>(2), regroup::plus<double>{});
}
