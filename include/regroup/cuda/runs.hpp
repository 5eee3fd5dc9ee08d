// SPDX-License-Identifier: Apache-2.0
// Runs of equal neighbouring keys as segments. One scan finds them: it adds up the keys that begin a run, and what it
// would write at such a key is the run's number, which says where to note the key's position. Level: device.
#pragma once

#include "regroup/cuda/batch.hpp"
#include "regroup/cuda/block.hpp"

namespace regroup::cuda {

/// 1 at a key that begins a run: the first one, and each that is not == the one before it (a NaN never is); else 0.
template <class Key>
struct heads_of_runs {
  strided<const Key> keys;
  [[nodiscard]] constexpr index size() const noexcept { return keys.size(); }
  constexpr index operator[](index i) const { return i == 0 || !(keys[i] == keys[i - 1]) ? 1 : 0; }
};

/// Takes the inclusive scan of the heads and writes offsets[r], where run r begins, then the number of keys, and the number
/// of runs. Needs room for one offset more than there are keys.
template <class Key>
struct starts_of_runs {
  using place = index;
  heads_of_runs<Key> heads;
  index* offsets;
  index* runs;

  struct at {
    const starts_of_runs& of;
    index i;
    constexpr void operator=(index number) const {
      if (of.heads[i] == 1) of.offsets[number - 1] = i;
      if (i + 1 < of.heads.size()) return;
      of.offsets[number] = i + 1;
      *of.runs = number;
    }
  };
  [[nodiscard]] constexpr index size() const noexcept { return heads.size(); }
  constexpr at operator[](index i) const { return {*this, i}; }
};

/// The first key of every run.
template <class Key, class Out>
struct put_first_keys {
  strided<const Key> keys;
  const index* offsets;
  strided<Out> out;

  template <block Block>
  constexpr void operator()(Block& b) const {
    for (index r = b.block() * block_threads + b.thread(); r < out.size(); r += b.blocks() * block_threads) {
      out[r] = static_cast<Out>(keys[offsets[r]]);
    }
  }
};

}  // namespace regroup::cuda
