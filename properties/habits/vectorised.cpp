// SPDX-License-Identifier: Apache-2.0
// One function for each monoid; vectorised.py reads what the compiler made of it. Some are plain operators: only scalar code on
// math.hpp. Left out are top_k, histogram and softmax_mean, whose states are lists and vectors. A tile of top_k is a partial
// sort, a tile of histogram counts at indices that elements give; softmax_mean's packs are along d, and attention has kernels
// of its own. any and all are here over bool, since g++ 12 stores the results of a comparison in lift one by one.
#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "operators.hpp"
#include "regroup/host/abreast.hpp"
#include "regroup/host/lanes.hpp"
#include "regroup/host/tile_scanner.hpp"
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

/// log_sum_exp without its tile lift: one exponential a combine.
struct scalar_log_sum_exp {
  static constexpr bool is_commutative = true;
  regroup::log_sum_exp<float> m{};
  constexpr auto identity() const { return m.identity(); }
  constexpr auto lift(float x) const { return m.lift(x); }
  constexpr auto operator()(regroup::state_of<regroup::log_sum_exp<float>> a,
                            regroup::state_of<regroup::log_sum_exp<float>> b) const {
    return m(a, b);
  }
};

/// The README's operator: nothing of ours in it but `select` and `exp`.
struct max_and_sum {
  struct state {
    float max, sum;
  };
  static constexpr bool is_commutative = true;
  state identity() const { return {-std::numeric_limits<float>::infinity(), 0}; }
  state lift(float x) const { return {x, 1}; }
  state operator()(state a, state b) const {
    namespace math = regroup::math;
    const float m = std::max(a.max, b.max);
    const auto factor = [m](float max) { return math::select(max == m, 1.0f, math::exp(max - m)); };
    return {m, a.sum * factor(a.max) + b.sum * factor(b.max)};
  }
};

/// log(exp a + exp b), as one number, by whoever has not read the library.
struct log_add {
  static constexpr bool is_commutative = true;
  constexpr float identity() const { return -std::numeric_limits<float>::infinity(); }
  constexpr float operator()(float a, float b) const {
    namespace math = regroup::math;
    const float m = math::max(a, b);
    return math::select(m == identity(), m, m + math::log(math::exp(a - m) + math::exp(b - m)));
  }
};

/// States whose numbers are in arrays, two corners of a box and matrices in order; and one with a bool beside a number.
struct box {
  using corner = std::array<float, 3>;
  using state = std::pair<corner, corner>;
  static constexpr bool is_commutative = true;
  constexpr state identity() const { return {corner{9, 9, 9}, corner{-9, -9, -9}}; }
  constexpr state lift(float x) const { return {corner{x, -x, x + 1}, corner{x, -x, x + 1}}; }
  constexpr state operator()(const state& a, const state& b) const {
    state s;
    for (std::size_t i = 0; i < 3; ++i) {
      s.first[i] = std::min(a.first[i], b.first[i]);
      s.second[i] = std::max(a.second[i], b.second[i]);
    }
    return s;
  }
};
struct largest_if_any {
  struct state {
    float value;
    bool some;
  };
  static constexpr bool is_commutative = true;
  constexpr state identity() const { return {0, false}; }
  constexpr state lift(float x) const { return {x, true}; }
  constexpr state operator()(state a, state b) const {
    const bool right = b.some & (!a.some | (b.value > a.value));
    return {right ? b.value : a.value, a.some || b.some};
  }
};
struct matrices {
  struct state {
    float m[2][2];
  };
  constexpr state identity() const { return {{{1, 0}, {0, 1}}}; }
  constexpr state lift(float x) const { return {{{1, x}, {0, 1}}}; }
  constexpr state operator()(const state& a, const state& b) const {
    state s{};
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 2; ++j) {
        for (int k = 0; k < 2; ++k) s.m[i][j] += a.m[i][k] * b.m[k][j];
      }
    }
    return s;
  }
};

template <class M, class X>
auto leaf(const X* x, regroup::index n) {
  return regroup::host::leaf_of(M{}, x, n);
}
template auto leaf<regroup::plus<float>>(const float*, regroup::index);
template auto leaf<regroup::plus<double>>(const double*, regroup::index);
template auto leaf<regroup::multiplies<float>>(const float*, regroup::index);
template auto leaf<regroup::scaled_product<float>>(const float*, regroup::index);
template auto leaf<regroup::scaled_product<double>>(const double*, regroup::index);
template auto leaf<regroup::plus<std::int32_t>>(const std::int32_t*, regroup::index);
template auto leaf<regroup::minimum<float>>(const float*, regroup::index);
template auto leaf<regroup::maximum<float>>(const float*, regroup::index);
template auto leaf<regroup::any>(const bool*, regroup::index);
template auto leaf<regroup::all>(const bool*, regroup::index);
template auto leaf<regroup::bit_and<std::uint32_t>>(const std::uint32_t*, regroup::index);
template auto leaf<regroup::bit_or<std::uint32_t>>(const std::uint32_t*, regroup::index);
template auto leaf<regroup::bit_xor<std::uint32_t>>(const std::uint32_t*, regroup::index);
template auto leaf<regroup::plus<float>>(const regroup::bfloat16*, regroup::index);
template auto leaf<regroup::plus<float>>(const regroup::float16*, regroup::index);
template auto leaf<regroup::mean<float>>(const float*, regroup::index);
template auto leaf<regroup::moments<float>>(const float*, regroup::index);
template auto leaf<regroup::moments<double>>(const double*, regroup::index);
template auto leaf<regroup::minmax<float>>(const float*, regroup::index);
template auto leaf<regroup::compensated_plus<float>>(const float*, regroup::index);
template auto leaf<regroup::argmax<float>>(const regroup::indexed<float>*, regroup::index);
template auto leaf<regroup::argmin<float>>(const regroup::indexed<float>*, regroup::index);
template auto leaf<regroup::log_sum_exp<float>>(const float*, regroup::index);
template auto leaf<regroup::log_sum_exp<double>>(const double*, regroup::index);
template auto leaf<scalar_log_sum_exp>(const float*, regroup::index);
template auto leaf<max_and_sum>(const float*, regroup::index);
template auto leaf<log_add>(const float*, regroup::index);
template auto leaf<regroup::affine<float>>(const regroup::affine_map<float>*, regroup::index);
template auto leaf<regroup::affine<double>>(const regroup::affine_map<double>*, regroup::index);
template auto leaf<examples::longest_run>(const char*, regroup::index);
template auto leaf<box>(const float*, regroup::index);
template auto leaf<matrices>(const float*, regroup::index);
template auto leaf<largest_if_any>(const float*, regroup::index);

