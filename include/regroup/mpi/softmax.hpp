// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax and logsumexp of rows that ranks cut: with this header the verbs of algorithms/softmax.hpp take
// `mpi::ranks`. Every rank brings its part of every row, of any length, equally many rows as the others, and gets the outputs
// of its part and every row's logsumexp, with the bits of `seq` over whole rows. Level: rank.
//
// A row of up to 65,536 elements in all is reduced twice, to its largest element, one number a rank, and to the sum of its
// weights; a longer one once, by log_sum_exp. As in `reduce`, ranks send each other states, and the numbers of tiles of 4096
// that they cut or that end a row. Memory: two or three numbers a row, and for rows of up to 65,536 a weight an element.
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <vector>

#include "regroup/algorithms/softmax.hpp"
#include "regroup/mpi/ranks.hpp"

namespace regroup::mpi {

namespace detail {
/// Every rank: (M, s) of whole rows.
template <class Local, class In, std::floating_point Real>
auto states_of_rows(const ranks<Local>& all, const In& in, softmax_parts::scaled<Real> seen) {
  const index count = in.size(), length = in.length();
  const bool are_long = all.comm().sum(length) > longest_two_sweep_row;
  std::vector<typename log_sum_exp<Real>::state> states;
  std::vector<Real> largest, weights;
  const auto at = [](auto& xs, index row) -> auto& { return xs[static_cast<std::size_t>(row)]; };
  all.comm().together([&] {
    states.resize(static_cast<std::size_t>(count));
    if (are_long) return;
    largest.resize(states.size());
    weights.resize(static_cast<std::size_t>(count * length));
    all.local().fold(in, softmax_parts::over{maximum<Real>{}, seen}, [&](index row, Real x) { at(largest, row) = x; });
  });
  if (are_long) {
    all.fold(in, softmax_parts::over{log_sum_exp<Real>{}, seen}, [&](index row, const auto& s) { at(states, row) = s; });
    return states;
  }
  const view<const Real> of_parts(largest.data(), {count, 1}), of_elements(weights.data(), {count, length});
  all.fold(rows(of_parts), maximum<Real>{}, [&](index row, Real m) { at(states, row).m = m + Real{0}; });
  all.comm().together([&] {
    all.each(count, [&](index row, const auto& on) {
      softmax_parts::write_row(on, in[row], strided<Real>{weights.data() + row * length, length, 1},
                               [](const auto&, Real weight) { return weight; },
                               softmax_parts::weight<Real>{seen, at(states, row).m});
    });
  });
  all.fold(rows(of_elements), plus<Real>{}, [&](index row, Real s) { at(states, row).s = plus<Real>{}.lower(s); });
  return states;
}
}  // namespace detail

/// softmax_parts::each_row over ranks: every rank looks at every row's state.
template <class Local, class In, class Out, std::floating_point Real, class Look>
void each_row(const ranks<Local>& all, const In& in, const Out& out, softmax_parts::scaled<Real> seen, const Look& look) {
  const auto states = detail::states_of_rows(all, in, seen);
  all.comm().together([&] {
    all.each(in.size(), [&](index row, const auto& on) {
      const auto& state = states[static_cast<std::size_t>(row)];
      if constexpr (std::same_as<Out, std::nullopt_t>) {
        look(row, state);
      } else {
        softmax_parts::write_row(on, in[row], out[row], look(row, state), softmax_parts::weight<Real>{seen, state.m});
      }
    });
  });
}

}  // namespace regroup::mpi
