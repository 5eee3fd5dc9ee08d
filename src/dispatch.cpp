// SPDX-License-Identifier: Apache-2.0
#include "regroup/host/dispatch.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "regroup/error.hpp"
#include "targets.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace regroup::host {

namespace {

#if defined(__x86_64__)
/// What x86-64-v3 has besides, by names that not every compiler's __builtin_cpu_supports knows.
bool has_rest_of_v3() {
  unsigned a, b, basic, extended, d;
  constexpr unsigned wanted = bit_F16C | bit_MOVBE;
  return __get_cpuid(1, &a, &b, &basic, &d) != 0 && (basic & wanted) == wanted &&
         __get_cpuid(0x80000001, &a, &b, &extended, &d) != 0 && (extended & bit_LZCNT) != 0;
}
#endif

}  // namespace

bool has(target t) {
#if defined(__x86_64__)
  if (t == target::x86_64_v4_bf16) return __builtin_cpu_supports("avx512bf16") && has(target::x86_64_v4);
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

constexpr target all[] = {target::x86_64_v4_bf16, target::x86_64_v4, target::x86_64_v3, target::baseline};

/// Whether it is faster than the next one of `all`, where it exists.
bool pays([[maybe_unused]] target t) {
#if defined(__x86_64__)
  if (t == target::x86_64_v4_bf16) return __builtin_cpu_is("amd");
#endif
  return true;
}

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
                   "'; use baseline, x86-64-v3, x86-64-v4 or x86-64-v4-bf16");
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
    case target::x86_64_v4_bf16:
      return "x86-64-v4-bf16";
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
