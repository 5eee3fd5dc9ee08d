// SPDX-License-Identifier: Apache-2.0
// The limits of work that reads x and writes y: reading x, and copying x to y in three ways. bench.py takes the fastest
// copy, and read and copy together where a row is too long to be kept between its two sweeps.
#pragma once

#include <cstring>

#include "bench.hpp"
#include "by_hand/loops.hpp"

namespace bench {

inline void add_read_limit(program& p, const array<char>& x) {
  p.add_limit("read", [=, threads = p.threads] {
    constexpr index page = 4096;
    in_pieces(threads, x.size() / page, [&](index first, index last) {
      const auto bytes = static_cast<std::size_t>((last - first) * page);
      benchmark::DoNotOptimize(loops().read(x.data() + first * page, bytes));
    });
  });
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

}  // namespace bench
