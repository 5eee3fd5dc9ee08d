// SPDX-License-Identifier: Apache-2.0
// Certifies exp, exp2, log and decay over the 2^32 floats: what it measures is what exp_error and its fellows say.
// The reference is the C library in double, wrong by at most one unit of double, 1e-9 of a float's. Law: wherever the
// exact result is a normal float the relative error stays below the constant, and that of exp, exp2 and log below 1.2 units
// in the last place of the correctly rounded result; elsewhere the result is 0, infinity, NaN or as the table in math.hpp
// says. Over all floats no constant is larger than its error rounded up to three digits. Prints the worst point of each
// function; exits 1 on any violation. `--dense-subset` takes one float of 101 and every float near the edges: seconds, for
// each run of the tests.
#include <regroup/math.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

namespace {

namespace math = regroup::math;

constexpr std::uint32_t block_size = 1u << 12;
constexpr std::uint32_t block_count = 1u << 20;
constexpr double u = 0x1p-24;
using block = std::array<float, block_size>;

// What one function must satisfy; `apply` is the function over a block, compiled for AVX2 where the machine has it.
struct subject {
  const char* name;
  void (*apply)(const block& x, block& y, std::uint32_t n);
  double (*reference)(double);
  bool flushes;  // results below the smallest normal are 0
  double certified;
  double most_ulps = 1.2;
  double slope = 0;  // of |x|, more of the error; then x is not positive
};

struct worst {
  double relative = 0, ulps = 0;
  float relative_at = 0, ulps_at = 0;
  std::uint64_t violations = 0;
  float violation_at = 0;

  void merge(const worst& other) {
    if (other.relative > relative) relative = other.relative, relative_at = other.relative_at;
    if (other.ulps > ulps) ulps = other.ulps, ulps_at = other.ulps_at;
    if (other.violations > 0) violation_at = other.violation_at;
    violations += other.violations;
  }
};

struct exp_of {
  float operator()(float x) const { return math::exp(x); }
};
struct exp2_of {
  float operator()(float x) const { return math::exp2(x); }
};
struct decay_of {
  float operator()(float x) const { return math::decay(x); }
};
struct log_of {
  float operator()(float x) const { return math::log(x); }
};

template <class F>
void apply_plain(const block& x, block& y, std::uint32_t n) {
  for (std::uint32_t i = 0; i < n; ++i) y[i] = F{}(x[i]);
}

#if defined(__x86_64__) && !defined(__clang__)
// Only calls: g++ inlines across different optimization attributes where the outer function has no arithmetic itself.
template <class Body>
[[gnu::target("avx2,fma"), gnu::flatten, gnu::optimize("O3", "fp-contract=off", "no-trapping-math")]] void wide(
    Body body) {
  body();
}
template <class F>
void apply_wide(const block& x, block& y, std::uint32_t n) {
  wide([&x, &y, n] { apply_plain<F>(x, y, n); });
}
template <class F>
auto applied() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? apply_wide<F> : apply_plain<F>;
}
#else
template <class F>
auto applied() {
  return apply_plain<F>;
}
#endif

double exp_reference(double x) { return std::exp(x); }
double exp2_reference(double x) { return std::exp2(x); }
double log_reference(double x) { return std::log(x); }

void judge(const subject& s, float x, float y, worst& w) {
  if (s.slope > 0 && x > 0) return;
  const double exact = s.reference(x);
  constexpr double smallest = std::numeric_limits<float>::min();
  bool right;
  if (exact != exact) {
    right = y != y;
  } else if (std::abs(exact) >= 0x1p+128) {
    right = y == static_cast<float>(std::copysign(HUGE_VAL, exact));
  } else if (s.flushes && exact < smallest) {
    right = y == 0 && !std::signbit(y);
  } else if (exact == 0) {
    right = y == 0 && !std::signbit(y);
  } else {
    const double error = std::abs(static_cast<double>(y) - exact);
    const double relative = error / std::abs(exact) / u - s.slope * std::abs(x);
    const auto rounded = std::bit_cast<std::uint32_t>(static_cast<float>(exact));
    const double ulps = error / (double{std::bit_cast<float>(rounded & 0x7f800000u)} * 2 * u);
    if (relative > w.relative) w.relative = relative, w.relative_at = x;
    if (ulps > w.ulps) w.ulps = ulps, w.ulps_at = x;
    right = relative <= s.certified && ulps <= s.most_ulps;  // false for NaN
  }
  if (!right) ++w.violations, w.violation_at = x;
}

