// expect: regroup: on a device a state has at most 96 bytes, and 48 in a scan
// expect: regroup: on a device the answers of a scan travel as bytes, so they must be trivially copyable
#include "regroup/cuda/scan.cuh"
#include "regroup/monoids/arithmetic.hpp"

struct sums {
  struct state { double of[7]; };  // 56 bytes: a reduction takes them
  constexpr state identity() const { return {}; }
  constexpr state lift(float x) const { return {{x}}; }
  constexpr state operator()(const state& a, const state& b) const { return {{a.of[0] + b.of[0]}}; }
  constexpr double lower(const state& s) const { return s.of[0]; }
};
struct counted {
  float x;
  constexpr counted(float value) : x(value) {}
  constexpr counted(const counted& other) : x(other.x) {}
  constexpr counted& operator=(const counted& other) { return x = other.x, *this; }
};

void scan(const regroup::cuda::device_view<float>& x, const regroup::cuda::device_view<double>& y,
          const regroup::cuda::device_view<counted>& answers) {
  regroup::inclusive_scan(regroup::cuda::device{}, x, y, sums{});
  regroup::inclusive_scan(regroup::cuda::device{}, x, answers, regroup::plus<float>{});
}
