// SPDX-License-Identifier: Apache-2.0
// Run-time choice of instruction set in a header: one template, instantiated inside functions compiled for x86-64-v4,
// v3 and for nothing in particular. `flatten` inlines the caller's scalar operator into them, and the compiler turns the
// lane loop into packs; clang's goes one call deep, so there a loop to be dispatched stands in a region of its own that
// is flattened (`#pragma clang attribute`, host/lanes.hpp). Bits do not change: monoids write every multiply-add as
// math::fma. Level: lane.
#pragma once

#include <utility>

namespace regroup::host {

/// What the instruction set of a function is compiled for. x86_64_v4_vnni is x86_64_v4 and vpdpwssd, x86_64_v4_bf16 is that
/// and vdpbf16ps, x86_64_v4_amx is that and AMX's products of bfloat16: all three for attention over 16 bits whose options
/// allow less than full precision, and the last two for outputs of softmax in bfloat16.
enum class target { baseline, x86_64_v3, x86_64_v4, x86_64_v4_vnni, x86_64_v4_bf16, x86_64_v4_amx };

/// The best target of this processor, or what the environment variable REGROUP_TARGET names (`baseline`, `x86-64-v3`,
/// `x86-64-v4`, `x86-64-v4-vnni`, `x86-64-v4-bf16`, `x86-64-v4-amx`; one that the processor lacks is an argument_error).
/// Looked up once. AMX is the choice where the operating system gives its registers to this process; vdpbf16ps on AMD only,
/// by the rate of the instruction: twice fp32's on Zen 4, half of it on Intel's.
target current_target();
const char* name(target t) noexcept;

#if defined(REGROUP_ONE_TARGET)  // for builds that must be quick: slower, with the same bits of what no compiler contracts
constexpr bool dispatches = false;
template <class F>
void run_by_32_bytes(F& f) {
  f();
}
template <class F>
void dispatch(F&& f) {
  f();
}
#elif defined(__x86_64__) && !(defined(__AVX2__) && defined(__FMA__))
constexpr bool dispatches = true;
#if defined(__clang__)  // (what is tuned for x86-64-v4 takes packs of 256 bits there)
template <class F>
[[gnu::target("arch=x86-64-v3"), gnu::flatten, gnu::noinline]] void run_v3(F& f) {
  f();
}
template <class F>
[[gnu::target("arch=x86-64-v4,tune=x86-64"), gnu::flatten, gnu::noinline]] void run_v4(F& f) {
  f();
}
#else  // (two comparisons that say the same, threaded, would be branches, and their loop no packs)
template <class F>
[[gnu::target("arch=x86-64-v3"), gnu::flatten, gnu::noinline,
  gnu::optimize("O3", "fp-contract=off", "no-trapping-math", "no-thread-jumps")]] void
run_v3(F& f) {
  f();
}
template <class F>
[[gnu::target("arch=x86-64-v4,prefer-vector-width=512"), gnu::flatten, gnu::noinline,
  gnu::optimize("O3", "fp-contract=off", "no-trapping-math", "no-thread-jumps")]] void
run_v4(F& f) {
  f();
}
#endif

/// Runs f() with the best instruction set.
template <class F>
void dispatch(F&& f) {
  switch (current_target()) {
    case target::x86_64_v4_amx:
    case target::x86_64_v4_bf16:
    case target::x86_64_v4_vnni:
    case target::x86_64_v4:
      return run_v4(f);
    case target::x86_64_v3:
      return run_v3(f);
    case target::baseline:
      break;
  }
  f();
}
#else
constexpr bool dispatches = false;
// One instruction set: of processors other than x86-64, or that of the consumer's own flags, where they have AVX2 and FMA: a
// function compiled for one machine's model is not inlined into one for another. Loops become packs of whole registers as in
// the functions above; squares' (host/squares.hpp) of 32 bytes, also where there are longer ones.
#if defined(__clang__)  // (which joins no two vectors of 32 bytes)
template <class F>
[[gnu::flatten, gnu::noinline]] void run_by_32_bytes(F& f) {
  f();
}
template <class F>
[[gnu::flatten, gnu::noinline]]
#if defined(__x86_64__)
[[gnu::target("tune=x86-64")]]
#endif
void run_here(F& f) {
  f();
}
#else
template <class F>
[[gnu::flatten, gnu::noinline, gnu::optimize("O3", "fp-contract=off", "no-trapping-math", "no-thread-jumps")]]
#if defined(__x86_64__)
[[gnu::target("prefer-vector-width=256")]]
#endif
void run_by_32_bytes(F& f) {
  f();
}
template <class F>
[[gnu::flatten, gnu::noinline, gnu::optimize("O3", "fp-contract=off", "no-trapping-math", "no-thread-jumps")]]
#if defined(__x86_64__)
[[gnu::target("prefer-vector-width=512")]]
#endif
void run_here(F& f) {
  f();
}
#endif
template <class F>
void dispatch(F&& f) {
  run_here(f);
}
#endif

}  // namespace regroup::host
