// SPDX-License-Identifier: Apache-2.0
// What becomes of a row of softmax on a device once it has been folded: look(row, state) writes the row's own results
// (logsumexp, loss) and returns the map of its elements. Level: row.
#pragma once

#include <concepts>
#include <limits>
#include <type_traits>

#include "regroup/algorithms/cross_entropy_row.hpp"
#include "regroup/cuda/batch.hpp"

namespace regroup::cuda {

template <std::floating_point Real>
using row_state = typename log_sum_exp<Real>::state;

/// One place a row, at one stride; none where `first` is null.
template <class X>
struct row_places {
  X* first = nullptr;
  index stride = 1;
  template <class Real>
  constexpr void put(index row, Real x) const {
    if (first != nullptr) first[row * stride] = static_cast<X>(x);
  }
};

/// softmax's row, log_softmax's, and with no output logsumexp's.
template <template <class> class Map, std::floating_point Real, class Sum = Real>
struct look_normalise {
  softmax_parts::scaled<Real> seen;
  row_places<Sum> logsumexp;
  constexpr Map<Real> operator()(index row, row_state<Real> s) const {
    logsumexp.put(row, log_sum_exp<Real>{}.lower(s));
    return map(s);
  }
  /// What all who know the state know.
  constexpr Map<Real> map(row_state<Real> s) const { return Map<Real>(seen, s); }
};

/// The result of folding the targets before anything is computed: how many are classes, and the first row, from 0, whose
/// target is neither a class nor ignored.
struct check_targets {
  struct state {
    index rows = 0;
    index used = 0;
    index first_wrong = -1;
  };
  static constexpr bool is_exact = true;
  index classes;
  index ignore_index;
  constexpr state identity() const { return {}; }
  template <std::integral Target>
  constexpr state lift(Target target) const {
    const bool is_used = !cross_entropy_parts::is_number(target, ignore_index);
    return {1, is_used ? 1 : 0, is_used && !cross_entropy_parts::is_class(target, classes) ? 0 : -1};
  }
  constexpr state operator()(const state& a, const state& b) const {
    const index wrong_in_b = b.first_wrong < 0 ? -1 : a.rows + b.first_wrong;
    return {a.rows + b.rows, a.used + b.used, a.first_wrong < 0 ? wrong_in_b : a.first_wrong};
  }
};

/// cross_entropy's row. A target that is neither a class nor ignored makes its row NaN.
template <std::floating_point Real, class Logits, class Target>
struct look_target {
  Logits logits;
  row_places<const Target> targets;
  index ignore_index;
  softmax_parts::scaled<Real> seen;
  Real factor;                          // of the gradient, besides a row's share
  const check_targets::state* checked;  // null for a sum, where a row's share is 1
  double* summands;                     // one a row
  row_places<Real> losses;

  constexpr auto operator()(index row, row_state<Real> s) const {
    const Target target = targets.first[row * targets.stride];
    const bool is_ignored = cross_entropy_parts::is_number(target, ignore_index);
    cross_entropy_parts::aim<Real> at{-1, Real{0}};
    if (!is_ignored && cross_entropy_parts::is_class(target, logits.length)) {
      const auto t = static_cast<index>(target);
      at = {t, seen(logits[row][t])};
    } else if (!is_ignored) {
      constexpr Real nan = std::numeric_limits<Real>::quiet_NaN();
      at = {0, nan};
      s = {nan, nan};
    }
    const Real loss = cross_entropy_parts::loss_of(s, at);
    summands[row] = is_ignored ? plus<double>{}.identity() : static_cast<double>(loss);
    losses.put(row, loss);
    const Real share = checked == nullptr ? factor : factor / static_cast<Real>(checked->used);
    return cross_entropy_parts::gradient_of(s, at, share);
  }
};

/// The sum of the losses, or their mean over `checked->used`; puts the loss of the batch.
template <class Out>
struct put_loss {
  const check_targets::state* checked;  // null for a sum
  Out* out;
  template <class Sum>
  constexpr void operator()(index, Sum sum) const {
    const double total = plus<double>{}.lower(sum);
    *out = static_cast<Out>(checked == nullptr ? total : total / static_cast<double>(checked->used));
  }
};

}  // namespace regroup::cuda
