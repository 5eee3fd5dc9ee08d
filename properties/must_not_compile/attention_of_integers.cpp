// expect: attention takes float16, bfloat16, float or double
#include <vector>

#include "regroup/regroup.hpp"

int main() {
  std::vector<int> x(16);
  const regroup::view rows(x.data(), {2, 2, 4});
  regroup::attention(regroup::seq, rows, regroup::dense(rows, rows), rows);
}
