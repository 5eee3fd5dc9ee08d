// SPDX-License-Identifier: Apache-2.0
// What src/softmax.cpp and its like instantiate.
#pragma once

#include "regroup/algorithms/softmax.hpp"

namespace regroup::softmax_parts {

template <class X, class Y, class Map>
void each_row_compiled(const host::pool& ex, const row_slices<const X>& in, const row_slices<Y>& out,
                       scaled<widened<X>> seen, const look_of<Map, widened<X>>& look) {
  softmax_parts::each_row(ex, in, out, seen, look);
}
template <class X>
void each_row_compiled(const host::pool& ex, const row_slices<const X>& in, std::nullopt_t, scaled<widened<X>> seen,
                       const look_of<no_map, widened<X>>& look) {
  softmax_parts::each_row(ex, in, std::nullopt, seen, look);
}

}  // namespace regroup::softmax_parts
