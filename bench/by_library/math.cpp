// SPDX-License-Identifier: Apache-2.0
// The table of math.hpp for packs of 32 or 64 bytes.
#include "math.hpp"

#include <immintrin.h>

#include <cstring>

#ifdef REGROUP_HAS_SLEEF
#include <sleef.h>
#endif
#ifdef REGROUP_HAS_XSIMD
#include <xsimd/xsimd.hpp>
#endif
#ifdef REGROUP_HAS_HIGHWAY
#define HWY_COMPILE_ONLY_STATIC
#define HWY_DISABLE_PCLMUL_AES  // x86-64-v3 and v4 promise neither, and nothing here needs them
#include <hwy/contrib/math/math-inl.h>
#endif

#if REGROUP_BENCH_BYTES == 64
using f32 = __m512;
using f64 = __m512d;
extern "C" f32 _ZGVeN16v_expf(f32), _ZGVeN16v_exp2f(f32), _ZGVeN16v_logf(f32);
extern "C" f64 _ZGVeN8v_exp(f64), _ZGVeN8v_exp2(f64), _ZGVeN8v_log(f64);
#else
using f32 = __m256;
using f64 = __m256d;
extern "C" f32 _ZGVdN8v_expf(f32), _ZGVdN8v_exp2f(f32), _ZGVdN8v_logf(f32);
extern "C" f64 _ZGVdN4v_exp(f64), _ZGVdN4v_exp2(f64), _ZGVdN4v_log(f64);
#endif

