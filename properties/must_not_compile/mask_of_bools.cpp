// expect: regroup: a mask returns a score, not bool: `key <= query ? score : hidden`
#include "regroup/algorithms/attention.hpp"

regroup::attention_options causal_by_hand() {
  return {.mask = [](float, regroup::index, regroup::index, regroup::index query, regroup::index key) { return key <= query; }};
}
