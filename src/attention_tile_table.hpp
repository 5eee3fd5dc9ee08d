// SPDX-License-Identifier: Apache-2.0
// Tables of attention's kernels for one instruction set.
#pragma once

#include "attention_key_lanes.hpp"
#include "attention_query_lanes.hpp"

namespace regroup::tiles {
namespace {

template <class Kernels>
constexpr key_lanes<typename Kernels::T> keys_of() {
  return {{Kernels::scores, Kernels::weights, Kernels::values}};
}
template <class Kernels>
constexpr query_lanes<typename Kernels::T> queries_of() {
  return {{Kernels::scores, Kernels::weights, Kernels::values}, Kernels::panel};
}

/// Products of T in packs of Bytes, one a step.
template <class T, int Bytes>
using singles = single_products<
    std::conditional_t<std::same_as<T, double>, pack<double, (Bytes < 8 ? 8 : Bytes)>, pack<float, Bytes>>, T>;

/// The table for packs of Bytes. Most and Registers are those of key lanes (attention_key_lanes.hpp).
template <int Bytes, class QueriesOfFloat, class QueriesOfDouble, int Most, int Registers>
inline constexpr instruction_set all_kernels = {
    queries_of<QueriesOfFloat>(),
    queries_of<QueriesOfDouble>(),
    {},
    keys_of<with_key_lanes<singles<float, Bytes>, Most, Registers>>(),
    keys_of<with_key_lanes<singles<double, Bytes>, Most, Registers>>(),
    keys_of<with_key_lanes<singles<float16, Bytes>, Most, Registers>>(),
    keys_of<with_key_lanes<singles<bfloat16, Bytes>, Most, Registers>>(),
};

}  // namespace
}  // namespace regroup::tiles
