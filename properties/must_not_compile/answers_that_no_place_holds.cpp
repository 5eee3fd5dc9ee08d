// expect: regroup: the output's places cannot hold the answers, which have the type answer_of<monoid>
#include <vector>

#include "regroup/host/seq.hpp"
#include "regroup/monoids/moments.hpp"
#include "regroup/scan.hpp"

void means(const std::vector<float>& x, std::vector<float>& y) {
  regroup::inclusive_scan(regroup::seq, x, y, regroup::moments<float>{});
}
