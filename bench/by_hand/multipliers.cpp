// SPDX-License-Identifier: Apache-2.0
// The 16-bit multipliers a processor may have, at their peak: 2^30 operations from registers. Found by CPUID.
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cpuid.h>

#include "loops.hpp"
#include "peak.hpp"
#include "regroup/host/dispatch.hpp"

namespace bench {
namespace {

constexpr std::int64_t operations = std::int64_t{1} << 30;

// 32 products and sums an instruction.
void dot_bf16() {
  std::int64_t turns = operations / (12 * 64);
  REGROUP_PEAK("vdpbf16ps", "zmm", turns);
}
void dot_int16() {
  std::int64_t turns = operations / (12 * 64);
  REGROUP_PEAK("vpdpwssd", "zmm", turns);
}
void fma_fp16() {
  std::int64_t turns = operations / (12 * 64);
  REGROUP_PEAK("vfmadd231ph", "zmm", turns);
}

// Two by two tiles of 16 x 16 sums over 32 products, four loads' worth of operands kept: 4 x 16384 operations a turn.
[[gnu::target("amx-tile,amx-bf16")]] void amx_bf16() {
  alignas(64) unsigned char config[64] = {1};
  alignas(64) static unsigned short ones[512];
  for (auto& x : ones) x = 0x3f80;
  for (int t = 0; t < 8; ++t) {
    config[16 + 2 * t] = 64;  // bytes a row
    config[48 + t] = 16;      // rows
  }
  asm volatile("" ::"r"(config), "r"(ones) : "memory");  // which compilers do not see read by what follows
  _tile_loadconfig(config);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, ones, 64);
  _tile_loadd(5, ones, 64);
  _tile_loadd(6, ones, 64);
  _tile_loadd(7, ones, 64);
  for (std::int64_t i = 0; i < operations / (4 * 16384); ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
}

bool has_leaf7(unsigned subleaf, char which, int bit) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, subleaf, &a, &b, &c, &d) == 0) return false;
  return ((which == 'a' ? a : which == 'c' ? c : d) >> bit & 1u) != 0;
}
/// Linux gives AMX's registers to a process that asks.
bool may_use_amx() {
  constexpr long request = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM
  return syscall(SYS_arch_prctl, request, tile_data) == 0;
}

}  // namespace

const by_hand& loops() {
  return regroup::host::current_target() >= regroup::host::target::x86_64_v4 ? loops_v4 : loops_v3;
}

const multiplier* multipliers() {
  static multiplier found[5] = {};
  if (found[0].name != nullptr) return found;
  int n = 0;
  const bool v4 = regroup::host::current_target() >= regroup::host::target::x86_64_v4;
  if (v4 && has_leaf7(1, 'a', 5)) found[n++] = {"dot_bf16", dot_bf16};
  if (v4 && has_leaf7(0, 'c', 11)) found[n++] = {"dot_int16", dot_int16};
  if (v4 && has_leaf7(0, 'd', 23)) found[n++] = {"fma_fp16", fma_fp16};
  if (v4 && has_leaf7(0, 'd', 24) && has_leaf7(0, 'd', 22) && may_use_amx()) found[n++] = {"amx_bf16", amx_bf16};
  return found;
}

}  // namespace bench
