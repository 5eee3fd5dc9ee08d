// SPDX-License-Identifier: Apache-2.0
// Attention whose keys lie on many ranks: each folds the queries over its own, and states merge in the order of ranks. This
// regroups, as every split of keys does: within the error bound, with bits that depend on where ranks cut. Level: rank.
#pragma once

#include <concepts>
#include <cstddef>
#include <vector>

#include "regroup/algorithms/attention_state.hpp"
#include "regroup/mpi/ranks.hpp"

namespace regroup::mpi {

/// Every rank: the state of the same queries over all ranks' keys, adjacent pairs first, level by level. A rank without keys
/// has the state of no keys, or of no queries. ceil(log2 ranks) messages of a state each, then one to every rank. Throws
/// shape_error where queries differ, on a rank that sees it, and mpi::error on the others.
template <class Local, std::floating_point Real>
[[nodiscard]] attention_state<Real> merge(const ranks<Local>& all, attention_state<Real> mine) {
  communicator::attempt attempted(all.comm());
  const auto give = [&] { return mine.save(); };
  all.comm().join(attempted, give,
                  [&](const std::vector<std::byte>& bytes) { mine.merge(attention_state<Real>::load(bytes)); });
  all.comm().broadcast(attempted, give,
                       [&](const std::vector<std::byte>& bytes) { mine = attention_state<Real>::load(bytes); });
  attempted.settle();
  return mine;
}

}  // namespace regroup::mpi
