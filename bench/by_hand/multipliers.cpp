// SPDX-License-Identifier: Apache-2.0
// The 16-bit multipliers a processor may have, at their peak: 2^30 operations from registers. Found by CPUID.
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cpuid.h>

#include "loops.hpp"
#include "regroup/host/dispatch.hpp"

namespace bench {
namespace {

constexpr std::int64_t operations = std::int64_t{1} << 30;

// Twelve independent chains; asm, so that neither the order nor the count is the compiler's.
[[gnu::target("avx512f,avx512bw,avx512bf16")]] float dot_bf16() {
  __m512 acc[12];
  for (auto& x : acc) x = _mm512_setzero_ps();
  const __m512i a = _mm512_set1_epi16(0x3f80), b = _mm512_set1_epi16(0x3f80);
  for (std::int64_t i = 0; i < operations / (12 * 64); ++i) {
    for (auto& x : acc) asm("vdpbf16ps %2, %1, %0" : "+v"(x) : "v"(a), "v"(b));
  }
  __m512 sum = acc[0];
  for (const auto& x : acc) sum = _mm512_add_ps(sum, x);
  return _mm512_cvtss_f32(sum);
}

[[gnu::target("avx512f,avx512bw")]] float fma_fp16() {
  __m512i acc[12];
  for (auto& x : acc) x = _mm512_setzero_si512();
  const __m512i a = _mm512_set1_epi16(0x3800), b = _mm512_set1_epi16(0x3c00);  // x / 2 + 1
  for (std::int64_t i = 0; i < operations / (12 * 64); ++i) {
    for (auto& x : acc) asm("vfmadd213ph %2, %1, %0" : "+v"(x) : "v"(a), "v"(b));
  }
  __m512i sum = acc[0];
  for (const auto& x : acc) sum = _mm512_xor_si512(sum, x);
  return static_cast<float>(_mm512_reduce_max_epi32(sum));
}

// Two by two tiles of 16 x 16 sums over 32 products, four loads' worth of operands kept: 4 x 16384 operations a turn.
[[gnu::target("amx-tile,amx-bf16")]] float amx_bf16() {
  alignas(64) unsigned char config[64] = {1};
  alignas(64) static unsigned short ones[512];
  alignas(64) float out[256] = {};
  for (auto& x : ones) x = 0x3f80;
  for (int t = 0; t < 8; ++t) {
    config[16 + 2 * t] = 64;  // bytes a row
    config[48 + t] = 16;      // rows
  }
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
  _tile_stored(0, out, 64);
  _tile_release();
  return out[0];
}

bool has_leaf7(unsigned subleaf, char which, int bit) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, subleaf, &a, &b, &c, &d) == 0) return false;
  return ((which == 'a' ? a : d) >> bit & 1u) != 0;
}
/// Linux gives AMX's registers to a process that asks.
bool may_use_amx() {
  constexpr long request = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM
  return syscall(SYS_arch_prctl, request, tile_data) == 0;
}

}  // namespace

const by_hand& loops() {
  return regroup::host::current_target() == regroup::host::target::x86_64_v4 ? loops_v4 : loops_v3;
}

const multiplier* multipliers() {
  static multiplier found[4] = {};
  if (found[0].name != nullptr) return found;
  int n = 0;
  const bool v4 = regroup::host::current_target() == regroup::host::target::x86_64_v4;
  if (v4 && has_leaf7(1, 'a', 5)) found[n++] = {"dot_bf16", dot_bf16};
  if (v4 && has_leaf7(0, 'd', 23)) found[n++] = {"fma_fp16", fma_fp16};
  if (v4 && has_leaf7(0, 'd', 24) && has_leaf7(0, 'd', 22) && may_use_amx()) found[n++] = {"amx_bf16", amx_bf16};
  return found;
}

}  // namespace bench
