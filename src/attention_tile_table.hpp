// SPDX-License-Identifier: Apache-2.0
// The kernels of one instruction set as a table.
#pragma once

#include "attention_key_lanes.hpp"
#include "attention_query_lanes.hpp"

namespace regroup::tiles {
namespace {

template <class T, class Kernels>
constexpr key_lanes<T> keys_of() {
  return {{Kernels::scores, Kernels::weights, Kernels::values}};
}
template <class Kernels>
constexpr query_lanes<typename Kernels::Real> queries_of() {
  return {{Kernels::scores, Kernels::weights, Kernels::values}, Kernels::transpose};
}

/// With packs of Bytes, at most Most queries a pass and Registers for accumulators where lanes are keys.
template <int Bytes, class QueriesOfFloat, class QueriesOfDouble, int Most, int Registers>
inline constexpr instruction_set all_kernels = {
    queries_of<QueriesOfFloat>(),
    queries_of<QueriesOfDouble>(),
    keys_of<float, with_key_lanes<float, pack<float, Bytes>, Most, Registers>>(),
    keys_of<double, with_key_lanes<double, pack<double, (Bytes < 8 ? 8 : Bytes)>, Most, Registers>>(),
    keys_of<float16, with_key_lanes<float16, pack<float, Bytes>, Most, Registers>>(),
    keys_of<bfloat16, with_key_lanes<bfloat16, pack<float, Bytes>, Most, Registers>>(),
};

}  // namespace
}  // namespace regroup::tiles
