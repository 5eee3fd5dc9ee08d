// SPDX-License-Identifier: Apache-2.0
// The operations of cuda/block.hpp as instructions, and the one __global__ function that launches every kernel.
// Level: block.
#pragma once

#include <bit>
#include <type_traits>

#include "regroup/cuda/block.hpp"
#include "regroup/cuda/device_cluster.cuh"
#include "regroup/cuda/device_wgmma.cuh"
#include "regroup/cuda/mma.hpp"

namespace regroup::cuda {

/// The block that runs this thread.
class device_block : public device_cluster {
 public:
  __device__ int thread() const { return static_cast<int>(threadIdx.x); }
  __device__ index block() const { return blockIdx.x; }
  __device__ index blocks() const { return gridDim.x; }
  __device__ void barrier() { __syncthreads(); }
  __device__ bool any(bool x) {
    publish();
    return __syncthreads_or(x) != 0;
  }
  template <int Width>
  __device__ void group_barrier() {
    __syncwarp(group<Width>());
  }
  template <int Width, class T>
  __device__ T shuffle_down(const T& x, int d) {
    return by_words(
        x, [&](unsigned word) { return __shfl_down_sync(group<Width>(), word, static_cast<unsigned>(d), Width); });
  }
  template <int Width, class T>
  __device__ T shuffle_up(const T& x, int d) {
    return by_words(x, [&](unsigned word) { return __shfl_up_sync(group<Width>(), word, static_cast<unsigned>(d), Width); });
  }
  template <int Width, class T>
  __device__ T shuffle_xor(const T& x, int d) {
    return by_words(x, [&](unsigned word) { return __shfl_xor_sync(group<Width>(), word, d, Width); });
  }
  template <int Width, class T>
  __device__ T broadcast(const T& x) {
    return by_words(x, [&](unsigned word) { return __shfl_sync(group<Width>(), word, 0, Width); });
  }

  template <class T>
  __device__ mma_sums mma(const mma_left& a, const mma_right& b, const mma_sums& c) {
    mma_sums d;
    if constexpr (std::is_same_v<T, float16>) {
      asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
          : "=f"(d.sums[0]), "=f"(d.sums[1]), "=f"(d.sums[2]), "=f"(d.sums[3])
          : "r"(a.words[0]), "r"(a.words[1]), "r"(a.words[2]), "r"(a.words[3]), "r"(b.words[0]), "r"(b.words[1]),
            "f"(c.sums[0]), "f"(c.sums[1]), "f"(c.sums[2]), "f"(c.sums[3]));
    } else if constexpr (std::is_same_v<T, bfloat16>) {
      asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
          : "=f"(d.sums[0]), "=f"(d.sums[1]), "=f"(d.sums[2]), "=f"(d.sums[3])
          : "r"(a.words[0]), "r"(a.words[1]), "r"(a.words[2]), "r"(a.words[3]), "r"(b.words[0]), "r"(b.words[1]),
            "f"(c.sums[0]), "f"(c.sums[1]), "f"(c.sums[2]), "f"(c.sums[3]));
    } else {
      asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
          : "=f"(d.sums[0]), "=f"(d.sums[1]), "=f"(d.sums[2]), "=f"(d.sums[3])
          : "r"(a.words[0]), "r"(a.words[1]), "r"(a.words[2]), "r"(a.words[3]), "r"(b.words[0]), "r"(b.words[1]),
            "f"(c.sums[0]), "f"(c.sums[1]), "f"(c.sums[2]), "f"(c.sums[3]));
    }
    return d;
  }
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  static constexpr bool has_wide_products = true;
#else
  static constexpr bool has_wide_products = false;
#endif
  template <class... Arrays>
  __device__ void begin_products(Arrays&... operands) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    wgmma::keep(operands...);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
  }
  __device__ void end_products() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
  }
  template <int N, class... Arrays>
  __device__ void wait_for_products(Arrays&... sums) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
    wgmma::keep(sums...);
#endif
  }
  template <class T, int Eights, class X>
  __device__ void multiply_rows(const X& x, mma_buffer left, int row, mma_buffer right, int piece, bool adds,
                                float* upper, float* lower) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    static_assert(Eights == 8);
    const auto at = [&](mma_buffer of, int first) {
      return wgmma::descriptor(address(x, 0), of.first + (piece / 8 * of.rows + first) * 8 + piece % 8, 1, 64);
    };
    wgmma::rows<T>(at(left, row), at(right, 0), adds, upper, lower);
#else
    cuda::multiply_rows<T, Eights>(*this, x, left, row, right, piece, adds, upper, lower);
#endif
  }
  template <class T, int Eights, class X>
  __device__ void multiply_columns(const mma_left& left, const X& x, mma_buffer right, int row, float* upper,
                                   float* lower) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    wgmma::columns<T, Eights>(left, wgmma::descriptor(address(x, 0), right.first + row * 8, right.rows * 8, 64), upper, lower);
#else
    cuda::multiply_columns<T, Eights>(*this, left, x, right, row, upper, lower);
