// expect: regroup: this mask's function is not const, or does not return a score, so nothing would call it
#include "regroup/algorithms/attention_masks.hpp"
#include "regroup/algorithms/attention.hpp"

regroup::attention_options counted() {
  const auto rule = [calls = 0](auto score, regroup::index, regroup::index, regroup::index, regroup::index) mutable {
    return ++calls % 2 == 0 ? score : regroup::hidden;
  };
  return {.mask = regroup::masks{regroup::causal{}, rule}};
}
