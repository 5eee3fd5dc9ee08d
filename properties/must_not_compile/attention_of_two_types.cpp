// expect: regroup: queries, keys and values have one element type
// expect: regroup: keys and values have one element type
// expect: regroup: attention's output has the queries' element type, or float
// expect: regroup: page tables and lengths are integers
#include <vector>

#include "regroup/algorithms/attention.hpp"
#include "regroup/host/seq.hpp"

int main() {
  std::vector<float> x(16);
  std::vector<double> wide(16);
  std::vector<regroup::bfloat16> narrow(16);
  const regroup::shape e{1, 2, 2, 4};
  const regroup::view floats(x.data(), e);
  const regroup::view doubles(wide.data(), e);
  const regroup::view halves(narrow.data(), e);
  regroup::attention(regroup::seq, floats, regroup::dense(halves, halves), floats);
  (void)regroup::dense(floats, doubles);
  regroup::attention(regroup::seq, floats, regroup::dense(floats, floats), halves);
  (void)regroup::dense(floats, floats, std::vector<float>{2});
}
