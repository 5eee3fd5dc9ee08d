// SPDX-License-Identifier: Apache-2.0
// Attention whose keys lie on many ranks: each rank folds the queries over its own keys, and states merge in rank order. Like
// every split of keys this regroups: within the error bound, with bits that depend on where the ranks cut. Level: rank.
#pragma once

#include <concepts>
#include <cstddef>
#include <vector>

#include "regroup/algorithms/attention_state.hpp"
#include "regroup/mpi/ranks.hpp"

namespace regroup::mpi {

/// Called on every rank: returns the state of the same queries over all ranks' keys, merged in adjacent pairs, level by
/// level. A rank without keys passes the state of no keys, or of no queries. Costs ceil(log2 ranks) messages of one state
/// each, then one to every rank. Where queries differ, throws shape_error on a rank that detects it and mpi::error on the
/// others.
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
