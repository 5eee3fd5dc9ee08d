// expect: regroup: a mask is a function object (score, batch, head, query, key) -> score or `hidden`
#include "regroup/algorithms/attention.hpp"

struct of_two {
  float operator()(regroup::index query, regroup::index key) const { return key <= query ? 0 : regroup::hidden; }
};

regroup::attention_options wrong() { return {.mask = of_two{}}; }
