// SPDX-License-Identifier: Apache-2.0
// limit/machine/fp32/N: what this machine can do at all: reading and copying N floats, 2^30 operations of each
// multiplier. `bench_limits target`: the instruction set in use.
#include "limits.hpp"

namespace bench {
namespace {

void contend(program& p) {
  const auto x = p.input<char>("x");
  add_read_limits(p, x);
  add_copy_limits(p, x, array<char>(static_cast<std::size_t>(x.size())));
  add_multiplier_limits(p, "");
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  if (argc != 2 || std::string_view(argv[1]) != "target") return bench::main_of(argc, argv, bench::contend);
  try {
    std::puts(regroup::host::name(regroup::host::current_target()));
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
  }
}
