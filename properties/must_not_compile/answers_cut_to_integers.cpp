// expect: regroup: these answers would be cut to integers, which the output holds
#include <vector>

#include "regroup/host/seq.hpp"
#include "regroup/monoids/mean.hpp"
#include "regroup/reduce.hpp"

void means(const regroup::view<const int>& x, std::vector<int>& of_rows) {
  regroup::reduce_rows(regroup::seq, x, of_rows, regroup::mean<double>{});
}
