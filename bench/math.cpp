// SPDX-License-Identifier: Apache-2.0
// math/exp|exp2|log/fp32|fp64/N: a function of N elements that stay in a core's cache, on one thread: ours in a loop that
// the compiler makes packs of, beside the loop on libm, Eigen, and the libraries of by_library/. No limit of the machine's:
// what it costs to compute. Compiled a second time for -march=native, without those libraries, whose code that would not
// change.
#include <Eigen/Core>

#include <cmath>
#include <numbers>

#include "bench.hpp"
#include "by_library/math.hpp"
#include "regroup/host/dispatch.hpp"
#include "regroup/math.hpp"

namespace bench {
namespace {

template <class T, class Ours, class Libm, class OfEigen>
void contend(program& p, Ours ours, Libm libm, OfEigen of_eigen) {
  const auto x = p.input<T>("x");
  const array<T> y(static_cast<std::size_t>(x.size()));
  const auto add = [&](const std::string& who, auto f) {
    p.add(
        who, [=] { f(x.data(), y.data(), x.size()); }, [=] { return y; });
  };
  add("ours", [=](const T* from, T* to, index n) {
    regroup::host::dispatch([=] {
      for (index i = 0; i < n; ++i) to[i] = ours(from[i]);
    });
  });
  add("Eigen", [=](const T* from, T* to, index n) {
    using values = Eigen::Array<T, Eigen::Dynamic, 1>;
    Eigen::Map<values>(to, n) = of_eigen(Eigen::Map<const values>(from, n));
  });
  add("libm, one at a time", [=](const T* from, T* to, index n) {
    for (index i = 0; i < n; ++i) to[i] = libm(from[i]);
  });
#ifndef REGROUP_BENCH_NATIVE
  if (x.size() % 16 != 0 || regroup::host::current_target() == regroup::host::target::baseline) return;
  const bool v4 = regroup::host::current_target() >= regroup::host::target::x86_64_v4;
  for (const math_loop* loop = v4 ? math_loops_v4 : math_loops_v3; loop->who != nullptr; ++loop) {
    if (loop->work == p.work.what + "/" + p.work.type) add(loop->who, loop->run);
  }
#endif
}

template <class T>
void contend_all_of(program& p) {
  if (p.work.what == "exp") {
    return contend<T>(
        p, [](T x) { return regroup::math::exp(x); }, [](T x) { return std::exp(x); },
        [](const auto& x) { return x.exp(); });
  }
  if (p.work.what == "log") {
    return contend<T>(
        p, [](T x) { return regroup::math::log(x); }, [](T x) { return std::log(x); },
        [](const auto& x) { return x.log(); });
  }
  if (p.work.what == "exp2") {  // which Eigen makes of exp
    return contend<T>(
        p, [](T x) { return regroup::math::exp2(x); }, [](T x) { return std::exp2(x); },
        [](const auto& x) { return (x * T(std::numbers::ln2)).exp(); });
  }
  throw std::invalid_argument("no such work: math/" + p.work.what);
}

void contend_all(program& p) {
  if (p.work.type == "fp32") return contend_all_of<float>(p);
  if (p.work.type == "fp64") return contend_all_of<double>(p);
  throw std::invalid_argument("no such work: math/" + p.work.what + "/" + p.work.type);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::main_of(argc, argv, bench::contend_all); }
