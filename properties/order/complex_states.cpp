// SPDX-License-Identifier: Apache-2.0
// States and elements that are complex numbers have the bits of a struct of two numbers, with every verb.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <string>
#include <vector>

#include "cases.hpp"
#include "regroup/reduce.hpp"
#include "regroup/scan.hpp"
#include "regroup/stream.hpp"

namespace {

using regroup::index;
using regroup::view;

template <class T>
struct two {
  T re, im;
  [[nodiscard]] constexpr T real() const { return re; }
  [[nodiscard]] constexpr T imag() const { return im; }
};
/// Somebody's own complex numbers, with more than std's to construct.
template <class T>
class point {
 public:
  using value_type = T;
  constexpr point() : re_(1), im_(1) {}
  constexpr point(T re, T im) : re_(re), im_(im) {}
  [[nodiscard]] constexpr T real() const { return re_; }
  [[nodiscard]] constexpr T imag() const { return im_; }

 private:
  T re_, im_;
};

/// The same in another order.
template <class T>
class turned {
 public:
  using value_type = T;
  constexpr turned() = default;
  constexpr turned(T re, T im) : im_(im), re_(re) {}
  [[nodiscard]] constexpr T real() const { return re_; }
  [[nodiscard]] constexpr T imag() const { return im_; }

 private:
  T im_ = 0, re_ = 0;
};

template <class C>
struct sum {
  static constexpr bool is_commutative = true;
  constexpr C identity() const { return {0, 0}; }
  constexpr C operator()(const C& a, const C& b) const { return {a.real() + b.real(), a.imag() + b.imag()}; }
};
/// z -> a z + b: maps in order, of real a and b.
template <class C>
struct in_order {
  constexpr C identity() const { return {1, 0}; }
  constexpr C operator()(const C& a, const C& b) const {
    return {a.real() * b.real(), std::fma(a.imag(), b.real(), b.imag())};
  }
};

template <class C>
std::vector<C> numbers(index n) {
  using T = std::remove_cvref_t<decltype(C{}.real())>;
  std::vector<C> made;
  for (index i = 0; i < n; ++i) {
    made.push_back(C{static_cast<T>(i * 7919 % 1013) / 512, static_cast<T>(i * 104'729 % 997) / 7 - 60});
  }
  return made;
}

/// The parts of everything that the verbs give.
template <class C, template <class> class M, class Executor>
auto all_of(const Executor& ex) {
  const M<C> m;
  std::vector<std::remove_cvref_t<decltype(C{}.real())>> parts;
  const auto keep = [&](const std::vector<C>& results) {
    for (const C& c : results) parts.insert(parts.end(), {c.real(), c.imag()});
  };
  for (const index n : {1, 7, 33, 129, 4097, 20'000}) {
    const auto xs = numbers<C>(n);
    std::vector<C> ys(xs.size());
    keep({regroup::reduce(ex, xs, m)});
    regroup::inclusive_scan(ex, xs, ys, m);
    keep(ys);
    regroup::exclusive_scan(ex, xs, ys, m);
    keep(ys);
    regroup::accumulator<M<C>, C> acc{m, 5};
    acc.push(xs);
    keep({acc.value()});
  }
  for (const auto& [rows, columns] : {std::pair<index, index>{40, 9}, {9, 40}, {5000, 3}, {5000, 18}, {3, 5000}}) {
    const auto xs = numbers<C>(rows * columns);
    const view<const C> x(xs.data(), {rows, columns});
    std::vector<C> of_rows(static_cast<std::size_t>(rows)), of_columns(static_cast<std::size_t>(columns)), ys(xs.size());
    regroup::reduce_rows(ex, x, of_rows, m);
    keep(of_rows);
    regroup::reduce_axes(ex, x, {0}, of_columns, m);
    keep(of_columns);
    for (const index axis : {0, 1}) {
      regroup::inclusive_scan_axis(ex, x, axis, view<C>(ys.data(), {rows, columns}), m);
      keep(ys);
    }
  }
  return parts;
}

template <class C, class Struct>
void expect_bits_of_struct() {
  order::for_some_executors([](const auto& ex, const std::string& name) {
    EXPECT_TRUE((all_of<C, sum>(ex) == all_of<Struct, sum>(ex))) << name;
    EXPECT_TRUE((all_of<C, in_order>(ex) == all_of<Struct, in_order>(ex))) << name << ", in order";
  });
}

}  // namespace

#if !defined(__clang__)
static_assert(regroup::host::is_split<std::complex<float>>() && regroup::host::is_split<point<double>>());
static_assert(regroup::host::words_of<std::complex<double>>() == 2);
#endif
static_assert(!regroup::host::is_complex<turned<float>>() && !regroup::host::is_complex<two<float>>());

TEST(complex_states, of_floats) { expect_bits_of_struct<std::complex<float>, two<float>>(); }
TEST(complex_states, of_doubles) { expect_bits_of_struct<std::complex<double>, two<double>>(); }
TEST(complex_states, of_somebody_else) {
  expect_bits_of_struct<point<float>, two<float>>();
  expect_bits_of_struct<turned<float>, two<float>>();
}
