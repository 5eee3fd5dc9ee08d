// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax and logsumexp of rows that ranks cut: with this header the verbs of algorithms/softmax.hpp take
// `mpi::ranks`. Every rank brings its part of every row, of any length, equally many rows as the others, and gets the outputs
// of its part and every row's logsumexp, with the bits of `seq` over whole rows. Level: rank.
//
// A whole row of up to 65,536 elements has its largest element found first, by one number a rank and row; then a sum of
// weights goes over the ranks, or, for longer rows, log_sum_exp's state, as in `reduce`: where ranks cut rows at multiples of
// 4096 elements they send each other no weights and no elements.
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <vector>

#include "regroup/algorithms/softmax.hpp"
#include "regroup/mpi/ranks.hpp"

namespace regroup::mpi {

/// exp(x - M) of this rank's elements, each row relative to its own M.
template <class In, std::floating_point Real>
struct weights_of_rows {
  const In& in;
  softmax_parts::scaled<Real> seen;
  const std::vector<Real>& m;
  [[nodiscard]] index size() const { return in.size(); }
  auto operator[](index row) const {
    return generate(in.length(), [x = in[row], w = softmax_parts::weight<Real>{seen, m[static_cast<std::size_t>(row)]}](index i) {
      return w(x[i]);
    });
  }
};

/// Every rank: (M, s) of whole rows.
template <class Local, class In, std::floating_point Real>
std::vector<typename log_sum_exp<Real>::state> states_of_rows(const ranks<Local>& all, const In& in,
                                                              softmax_parts::scaled<Real> seen) {
  using state = typename log_sum_exp<Real>::state;
  const auto rows = static_cast<std::size_t>(in.size());
  std::vector<state> states(rows);
  if (all.comm().sum(in.length()) > longest_two_sweep_row) {
    all.fold(in, softmax_parts::over{log_sum_exp<Real>{}, seen},
             [&](index row, const state& s) { states[static_cast<std::size_t>(row)] = s; });
    return states;
  }
  std::vector<Real> m(rows);
  const auto keep = [&](index row, Real largest) { m[static_cast<std::size_t>(row)] = largest + Real{0}; };
  all.local().fold(in, softmax_parts::over{maximum<Real>{}, seen}, keep);
  const std::vector<Real> own = m;
  all.fold(regroup::rows(view<const Real>(own.data(), {in.size(), 1})), maximum<Real>{}, keep);
  all.fold(weights_of_rows<In, Real>{in, seen, m}, plus<Real>{}, [&](index row, Real s) {
    states[static_cast<std::size_t>(row)] = {m[static_cast<std::size_t>(row)], plus<Real>{}.lower(s)};
  });
  return states;
}

/// softmax_parts::each_row over ranks.
template <class Local, class In, class Out, std::floating_point Real, class Look>
void each_row(const ranks<Local>& all, const In& in, const Out& out, softmax_parts::scaled<Real> seen, const Look& look) {
  all.comm().require_same(in.size(), "rows");
  const auto states = states_of_rows(all, in, seen);
  all.each(in.size(), [&](index row, const auto& on) {
    const auto& state = states[static_cast<std::size_t>(row)];
    if constexpr (std::same_as<Out, std::nullopt_t>) {
      look(row, state);
    } else {
      softmax_parts::write_row(on, in[row], out[row], look(row, state), softmax_parts::weight<Real>{seen, state.m});
    }
  });
}

}  // namespace regroup::mpi
