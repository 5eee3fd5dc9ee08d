// SPDX-License-Identifier: Apache-2.0
// far_sweep: a row of softmax of types that the library has no loops for, by folds that an executor spreads over its threads;
// bits as softmax_sweeps.hpp. Level: thread.
#pragma once

#include <concepts>
#include <optional>
#include <type_traits>

#include "regroup/algorithms/softmax_row.hpp"
#include "regroup/executor.hpp"
#include "regroup/host/dispatch.hpp"

namespace regroup::softmax_parts {

/// y[i] = map(x[i], weight(x[i])), and the map's output at its target, by an executor's threads.
template <executor Executor, class X, class Y, class Map, std::floating_point Real>
void write_row(const Executor& ex, const strided<X>& x, const strided<Y>& y, const Map& map, const weight<Real>& w) {
  ex.for_each(tiles_of(x.count), static_cast<double>(tile_elements), [&](index t) {
    const index first = t * tile_elements;
    const index last = std::min(first + tile_elements, x.count);
    host::dispatch([&] {
      for (index i = first; i < last; ++i) y[i] = static_cast<Y>(map(x[i], w(x[i])));
    });
  });
  if constexpr (requires { map.finish(y); }) {
    if (map.target >= 0 && map.target < x.count) map.finish(y);
  }
}

/// Sweeps any row, from any type to any other, by an executor's folds.
template <executor Executor, std::floating_point Real>
class far_sweep {
 public:
  far_sweep(const Executor& ex, scaled<Real> seen) : ex_(ex), seen_(seen) {}

  template <class In, class Out, class Look>
  void row(const In& in, const Out& out, index row, const Look& look) const {
    const auto x = in[row];
    const auto state = state_of_row(x.size(), seen_, [&](const auto& m) { return fold(x, m); });
    if constexpr (std::same_as<Out, std::nullopt_t>) {
      look(row, state);
    } else {
      write_row(ex_, x, out[row], look(row, state), weight<Real>{seen_, state.m});
    }
  }

 private:
  template <class Row, class M>
  state_of<M> fold(const Row& row, const M& m) const {
    state_of<M> result = m.identity();
    ex_.fold(single{row}, m, [&](index, const state_of<M>& s) { result = s; });
    return result;
  }

  const Executor& ex_;
  scaled<Real> seen_;
};

}  // namespace regroup::softmax_parts