namespace bench {
namespace {

/// F turns what stands at x, one pack, into what stands at y.
template <class T, class F>
constexpr math_loop loop(const char* who, const char* work, F) {
  return {who, work, [](const void* x, void* y, std::ptrdiff_t n) {
            constexpr std::ptrdiff_t lanes = REGROUP_BENCH_BYTES / sizeof(T);
            for (std::ptrdiff_t i = 0; i < n; i += lanes) F{}(static_cast<const T*>(x) + i, static_cast<T*>(y) + i);
          }};
}
f32 load(const float* x) {
  f32 v;
  std::memcpy(&v, x, sizeof v);
  return v;
}
f64 load(const double* x) {
  f64 v;
  std::memcpy(&v, x, sizeof v);
  return v;
}
template <class T, class F>
constexpr math_loop packs(const char* who, const char* work, F) {
  return loop<T>(who, work, [](const T* x, T* y) {
    const auto v = F{}(load(x));
    std::memcpy(y, &v, sizeof v);
  });
}

#ifdef REGROUP_HAS_XSIMD
template <class T, class F>
constexpr math_loop of_xsimd(const char* work, F) {
  static_assert(xsimd::batch<T>::size == REGROUP_BENCH_BYTES / sizeof(T));
  return loop<T>("xsimd", work, [](const T* x, T* y) { F{}(xsimd::batch<T>::load_unaligned(x)).store_unaligned(y); });
}
#endif
#ifdef REGROUP_HAS_HIGHWAY
namespace hn = hwy::HWY_NAMESPACE;
template <class T, class F>
constexpr math_loop of_highway(const char* work, F) {
  using tag = hn::ScalableTag<T>;
  static_assert(hn::MaxLanes(tag{}) == REGROUP_BENCH_BYTES / sizeof(T));
  return loop<T>("Highway", work, [](const T* x, T* y) { hn::StoreU(F{}(tag{}, hn::LoadU(tag{}, x)), tag{}, y); });
}
#endif

}  // namespace

const math_loop REGROUP_BENCH_LOOPS[] = {
#if REGROUP_BENCH_BYTES == 64
    packs<float>("libmvec", "exp/fp32", [](auto x) { return _ZGVeN16v_expf(x); }),
    packs<float>("libmvec", "exp2/fp32", [](auto x) { return _ZGVeN16v_exp2f(x); }),
    packs<float>("libmvec", "log/fp32", [](auto x) { return _ZGVeN16v_logf(x); }),
    packs<double>("libmvec", "exp/fp64", [](auto x) { return _ZGVeN8v_exp(x); }),
    packs<double>("libmvec", "exp2/fp64", [](auto x) { return _ZGVeN8v_exp2(x); }),
    packs<double>("libmvec", "log/fp64", [](auto x) { return _ZGVeN8v_log(x); }),
#else
    packs<float>("libmvec", "exp/fp32", [](auto x) { return _ZGVdN8v_expf(x); }),
    packs<float>("libmvec", "exp2/fp32", [](auto x) { return _ZGVdN8v_exp2f(x); }),
    packs<float>("libmvec", "log/fp32", [](auto x) { return _ZGVdN8v_logf(x); }),
    packs<double>("libmvec", "exp/fp64", [](auto x) { return _ZGVdN4v_exp(x); }),
    packs<double>("libmvec", "exp2/fp64", [](auto x) { return _ZGVdN4v_exp2(x); }),
    packs<double>("libmvec", "log/fp64", [](auto x) { return _ZGVdN4v_log(x); }),
#endif
#if defined(REGROUP_HAS_SLEEF) && REGROUP_BENCH_BYTES == 64
    packs<float>("SLEEF", "exp/fp32", [](auto x) { return Sleef_expf16_u10avx512f(x); }),
    packs<float>("SLEEF", "exp2/fp32", [](auto x) { return Sleef_exp2f16_u10avx512f(x); }),
    packs<float>("SLEEF", "log/fp32", [](auto x) { return Sleef_logf16_u10avx512f(x); }),
    packs<double>("SLEEF", "exp/fp64", [](auto x) { return Sleef_expd8_u10avx512f(x); }),
    packs<double>("SLEEF", "exp2/fp64", [](auto x) { return Sleef_exp2d8_u10avx512f(x); }),
    packs<double>("SLEEF", "log/fp64", [](auto x) { return Sleef_logd8_u10avx512f(x); }),
#elif defined(REGROUP_HAS_SLEEF)
    packs<float>("SLEEF", "exp/fp32", [](auto x) { return Sleef_expf8_u10avx2(x); }),
    packs<float>("SLEEF", "exp2/fp32", [](auto x) { return Sleef_exp2f8_u10avx2(x); }),
    packs<float>("SLEEF", "log/fp32", [](auto x) { return Sleef_logf8_u10avx2(x); }),
    packs<double>("SLEEF", "exp/fp64", [](auto x) { return Sleef_expd4_u10avx2(x); }),
    packs<double>("SLEEF", "exp2/fp64", [](auto x) { return Sleef_exp2d4_u10avx2(x); }),
    packs<double>("SLEEF", "log/fp64", [](auto x) { return Sleef_logd4_u10avx2(x); }),
#endif
#ifdef REGROUP_HAS_XSIMD
    of_xsimd<float>("exp/fp32", [](auto x) { return xsimd::exp(x); }),
    of_xsimd<float>("exp2/fp32", [](auto x) { return xsimd::exp2(x); }),
    of_xsimd<float>("log/fp32", [](auto x) { return xsimd::log(x); }),
    of_xsimd<double>("exp/fp64", [](auto x) { return xsimd::exp(x); }),
    of_xsimd<double>("exp2/fp64", [](auto x) { return xsimd::exp2(x); }),
    of_xsimd<double>("log/fp64", [](auto x) { return xsimd::log(x); }),
#endif
#ifdef REGROUP_HAS_HIGHWAY
    of_highway<float>("exp/fp32", [](auto d, auto x) { return hn::Exp(d, x); }),
    of_highway<float>("log/fp32", [](auto d, auto x) { return hn::Log(d, x); }),
    of_highway<double>("exp/fp64", [](auto d, auto x) { return hn::Exp(d, x); }),
    of_highway<double>("log/fp64", [](auto d, auto x) { return hn::Log(d, x); }),
#endif
    {},
};

}  // namespace bench
