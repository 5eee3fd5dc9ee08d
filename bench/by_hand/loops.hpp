// SPDX-License-Identifier: Apache-2.0
// Loops written by hand for one instruction set: what a reduction costs when nothing is general (one thread, one piece,
// contiguous), and the machine's limits. The same source is compiled for AVX2 and for AVX-512; loops() is the set that
// this processor, or REGROUP_TARGET, asks for.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bench {

struct map_f32 {  ///< x -> a x + b
  float a, b;
};
struct run_state {  ///< of longest_run
  std::int64_t prefix, suffix, best, length;
};
struct min_plus_state {
  double aa, ab, ba, bb;
};

/// `n` is a multiple of 4096 wherever a loop takes it.
struct by_hand {
  struct log_sum {
    float m, s;
  };
  struct spread {
    float mean, deviation, min, max;
  };
  struct place {
    float value;
    std::int64_t position;
  };
  log_sum (*log_sum_exp)(const float*, std::ptrdiff_t n);
  spread (*moments)(const float*, std::ptrdiff_t n);  ///< min and max are not filled
  spread (*moments_and_minmax)(const float*, std::ptrdiff_t n);
  spread (*minmax)(const float*, std::ptrdiff_t n);  ///< mean and deviation are not filled
  place (*argmax)(const float*, std::ptrdiff_t n);
  map_f32 (*affine)(const map_f32*, std::ptrdiff_t n);
  run_state (*longest_run)(const unsigned char*, std::ptrdiff_t n);
  min_plus_state (*min_plus)(const min_plus_state*, std::ptrdiff_t n);

  // Limits: bytes read and copied, with and without a prefetch to L2; 2^30 floating-point operations.
  int (*read)(const void*, std::size_t bytes);
  int (*read_prefetched)(const void*, std::size_t bytes);
  void (*copy_non_temporal)(void* to, const void* from, std::size_t bytes);
  void (*copy_prefetched)(void* to, const void* from, std::size_t bytes);  ///< non-temporal, with a prefetch to L2
  void (*fma_fp32)();
};

const by_hand& loops();
extern const by_hand loops_v3, loops_v4;

/// Peaks of multipliers that only some processors have: 2^30 operations, or nullptr.
struct multiplier {
  const char* name;  ///< as in a work's name: `fma_fp16`, `dot_bf16`, `amx_bf16`; `dot_int16` takes both
  void (*run)();
};
const multiplier* multipliers();  ///< ends with a nullptr name

}  // namespace bench
