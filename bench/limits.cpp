// SPDX-License-Identifier: Apache-2.0
// limit/machine/fp32/N: what this machine can do at all: reading and copying N floats, 2^30 operations of each
// multiplier.
#include "copies.hpp"

namespace bench {
namespace {

void contend(program& p) {
  const auto x = p.input<char>("x");
  add_read_limit(p, x);
  add_copy_limits(p, x, array<char>(static_cast<std::size_t>(x.size())));
  const auto peak = [&](const std::string& name, float (*run)()) {
    p.add_limit(name, [=, threads = p.threads] {
      in_pieces(threads, threads, [&](index, index) { benchmark::DoNotOptimize(run()); });
    });
  };
  peak("fma_fp32", loops().fma_fp32);
  for (const auto* m = multipliers(); m->name != nullptr; ++m) peak(m->name, m->run);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::main_of(argc, argv, bench::contend); }
