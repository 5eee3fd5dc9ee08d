// expect: regroup: this projection takes neither these elements nor an element and its position
#include <string>
#include <vector>

#include "regroup/host/seq.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/reduce.hpp"

float sum(const std::vector<float>& x) {
  const auto length = [](const std::string& s) { return static_cast<float>(s.size()); };
  return regroup::reduce(regroup::seq, x, regroup::plus<float>{}, length);
}
