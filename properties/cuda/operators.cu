// SPDX-License-Identifier: Apache-2.0
// Host combine equals device combine: every operator's lift, combine and lower in a kernel of one thread, beside the same
// left fold on the host, bit for bit (all NaNs are one). Without a device it has compiled and linked, and says so: 77.
#include <cstdio>
#include <cstdint>
#include <iterator>
#include <limits>
#include <type_traits>

#include "../order/digest.hpp"
#include "regroup/members.hpp"
#include "regroup/monoids/affine.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/monoids/compensated.hpp"
#include "regroup/monoids/extremum.hpp"
#include "regroup/monoids/fanout.hpp"
#include "regroup/monoids/log_sum_exp.hpp"
#include "regroup/monoids/mean.hpp"
#include "regroup/monoids/minmax.hpp"
#include "regroup/monoids/moments.hpp"
#include "regroup/monoids/scaled_product.hpp"
#include "regroup/monoids/softmax_mean.hpp"
#include "regroup/monoids/top_k.hpp"

namespace {

/// The left fold of every prefix: out[i] = the state of x[0], ..., x[i].
template <class M, class X>
__host__ __device__ void prefixes(const M& m, const X* x, int n, regroup::state_of<M>* out) {
  regroup::state_of<M> s = m.identity();
  for (int i = 0; i < n; ++i) {
    s = m(s, regroup::lift(m, x[i]));
    out[i] = s;
  }
}

template <class M, class X>
__global__ void prefixes_on_device(M m, const X* x, int n, regroup::state_of<M>* out) {
  prefixes(m, x, n, out);
}

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

/// The numbers that a state is made of, all NaNs being one: what lies between them is nobody's.
struct numbers {
  order::digest digest;
  template <class T>
  void operator()(const T& x) {
    digest.add(x);
  }
  void size(std::size_t) {}
};
template <class State>
std::uint64_t digest_of(const State& s) {
  numbers of;
  regroup::members::visit(s, of);
  return of.digest.value();
}

template <class M, class X, int N>
int differences(const char* name, const M& m, const X (&x)[N]) {
  using state = regroup::state_of<M>;
  static_assert(std::is_trivially_copyable_v<state>);
  state on_host[N];
  state on_device[N];
  prefixes(m, x, N, on_host);
  X* input = nullptr;
  state* output = nullptr;
  check(cudaMalloc(&input, sizeof x), "cudaMalloc");
  check(cudaMalloc(&output, sizeof on_device), "cudaMalloc");
  check(cudaMemcpy(input, x, sizeof x, cudaMemcpyHostToDevice), "cudaMemcpy");
  check(cudaMemset(output, 0, sizeof on_device), "cudaMemset");  // padding, which nobody writes, travels too
  prefixes_on_device<<<1, 1>>>(m, input, N, output);
  check(cudaGetLastError(), name);
  check(cudaMemcpy(on_device, output, sizeof on_device, cudaMemcpyDeviceToHost), name);
  cudaFree(input);
  cudaFree(output);
  int count = 0;
  for (int i = 0; i < N; ++i) count += digest_of(on_host[i]) == digest_of(on_device[i]) ? 0 : 1;
  std::printf("%-28s %d of %d prefixes differ\n", name, count, N);
  return count;
}

template <class Real>
int all_of() {
  constexpr Real inf = std::numeric_limits<Real>::infinity();
  const Real x[] = {Real(0.5), Real(-1.25), Real(3), Real(-0.0), 0, Real(88), Real(-87.5), Real(1e-40), Real(1e30),
                    Real(1.0000001), Real(-1e30), -inf, Real(7), inf, Real(2), std::numeric_limits<Real>::quiet_NaN(), 1};
  regroup::indexed<Real> numbered[std::size(x)];
  for (std::size_t i = 0; i < std::size(x); ++i) numbered[i] = {x[i], static_cast<regroup::index>(i)};
  using vector = regroup::fixed_vector<Real, 3>;
  const regroup::scored<Real, vector> keys[] = {
      {1, {{1, 2, 3}}}, {Real(-0.5), {{4, 5, 6}}}, {9, {{-7, 8, Real(-0.0)}}}, {-inf, {{1, 1, 1}}}, {Real(9.25), {{1, 0, 2}}}};
  const regroup::affine_map<Real> maps[] = {{1, Real(-0.0)}, {Real(0.5), 1}, {Real(-2), Real(0.1)}, {Real(1.5), Real(-3)}};
  return differences("plus", regroup::plus<Real>{}, x) + differences("maximum", regroup::maximum<Real>{}, x) +
         differences("minimum", regroup::minimum<Real>{}, x) +
         differences("log_sum_exp", regroup::log_sum_exp<Real>{}, x) +
         differences("minmax", regroup::minmax<Real>{}, x) + differences("mean", regroup::mean<Real>{}, x) +
         differences("moments", regroup::moments<Real>{}, x) +
         differences("compensated", regroup::compensated_plus<Real>{}, x) +
         differences("scaled_product", regroup::scaled_product<Real>{}, x) +
         differences("softmax_mean", regroup::softmax_mean<Real, vector>{}, keys) +
         differences("affine", regroup::affine<Real>{}, maps) +
         differences("multiplies", regroup::multiplies<Real>{}, x) + differences("count", regroup::count{}, x) +
         differences("any", regroup::any{}, x) + differences("all", regroup::all{}, x) +
         differences("argmin", regroup::argmin<Real>{}, numbered) + differences("argmax", regroup::argmax<Real>{}, numbered) +
         differences("top_k", regroup::top_k<Real, 3>{}, numbered) +
         differences("fanout", regroup::fanout{regroup::count{}, regroup::moments<Real>{}, regroup::minimum<Real>{}}, x);
}

/// The longest run of zeros: of integers, and not commutative.
struct longest_run {
  struct state {
    int first, last, longest, length;
  };
  constexpr state identity() const { return {0, 0, 0, 0}; }
  constexpr state lift(int x) const { return x == 0 ? state{1, 1, 1, 1} : state{0, 0, 0, 1}; }
  constexpr state operator()(state a, state b) const {
    const int joined = a.last + b.first, longer = a.longest < b.longest ? b.longest : a.longest;
    return {a.first == a.length ? a.length + b.first : a.first, b.last == b.length ? b.length + a.last : b.last,
            longer < joined ? joined : longer, a.length + b.length};
  }
};

template <class Integer>
int all_of_integers() {
  constexpr auto least = std::numeric_limits<Integer>::min(), most = std::numeric_limits<Integer>::max();
  const Integer x[] = {3, 0, 0, most, 5, least, 0, 0, 0, Integer(-1), 1, most, 6};
  const regroup::affine_map<Integer> maps[] = {{1, 2}, {Integer(-3), 5}, {most, 7}, {2, least}};
  return differences("plus", regroup::plus<Integer>{}, x) + differences("multiplies", regroup::multiplies<Integer>{}, x) +
         differences("minimum", regroup::minimum<Integer>{}, x) + differences("maximum", regroup::maximum<Integer>{}, x) +
         differences("minmax", regroup::minmax<Integer>{}, x) + differences("bit_and", regroup::bit_and<Integer>{}, x) +
         differences("bit_or", regroup::bit_or<Integer>{}, x) + differences("bit_xor", regroup::bit_xor<Integer>{}, x) +
         differences("mean", regroup::mean<double>{}, x) + differences("affine", regroup::affine<Integer>{}, maps);
}

}  // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("no CUDA device: compiled and linked only");
    return 77;
  }
  const int zeros[] = {0, 0, 1, 0, 0, 0, 1, 1, 0};
  const int different = all_of<float>() + all_of<double>() + all_of_integers<std::int32_t>() + all_of_integers<std::int64_t>() +
                        all_of_integers<std::uint8_t>() + differences("longest_run", longest_run{}, zeros);
  return different == 0 ? 0 : 1;
}
