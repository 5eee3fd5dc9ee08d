// SPDX-License-Identifier: Apache-2.0
// Run-time choice of instruction set in a header: one template, instantiated inside functions compiled for x86-64-v4,
// x86-64-v3 and the baseline. `flatten` inlines the caller's scalar operator into them, and the compiler vectorises the lane
// loop. clang's `flatten` inlines only one level of calls, so loops to be dispatched stand in a region in which every
// function is flattened (`#pragma clang attribute`, host/lanes.hpp). Bits do not change: monoids write every multiply-add as
// math::fma. Level: lane.
#pragma once

namespace regroup::host {

/// The instruction set that a function is compiled for, in ascending order: each includes the one before; vnni adds vpdpwssd,
/// bf16 vdpbf16ps, amx AMX's bfloat16 tiles. They are used by 16-bit attention when its options allow reduced precision; bf16
/// and amx also by softmax writing bfloat16.
enum class target { baseline, x86_64_v3, x86_64_v4, x86_64_v4_vnni, x86_64_v4_bf16, x86_64_v4_amx };

/// The best target of this processor, or the one named by the environment variable REGROUP_TARGET (`baseline`, `x86-64-v3`,
/// `x86-64-v4`, `x86-64-v4-vnni`, `x86-64-v4-bf16`, `x86-64-v4-amx`; throws argument_error for one that the processor lacks).
/// Determined once. AMX is chosen if the operating system gives its registers to this process; vdpbf16ps only on AMD, where
/// its rate is twice fp32's (Zen 4), on Intel half of it.
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
  const target t = current_target();
  if (t >= target::x86_64_v4) return run_v4(f);
  if (t >= target::x86_64_v3) return run_v3(f);
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