// Blocks where results turn to 0 or infinity, where x is 1, and the ends of the floats.
bool near_edge(std::uint32_t b) {
  constexpr std::uint32_t low = 0x7fffffffu;
  for (const float edge : {0.0f, 1.0f, math::exp_lowest<float>, math::exp_highest<float>, 126.0f, 127.99999f, 128.0f,
                           std::numeric_limits<float>::min(), std::numeric_limits<float>::infinity()}) {
    const std::uint32_t at = (std::bit_cast<std::uint32_t>(edge) & low) / block_size;
    const std::uint32_t here = b & (low / block_size);
    if (here <= at + 1 && at <= here + 1) return true;
  }
  return false;
}

worst certify(const subject& s, bool subset) {
  std::atomic<std::uint32_t> next = 0;
  const auto work = [&](worst& w) {
    block x, y;
    for (std::uint32_t b = next++; b < block_count; b = next++) {
      const std::uint32_t stride = subset && !near_edge(b) ? 101 : 1;
      const std::uint32_t first = b * 37 % stride;
      std::uint32_t n = 0;
      for (std::uint32_t i = first; i < block_size; i += stride) x[n++] = std::bit_cast<float>(b * block_size + i);
      s.apply(x, y, n);
      for (std::uint32_t i = 0; i < n; ++i) judge(s, x[i], y[i], w);
    }
  };
  std::vector<worst> found(std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::thread> threads;
  for (worst& w : found) threads.emplace_back([&work, &w] { work(w); });
  for (std::thread& t : threads) t.join();
  worst all;
  for (const worst& w : found) all.merge(w);
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  const bool subset = argc == 2 && std::strcmp(argv[1], "--dense-subset") == 0;
  if (argc > 2 || (argc == 2 && !subset)) {
    std::fprintf(stderr, "usage: %s [--dense-subset]\n", argv[0]);
    return 2;
  }
  const subject subjects[] = {
      {"exp", applied<exp_of>(), exp_reference, true, double{math::exp_error<float>}},
      {"exp2", applied<exp2_of>(), exp2_reference, true, double{math::exp2_error<float>}},
      {"decay", applied<decay_of>(), exp_reference, true, double{math::exp_error<float>}, HUGE_VAL,
       double{math::decay_slope<float>}},
      {"log", applied<log_of>(), log_reference, false, double{math::log_error<float>}},
  };
  bool certified = true;
  for (const subject& s : subjects) {
    const auto start = std::chrono::steady_clock::now();
    const worst w = certify(s, subset);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::printf("%-5s worst relative error %.5f u at %a (certified %.3g); %.4f ulp at %a; %.1f s\n", s.name, w.relative,
                double{w.relative_at}, s.certified, w.ulps, double{w.ulps_at}, seconds);
    if (!subset && s.slope == 0 && s.certified - w.relative >= 0.01) {
      certified = false;
      std::printf("%-5s is better than its constant, which is to be the measured error rounded up to three digits\n", s.name);
    }
    if (w.violations > 0) {
      certified = false;
      std::printf("%-5s VIOLATED %llu times, for one at %a\n", s.name, static_cast<unsigned long long>(w.violations),
                  double{w.violation_at});
    }
  }
  return certified ? 0 : 1;
}
