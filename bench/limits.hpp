// SPDX-License-Identifier: Apache-2.0
// The machine's limits, each timed beside the work it bounds: reading x; copying x to y in three ways, of which the
// fastest counts (read and copy together where a row is too long to be kept between two sweeps); multipliers.
#pragma once

#include <cstring>

#include "bench.hpp"
#include "by_hand/loops.hpp"

namespace bench {

inline void add_read_limits(program& p, const array<char>& x) {
  const auto add = [&](const std::string& name, auto read) {
    p.add_limit(name, [=, threads = p.threads] {
      constexpr index page = 4096;
      in_pieces(threads, x.size() / page, [&](index first, index last) {
        benchmark::DoNotOptimize(read(x.data() + first * page, static_cast<std::size_t>((last - first) * page)));
      });
    });
  };
  add("read", loops().read);
  add("read with prefetch", loops().read_prefetched);
}

inline void add_copy_limits(program& p, const array<char>& x, const array<char>& y) {
  const auto add = [&](const std::string& name, auto copy) {
    p.add_limit(name, [=, threads = p.threads] {
      constexpr index line = 64;  // pieces begin at one, so that no two threads write in the same
      const index n = std::min(x.size(), y.size()), lines = (n + line - 1) / line;
      in_pieces(threads, lines, [&](index first, index last) {
        const index from = first * line, to = std::min(last * line, n);
        copy(y.data() + from, x.data() + from, static_cast<std::size_t>(to - from));
      });
    });
  };
  add("copy, plain", [](void* to, const void* from, std::size_t n) { std::memcpy(to, from, n); });
  add("copy, non-temporal", loops().copy_non_temporal);
  add("copy, non-temporal with prefetch", loops().copy_prefetched);
}

/// 2^30 operations a thread, from registers, of fp32's multiplier and of those that take `type` (all of them: "").
inline void add_multiplier_limits(program& p, const std::string& type) {
  const auto add = [&](const std::string& name, void (*run)()) {
    p.add_limit(name, [=, threads = p.threads] { in_pieces(threads, threads, [&](index, index) { run(); }); });
  };
  add("fma_fp32", loops().fma_fp32);
  for (const auto* m = multipliers(); m->name != nullptr; ++m) {
    const std::string name = m->name;
    if (name.ends_with(type) || (name == "dot_int16" && type.ends_with("16"))) add(name, m->run);
  }
}

}  // namespace bench
