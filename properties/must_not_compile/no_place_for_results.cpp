// expect: regroup: results are written, and this place is const
// expect: regroup: results go to a view, a span or a contiguous container (no std::vector<bool>)
// expect: regroup: answers go to a view, a span or a contiguous container (no std::vector<bool>), or to a function
#include <list>
#include <vector>

#include "regroup/host/seq.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/reduce.hpp"
#include "regroup/scan.hpp"

int main() {
  const std::vector<float> x(9), y(9);
  std::vector<bool> bits(9);
  std::list<float> apart(9);
  regroup::inclusive_scan(regroup::seq, x, y, regroup::plus<float>{});
  regroup::inclusive_scan(regroup::seq, x, bits, regroup::plus<float>{});
  regroup::reduce_rows(regroup::seq, regroup::view(x.data(), {3, 3}), apart, regroup::plus<float>{});
}
