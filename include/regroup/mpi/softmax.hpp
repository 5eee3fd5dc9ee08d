// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax, logsumexp and cross_entropy of rows that ranks cut: with this header the verbs of
// algorithms/softmax.hpp and cross_entropy.hpp take `mpi::ranks`. Every rank brings its part of every row, of any length,
// equally many rows as the others, and gets the outputs of its part and every row's logsumexp or loss, with the bits of `seq`
// over whole rows. Of cross_entropy all bring the same targets, which number the classes of whole rows. Level: rank.
//
// A row of up to 65,536 elements in all is reduced twice, to its largest element, one number a rank, and to the sum of its
// weights; a longer one once, by log_sum_exp. As in `reduce`, ranks send each other states, and the numbers of tiles of 4096
// that they cut or that end a row. Memory: two or three numbers a row, and for rows of up to 65,536 a weight an element.
// cross_entropy sends its target's logit too, and keeps two numbers a row more.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "regroup/algorithms/cross_entropy.hpp"
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
template <class Local, class In, class Out, std::floating_point Real, class Verb>
void each_row(const ranks<Local>& all, const In& in, const Out& out, softmax_parts::scaled<Real> seen,
              const softmax_parts::look<Verb>& look) {
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

/// cross_entropy_parts::classes_of, aims_of and executor_of_rows over ranks. Every rank: throws shape_error or argument_error
/// on all unless all bring as many rows, the same targets and one ignore_index, so that what one refuses all refuse.
template <class Local, class In, class Targets>
index classes_of(const ranks<Local>& all, const In& in, const Targets& targets, index ignore_index) {
  all.comm().require_same(in.size(), "rows of logits");
  std::uint64_t digest = 0x9e3779b97f4a7c15;
  const auto add = [&](auto x) {
    digest = (digest ^ static_cast<std::uint64_t>(x)) * 0xbf58476d1ce4e5b9;
    digest ^= digest >> 31;
  };
  add(ignore_index);
  for (index row = 0; row < in.size(); ++row) add(targets[row]);
  if (const auto [least, largest] = all.comm().range(static_cast<index>(digest >> 1)); least != largest) {
    throw_argument("cross_entropy over ranks needs the same targets and ignore_index on every rank; rank " +
                   std::to_string(all.rank()) + " of " + std::to_string(all.size()) + " finds that they are not");
  }
  return all.comm().sum(in.length());
}
/// A row aims at a place in this rank's part, or past its end where another rank has the target; its logit, which all know, is
/// a sum of which every other rank's term is plus's identity.
template <class Local, class In, class Targets, std::floating_point Real>
auto aims_of(const ranks<Local>& all, const In& in, const Targets& targets, index ignore_index,
             softmax_parts::scaled<Real> seen) {
  std::array<index, 1> begin = {in.length()};
  all.comm().sum_before(begin);
  const auto place_of = [&targets, ignore_index, first = begin[0], length = in.length()](index row) -> index {
    if (cross_entropy_parts::is_number(targets[row], ignore_index)) return -1;
    const index place = static_cast<index>(targets[row]) - first;
    return 0 <= place && place < length ? place : length;
  };
  std::vector<Real> logits;
  all.comm().together([&] {
    for (index row = 0; row < in.size(); ++row) {
      const index place = place_of(row);
      logits.push_back(0 <= place && place < in.length() ? seen(in[row][place]) : plus<Real>{}.identity());
    }
  });
  all.comm().sum(std::span(logits));
  return [place_of, logits = std::move(logits)](index row) -> cross_entropy_parts::aim<Real> {
    return {place_of(row), logits[static_cast<std::size_t>(row)]};
  };
}
template <class Local>
const Local& executor_of_rows(const ranks<Local>& all) {
  return all.local();
}

}  // namespace regroup::mpi