/// The place of the largest among numbers that stand in memory.
auto leaf_of_numbered(const float* x, regroup::index n) {
  const regroup::host::load_numbered numbered(regroup::enumerate(x, 7));
  return regroup::host::leaf_of(regroup::argmax<float>{}, regroup::host::tile(numbered, n));
}

/// Each member of a fanout by its own loop.
auto leaf_of_three(const float* x, regroup::index n) {
  const regroup::fanout three{regroup::count{}, regroup::mean<double>{}, regroup::minimum<double>{}};
  return regroup::host::leaf_of(three, x, n);
}

/// Tile after tile.
template auto regroup::host::fold_tiles(const regroup::plus<float>&, const regroup::strided<const float>&, regroup::index,
                                        regroup::index, regroup::index) -> regroup::forest<float>;

/// What a projection computes, as nobody has measured it.
struct softplus {
  constexpr float operator()(float x) const { return regroup::math::log(1 + regroup::math::exp(x)) * regroup::math::exp(-x * x); }
};
template void regroup::host::copy_elements(const regroup::projected<regroup::strided<const float>, softplus>&, regroup::index,
                                           regroup::index, float*);

/// What a state stands for, by a name that a symbol can say.
template <class M>
struct lowered {
  M m;
  auto operator()(const regroup::state_of<M>& s) const { return regroup::lower(m, s); }
};

template <class M, class X>
void scan(const regroup::strided<const X>& x, const regroup::strided<X>& y) {
  const M m;
  const lowered<M> answer;
  regroup::host::tile_scanner<M, X, X, lowered<M>> scan(m, regroup::scan_kind::inclusive, answer, false);
  regroup::host::scan_source(scan, m, x, y);
}
template void scan<regroup::plus<float>, float>(const regroup::strided<const float>&, const regroup::strided<float>&);
template void scan<regroup::plus<double>, double>(const regroup::strided<const double>&,
                                                  const regroup::strided<double>&);
template void scan<regroup::maximum<float>, float>(const regroup::strided<const float>&,
                                                   const regroup::strided<float>&);
template void scan<regroup::log_sum_exp<float>, float>(const regroup::strided<const float>&,
                                                       const regroup::strided<float>&);
template void scan<regroup::affine<double>, regroup::affine_map<double>>(
    const regroup::strided<const regroup::affine_map<double>>&, const regroup::strided<regroup::affine_map<double>>&);
template void scan<log_add, float>(const regroup::strided<const float>&, const regroup::strided<float>&);

template <class M>
void columns(const regroup::grid<const float>& g, regroup::host::pack<regroup::state_of<M>>* room) {
  const M m;
  regroup::host::dispatch([&] { regroup::host::leaf_of_columns(m, g, regroup::host::as_it_is{}, room, true); });
}
template void columns<regroup::plus<float>>(const regroup::grid<const float>&, regroup::host::pack<float>*);
template void columns<log_add>(const regroup::grid<const float>&, regroup::host::pack<float>*);

/// Short segments, one after another and a group at a time.
template <class M>
void short_segments(const regroup::host::stretch<float>* from, regroup::index n, regroup::host::columns<float>& states) {
  regroup::host::fold_short(M{}, from, n, true, states);
}
template void short_segments<regroup::plus<float>>(const regroup::host::stretch<float>*, regroup::index,
                                                   regroup::host::columns<float>&);
template void short_segments<regroup::maximum<float>>(const regroup::host::stretch<float>*, regroup::index,
                                                      regroup::host::columns<float>&);
template <class M, class X = float>
void segments(const regroup::host::stretch<X>* from, regroup::index n, regroup::host::columns<regroup::state_of<M>>& states) {
  regroup::host::fold_ragged(M{}, from, n, states);
}
template void segments<regroup::plus<float>>(const regroup::host::stretch<float>*, regroup::index,
                                             regroup::host::columns<float>&);
template void segments<log_add>(const regroup::host::stretch<float>*, regroup::index, regroup::host::columns<float>&);
template void segments<regroup::affine<float>, regroup::affine_map<float>>(
    const regroup::host::stretch<regroup::affine_map<float>>*, regroup::index,
    regroup::host::columns<regroup::affine_map<float>>&);
