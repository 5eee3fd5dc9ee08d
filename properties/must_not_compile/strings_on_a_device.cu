// expect: regroup: on a device a state travels as bytes, so it must be trivially copyable; this one is not
#include <string>

#include "regroup/cuda/device.cuh"

struct joined {
  std::string identity() const { return {}; }
  std::string lift(char c) const { return std::string(1, c); }
  std::string operator()(const std::string& a, const std::string& b) const { return a + b; }
};

void fold(const char* text, regroup::index n) {
  regroup::reduce(regroup::cuda::device{}, regroup::cuda::device_view<const char>(text, {n}), joined{});
}
