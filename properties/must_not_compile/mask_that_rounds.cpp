// expect: regroup: a mask's function takes scores of float and of double, which this one would round: `auto score`
#include "regroup/algorithms/attention.hpp"

regroup::attention_options halves() {
  return {.mask = [](float score, regroup::index, regroup::index, regroup::index, regroup::index) { return score / 2; }};
}
