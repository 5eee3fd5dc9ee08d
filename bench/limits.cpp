// SPDX-License-Identifier: Apache-2.0
// limit/machine/fp32/N: what this machine can do at all: reading and copying N floats, 2^30 operations of each
// multiplier.
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

int main(int argc, char** argv) { return bench::main_of(argc, argv, bench::contend); }