#endif
  }

  template <class T>
  __device__ std::uint32_t narrowed(float x, float y) {
    std::uint32_t word;
    if constexpr (std::is_same_v<T, float16>) {
      asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(y), "f"(x));
    } else {
      asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(y), "f"(x));
    }
    return word;
  }

  __device__ float exp2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
  }

  __device__ index ticket(tickets& t) { return atomicAdd(&t.taken, 1u); }
  template <class T>
  __device__ void publish(handed<T>& to, const T& x) {
    if constexpr (handed<T>::is_small) {
      struct words {
        unsigned long long at[2];
      };
      const words w = std::bit_cast<words>(handed<T>{x, 1});
      asm volatile("{.reg .b128 all; mov.b128 all, {%1, %2}; st.relaxed.gpu.global.b128 [%0], all;}"
                   :: "l"(__cvta_generic_to_global(&to)), "l"(w.at[0]), "l"(w.at[1]) : "memory");
    } else {
      to.value = x;
      asm volatile("st.release.gpu.global.u32 [%0], 1;" :: "l"(__cvta_generic_to_global(&to.is_there)) : "memory");
    }
  }
  template <class T>
  __device__ T wait_for(handed<T>& at) {
    if constexpr (handed<T>::is_small) {
      struct words {
        unsigned long long at[2];
      } w;
      do {
        asm volatile("{.reg .b128 all; ld.relaxed.gpu.global.b128 all, [%2]; mov.b128 {%0, %1}, all;}"
                     : "=l"(w.at[0]), "=l"(w.at[1]) : "l"(__cvta_generic_to_global(&at)) : "memory");
      } while (std::bit_cast<handed<T>>(w).is_there == 0);
      return std::bit_cast<handed<T>>(w).value;
    } else {
      unsigned is_there;
      do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                     : "=r"(is_there) : "l"(__cvta_generic_to_global(&at.is_there)) : "memory");
      } while (is_there == 0);
      return at.value;
    }
  }

  template <class T>
  struct array {
    T* first;
    __device__ T get(int i) const { return first[i]; }
    __device__ void set(int i, const T& x) const { first[i] = x; }
  };
  template <class T, int N>
  __device__ array<T> shared() {
    __shared__ alignas(T) unsigned char bytes[sizeof(T) * N];
    return {reinterpret_cast<T*>(bytes)};
  }
  template <class T, int N>
  __device__ array<T> large() {
    extern __shared__ __align__(1024) unsigned char large_memory[];
    return {reinterpret_cast<T*>(large_memory)};
  }
  template <class T, int N>
  __device__ array<T> shared_of(int rank) {
    return {of_block(shared<T, N>().first, rank)};
  }

  template <bool Transposed>
  __device__ mma_left matrices(const array<mma_row>& x, int i) {
    mma_left m;
    if constexpr (Transposed) {
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                   : "=r"(m.words[0]), "=r"(m.words[1]), "=r"(m.words[2]), "=r"(m.words[3]) : "r"(address(x, i)) : "memory");
    } else {
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                   : "=r"(m.words[0]), "=r"(m.words[1]), "=r"(m.words[2]), "=r"(m.words[3]) : "r"(address(x, i)) : "memory");
    }
    return m;
  }
  template <class T>
  __device__ void copy(const array<T>& to, int i, const void* from, bool is_there) {
    static_assert(sizeof(T) == 16);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(address(to, i)), "l"(__cvta_generic_to_global(from)), "r"(is_there ? 16 : 0) : "memory");
  }
  __device__ void wait_for_copies() {
    asm volatile("cp.async.wait_all;" ::: "memory");
    publish();
  }

 private:
  /// Makes this thread's writes to shared memory visible, after the next barrier, to products that read it themselves.
  __device__ static void publish() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
  }
  template <class T>
  __device__ static unsigned address(const array<T>& x, int i) {
    return static_cast<unsigned>(__cvta_generic_to_shared(x.first + i));
  }
  /// This thread's group within its warp.
  template <int Width>
  __device__ static unsigned group() {
    if constexpr (Width == warp_threads) {
      return ~0u;
    } else {
      return ((1u << Width) - 1) << (threadIdx.x % warp_threads / Width * Width);
    }
  }
  /// Applies f to every word of x: 32 bits at a time, or the largest unit that divides the size of T.
  template <class T, class F>
  __device__ static T by_words(const T& x, const F& f) {
    using unit = std::conditional_t<sizeof(T) % 4 == 0, unsigned,
                                    std::conditional_t<sizeof(T) % 2 == 0, unsigned short, unsigned char>>;
    struct words {
      unit at[sizeof(T) / sizeof(unit)];
    };
    words w = std::bit_cast<words>(x);
    for (unit& word : w.at) word = static_cast<unit>(f(word));
    return std::bit_cast<T>(w);
  }
};

/// Runs a kernel object: `run_kernel<<<blocks, threads_of<Kernel>, 0, stream>>>(kernel)`.
template <class Kernel>
__global__ void __launch_bounds__(threads_of<Kernel>, resident_blocks<Kernel>)
    run_kernel(const __grid_constant__ Kernel kernel) {
  device_block here;
  kernel(here);
}

/// Never run. A kernel that calls a monoid's functions directly, so that nvcc reports which of them are not device functions:
/// called from the library's templates they would compile to nothing, silently.
template <class M, class X>
__global__ void a_monoid_on_a_device_has_constexpr_functions(const M* m, const X* x, state_of<M>* s) {
  *s = (*m)(m->identity(), *s);
  if constexpr (has_lift<M, X>) *s = m->lift(regroup::widen(*x));
  if constexpr (has_lower<M>) static_cast<void>(m->lower(*s));
}
template <class M, class X>
void require_device_functions() {
  [[maybe_unused]] void (*const asked)(const M*, const X*, state_of<M>*) = a_monoid_on_a_device_has_constexpr_functions<M, X>;
}

}  // namespace regroup::cuda
