// SPDX-License-Identifier: Apache-2.0
// A multiplier's peak: twelve independent chains of one instruction in twelve registers, written out, since compilers
// keep such chains in memory. Everything is 0, so that no operand is ever denormal.
#pragma once

#define REGROUP_CHAIN(op, r, k) op " %%" r "12, %%" r "13, %%" r #k "\n\t"
#define REGROUP_PEAK(op, r, turns)                                                                                     \
  asm volatile("vzeroall\n1:\n\t"                                                                                      \
               REGROUP_CHAIN(op, r, 0) REGROUP_CHAIN(op, r, 1) REGROUP_CHAIN(op, r, 2) REGROUP_CHAIN(op, r, 3)         \
               REGROUP_CHAIN(op, r, 4) REGROUP_CHAIN(op, r, 5) REGROUP_CHAIN(op, r, 6) REGROUP_CHAIN(op, r, 7)         \
               REGROUP_CHAIN(op, r, 8) REGROUP_CHAIN(op, r, 9) REGROUP_CHAIN(op, r, 10) REGROUP_CHAIN(op, r, 11)       \
               "dec %0\n\tjnz 1b"                                                                                      \
               : "+r"(turns)                                                                                           \
               :                                                                                                       \
               : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",        \
                 "xmm11", "xmm12", "xmm13", "xmm14", "xmm15")
