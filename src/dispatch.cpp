// SPDX-License-Identifier: Apache-2.0
#include "regroup/host/dispatch.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "regroup/error.hpp"
#include "regroup/memory.hpp"
#include "targets.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif

namespace regroup::host {

namespace {

#if defined(__x86_64__)
/// The features of x86-64-v3 that not every compiler's __builtin_cpu_supports can name.
bool has_rest_of_v3() {
  unsigned a, b, basic, extended, d;
  constexpr unsigned wanted = bit_F16C | bit_MOVBE;
  return __get_cpuid(1, &a, &b, &basic, &d) != 0 && (basic & wanted) == wanted &&
         __get_cpuid(0x80000001, &a, &b, &extended, &d) != 0 && (extended & bit_LZCNT) != 0;
}

/// Whether AMX's registers can be used: the processor has them, the operating system saves them, and this process may use them.
/// Linux must be asked for that permission once; it holds for all later threads.
bool has_matrices() {
#if defined(__linux__)
  unsigned a, b, c, d;
  constexpr unsigned xsaved = 1u << 27, bf16 = 1u << 22, tiles = 1u << 24;  // of leaf 1, c; of leaf 7, d
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & xsaved) == 0) return false;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & bf16) == 0 || (d & tiles) == 0) return false;
  constexpr unsigned layout_and_data = 3u << 17;
  asm("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
  constexpr long request = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return (a & layout_and_data) == layout_and_data && syscall(SYS_arch_prctl, request, tile_data) == 0;
#else
  return false;
#endif
}
#endif

}  // namespace

bool has(target t) {
#if defined(__x86_64__)
  if (t == target::x86_64_v4_amx) {
    static const bool granted = has_matrices();
    return granted && has(target::x86_64_v4_bf16);
  }
  if (t == target::x86_64_v4_bf16) return __builtin_cpu_supports("avx512bf16") && has(target::x86_64_v4_vnni);
  if (t == target::x86_64_v4_vnni) return __builtin_cpu_supports("avx512vnni") && has(target::x86_64_v4);
  if (t == target::x86_64_v4) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && has(target::x86_64_v3);
  }
  if (t == target::x86_64_v3) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && has_rest_of_v3();
  }
#endif
  return t == target::baseline;
}

namespace {

constexpr target all[] = {target::x86_64_v4_amx, target::x86_64_v4_bf16, target::x86_64_v4_vnni,
                          target::x86_64_v4,     target::x86_64_v3,      target::baseline};

/// Whether t, on a processor that has it, is faster than the next one of `all`.
bool pays(target t) { return t != target::x86_64_v4_bf16 || is_amd(); }

target chosen() {
  const char* const wish = std::getenv("REGROUP_TARGET");
  if (wish != nullptr && *wish != '\0') {
    for (const target t : all) {
      if (std::string_view(wish) != name(t)) continue;
      if (!has(t)) {
        throw_argument("REGROUP_TARGET asks for " + std::string(wish) +
                       ", which this processor lacks; leave it unset to use the best it has");
      }
      return t;
    }
    throw_argument("REGROUP_TARGET is '" + std::string(wish) +
                   "'; use baseline, x86-64-v3, x86-64-v4, x86-64-v4-vnni, x86-64-v4-bf16 or x86-64-v4-amx");
  }
  return *std::ranges::find_if(all, [](target t) { return has(t) && pays(t); });
}

}  // namespace

target current_target() {
  static const target t = chosen();
  return t;
}

const char* name(target t) noexcept {
  switch (t) {
    case target::x86_64_v4_amx:
      return "x86-64-v4-amx";
    case target::x86_64_v4_bf16:
      return "x86-64-v4-bf16";
    case target::x86_64_v4_vnni:
      return "x86-64-v4-vnni";
    case target::x86_64_v4:
      return "x86-64-v4";
    case target::x86_64_v3:
      return "x86-64-v3";
    case target::baseline:
      break;
  }
  return "baseline";
}

}  // namespace regroup::host
