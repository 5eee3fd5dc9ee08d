// SPDX-License-Identifier: Apache-2.0
// Softmax and logsumexp of rows beside what one would write: the safe loops over maximum, exp, sum and quotient, with
// libm's exp and with ours, at -O3 on one thread. `GB/s` counts x once and y once; `of copy` is that over a plain copy
// of the same arrays in the same run, the machine's limit; `speedup` is against the loops with libm.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "regroup/algorithms/softmax.hpp"
#include "regroup/host/par.hpp"
#include "regroup/host/seq.hpp"

namespace {

using regroup::index;

struct matrix {
  index rows, columns;
  std::vector<float> x, y;
  matrix(index n, index c) : rows(n), columns(c), x(static_cast<std::size_t>(n * c)), y(x.size()) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal(0, 5);
    for (float& e : x) e = normal(random);
  }
  [[nodiscard]] regroup::view<const float> in() const { return {x.data(), {rows, columns}}; }
  [[nodiscard]] regroup::view<float> out() { return {y.data(), {rows, columns}}; }
};

template <class Exp>
void three_loops(matrix& a, const Exp& exp) {
  for (index r = 0; r < a.rows; ++r) {
    const float* const x = a.x.data() + r * a.columns;
    float* const y = a.y.data() + r * a.columns;
    float m = -std::numeric_limits<float>::infinity();
    for (index i = 0; i < a.columns; ++i) m = std::max(m, x[i]);
    float sum = 0;
    for (index i = 0; i < a.columns; ++i) y[i] = exp(x[i] - m);
    for (index i = 0; i < a.columns; ++i) sum += y[i];
    for (index i = 0; i < a.columns; ++i) y[i] /= sum;
  }
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Seconds a call of the peers, by name and row length, for the ratios.
std::map<std::pair<std::string, index>, double>& seconds() {
  static std::map<std::pair<std::string, index>, double> times;
  return times;
}

template <class Body>
void measure(benchmark::State& state, const std::string& name, const Body& body) {
  const index columns = state.range(0);
  matrix a(std::max<index>(1, (index{1} << 22) / columns), columns);
  double total = 0;
  for (auto _ : state) {
    const double start = now();
    body(a);
    benchmark::ClobberMemory();
    total += now() - start;
  }
  const double each = total / static_cast<double>(state.iterations());
  seconds()[{name, columns}] = each;
  const auto against = [&](const char* peer) { return seconds()[{peer, columns}] / each; };
  const double bytes = static_cast<double>(a.x.size() * 2 * sizeof(float));
  state.counters["ns/element"] = each * 1e9 / static_cast<double>(a.x.size());
  state.counters["GB/s"] = bytes / each / 1e9;
  state.counters["of copy"] = against("copy");
  state.counters["speedup"] = against("three loops");
}

}  // namespace

int main(int argc, char** argv) {
  const auto add = [](const std::string& name, const auto& body) {
    benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) { measure(state, name, body); })
        ->ArgsProduct({{37, 128, 1000, 4096, 30522, 1 << 20}})
        ->UseRealTime();
  };
  add("copy", [](matrix& a) { std::memcpy(a.y.data(), a.x.data(), a.x.size() * sizeof(float)); });
  add("three loops", [](matrix& a) { three_loops(a, [](float x) { return std::exp(x); }); });
  add("three loops, our exp and dispatch", [](matrix& a) {
    regroup::host::dispatch([&] { three_loops(a, [](float x) { return regroup::math::exp(x); }); });
  });
  add("softmax, seq", [](matrix& a) { regroup::softmax(regroup::seq, a.in(), a.out()); });
  add("softmax, par", [](matrix& a) { regroup::softmax(regroup::par, a.in(), a.out()); });
  add("log_softmax, seq", [](matrix& a) { regroup::log_softmax(regroup::seq, a.in(), a.out()); });
  add("logsumexp, seq", [](matrix& a) { regroup::logsumexp(regroup::seq, a.in(), [](regroup::index, float) {}); });
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
