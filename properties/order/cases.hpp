// SPDX-License-Identifier: Apache-2.0
// The lengths and the executors that every test of the order uses.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "regroup/executor.hpp"
#include "regroup/host/par.hpp"
#include "regroup/host/seq.hpp"

namespace order {

/// Sanitizer builds set REGROUP_SMALL and do less.
inline bool small() { return std::getenv("REGROUP_SMALL") != nullptr; }

/// A generator with the same numbers everywhere: std's distributions differ between libraries.
class dice {
 public:
  explicit dice(std::uint64_t seed) : engine_(seed) {}
  /// Uniform in [low, high].
  std::int64_t operator()(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }

 private:
  std::mt19937_64 engine_;
};

/// Around every edge of the order: lanes, pieces, tiles, powers of two of tiles.
inline std::vector<std::int64_t> edges() {
  constexpr std::int64_t t = regroup::tile_elements;
  constexpr std::int64_t l = regroup::lanes;
  constexpr std::int64_t piece = t / l;
  std::vector<std::int64_t> ns = {0,         1,  2,     3,     piece - 1, piece, piece + 1,
                                  2 * piece, 37, l - 2, l - 1, l,         l + 1, l + 2};
  for (const std::int64_t k : {2, 3, 7, 8, 31}) {
    for (const std::int64_t d : {-1, 0, 1}) ns.push_back(k * l + d);
  }
  for (const std::int64_t k : {1, 2, 3, 4, 8}) {
    for (const std::int64_t d : {-1, 0, 1}) ns.push_back(k * t + d);
  }
  ns.insert(ns.end(), {t - piece, t + piece - 1, t + piece + 1, 4 * t + 5, 5 * t, 7 * t + l + 1, 9 * t, 17 * t - 1});
  dice random(11);
  for (int i = 0; i < (small() ? 2 : 8); ++i) ns.push_back(random(0, (small() ? 10 : 40) * t));
  return ns;
}

/// Calls f(executor, name) with the executors that ship.
template <class F>
void for_each_executor(const F& f) {
  f(regroup::seq, std::string("seq"));
  f(regroup::par, std::string("par"));
  for (const int threads : {1, 2, 3, 7})
    f(regroup::par.with_threads(threads), "par, threads " + std::to_string(threads));
}

/// Fewer of them, by the worker they share, where a test has many cases or instantiations.
template <class F>
void for_some_executors(const F& f) {
  f(worker_of(regroup::seq), std::string("seq"));
  for (const int threads : {2, 7}) {
    f(worker_of(regroup::par.with_threads(threads)), "par, threads " + std::to_string(threads));
  }
}

}  // namespace order
