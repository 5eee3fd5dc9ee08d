// SPDX-License-Identifier: Apache-2.0
// What src/softmax.cpp and its like instantiate.
#pragma once

#include "regroup/algorithms/softmax.hpp"

namespace regroup::softmax_parts {

template <class X, class Y, class Real, class Map>
void each_row_compiled(const host::pool& ex, const row_slices<const X>& in, const row_slices<Y>& out, scaled<Real> seen,
                       const look_of<Map, Real>& look) {
  softmax_parts::each_row(ex, in, out, seen, look);
}
template <class X, class Real>
void each_row_compiled(const host::pool& ex, const row_slices<const X>& in, std::nullopt_t, scaled<Real> seen,
                       const look_of<no_map, Real>& look) {
  softmax_parts::each_row(ex, in, std::nullopt, seen, look);
}

}  // namespace regroup::softmax_parts
