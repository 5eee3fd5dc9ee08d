// expect: regroup: these answers would be cut to narrower integers, which the output holds: let it hold the type answer_of<monoid>
#include <vector>

#include "regroup/host/seq.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/reduce.hpp"

void lengths(const regroup::view<const float>& x, std::vector<int>& of_rows) {
  regroup::reduce_rows(regroup::seq, x, of_rows, regroup::count{});
}
