// expect: regroup: a mask's function takes scores of float and of double: `auto score`
#include "regroup/algorithms/attention.hpp"

regroup::attention_options hidden_from_nobody() {
  return {.mask = [](std::same_as<float> auto score, regroup::index, regroup::index, regroup::index query,
                     regroup::index key) { return key <= query ? score : regroup::hidden; }};
}
