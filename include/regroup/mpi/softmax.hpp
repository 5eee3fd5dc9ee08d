// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax, logsumexp and cross_entropy of rows that ranks cut: with this header the verbs of
// algorithms/softmax.hpp and cross_entropy.hpp take `mpi::ranks`. Every rank brings its part of every row, of any length,
// equally many rows as the others, and gets the outputs of its part and every row's logsumexp or loss, with the bits of `seq`
// over whole rows. Of cross_entropy all bring the same targets, which number the classes of whole rows. Level: rank.
//
// A row of up to 65,536 elements in all is reduced twice, to its largest element, one number a rank, and to the sum of its
// weights; a longer one once, by log_sum_exp. As in `reduce`, ranks send each other states, and the numbers of tiles of 4096
// that they cut or that end a row. Memory: two or three numbers a row, and for rows of up to 65,536 a weight an element.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
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

/// cross_entropy_parts::classes_of, aims_of and executor_of_rows over ranks.
template <class Local>
index classes_of(const ranks<Local>& all, index length) {
  return all.comm().sum(length);
}
/// Every rank: targets are numbered from where its part begins; one that another rank has is past the end, and its logit, which
/// all know, is a sum of which every other rank's term is plus's identity. Throws argument_error on all ranks unless all bring
/// the same targets.
template <class Local, class In, class Targets, std::floating_point Real>
auto aims_of(const ranks<Local>& all, const In& in, const Targets& targets, index ignore_index,
             softmax_parts::scaled<Real> seen) {
  const index count = in.size(), length = in.length();
  std::array<index, 1> begin = {length};
  all.comm().sum_before(begin);
  std::vector<cross_entropy_parts::aim<Real>> aims;
  std::vector<Real> logits;
  std::uint64_t digest = 0;
  all.comm().together([&] {
    for (index row = 0; row < count; ++row) {
      const bool is_ignored = cross_entropy_parts::is_number(targets[row], ignore_index);
      const index target = is_ignored ? -1 : static_cast<index>(targets[row]);
      const index here = target - begin[0];
      const bool is_here = target >= 0 && 0 <= here && here < length;
      aims.push_back({is_ignored ? -1 : is_here ? here : length, Real{0}});
      logits.push_back(is_here ? seen(in[row][here]) : plus<Real>{}.identity());
      digest = (digest ^ static_cast<std::uint64_t>(target)) * 0x100000001b3;  // FNV-1a, of words
    }
  });
  if (const auto [least, largest] = all.comm().range(static_cast<index>(digest >> 1)); least != largest) {
    throw_argument("cross_entropy over ranks needs the same targets on every rank, of which rank " +
                   std::to_string(all.rank()) + " has some that another has not");
  }
  all.fold(rows(view<const Real>(logits.data(), {count, 1})), plus<Real>{},
           [&](index row, Real logit) { aims[static_cast<std::size_t>(row)].logit = logit; });
  return [aims = std::move(aims)](index row) { return aims[static_cast<std::size_t>(row)]; };
}
template <class Local>
const Local& executor_of_rows(const ranks<Local>& all) {
  return all.local();
}

}  // namespace regroup::mpi
