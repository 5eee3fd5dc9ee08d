// SPDX-License-Identifier: Apache-2.0
// States and elements that are made of two numbers in whatever way have the bits of a struct of two, with every verb.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <complex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
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

/// In an array, in another struct, and one inside another.
template <class T>
struct in_array {
  T x[2];
  static constexpr in_array of(T re, T im) { return {{re, im}}; }
  [[nodiscard]] constexpr T real() const { return x[0]; }
  [[nodiscard]] constexpr T imag() const { return x[1]; }
};
template <class T>
struct inside {
  std::complex<T> z;
  static constexpr inside of(T re, T im) { return {{re, im}}; }
  [[nodiscard]] constexpr T real() const { return z.real(); }
  [[nodiscard]] constexpr T imag() const { return z.imag(); }
};
template <class T>
using array = std::array<T, 2>;
template <class T>
using tuple = std::tuple<T, T>;
template <class T>
using arrays = std::pair<std::array<T, 1>, std::array<T, 1>>;

template <class C>
constexpr auto re(const C& c) {
  if constexpr (requires { c.real(); }) {
    return c.real();
  } else if constexpr (requires { c.first; }) {
    return c.first[0];
  } else {
    return std::get<0>(c);
  }
}
template <class C>
constexpr auto im(const C& c) {
  if constexpr (requires { c.imag(); }) {
    return c.imag();
  } else if constexpr (requires { c.second; }) {
    return c.second[0];
  } else {
    return std::get<1>(c);
  }
}
template <class C>
using real = decltype(re(C{}));
template <class C>
constexpr C made(real<C> a, real<C> b) {
  if constexpr (requires { C::of(a, b); }) {
    return C::of(a, b);
  } else if constexpr (requires(C c) { c.first; }) {
    return {{a}, {b}};
  } else {
    return {a, b};
  }
}

template <class C>
struct sum {
  static constexpr bool is_commutative = true;
  constexpr C identity() const { return made<C>(0, 0); }
  constexpr C operator()(const C& a, const C& b) const { return made<C>(re(a) + re(b), im(a) + im(b)); }
};
/// z -> a z + b: maps in order, of real a and b.
template <class C>
struct in_order {
  constexpr C identity() const { return made<C>(1, 0); }
  constexpr C operator()(const C& a, const C& b) const { return made<C>(re(a) * re(b), std::fma(im(a), re(b), im(b))); }
};

template <class C>
std::vector<C> numbers(index n) {
  using T = real<C>;
  std::vector<C> all;
  for (index i = 0; i < n; ++i) {
    all.push_back(made<C>(static_cast<T>(i * 7919 % 1013) / 512, static_cast<T>(i * 104'729 % 997) / 7 - 60));
  }
  return all;
}

/// The parts of everything that the verbs give.
template <class C, template <class> class M, class Executor>
auto all_of(const Executor& ex) {
  const M<C> m;
  std::vector<real<C>> parts;
  const auto keep = [&](const std::vector<C>& results) {
    for (const C& c : results) parts.insert(parts.end(), {re(c), im(c)});
  };
  for (const index n : {1, 7, 33, 129, 4097, 9000}) {
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
  for (const auto& [rows, columns] : {std::pair<index, index>{40, 9}, {9, 40}, {5000, 3}, {600, 18}, {3, 5000}}) {
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
  const auto sums = all_of<Struct, sum>(regroup::seq), maps = all_of<Struct, in_order>(regroup::seq);
  order::for_some_executors([&](const auto& ex, const std::string& name) {
    EXPECT_TRUE((all_of<C, sum>(ex) == sums)) << name;
    EXPECT_TRUE((all_of<C, in_order>(ex) == maps)) << name << ", in order";
  });
}

}  // namespace

using regroup::host::is_split;
using regroup::host::words_of;
#if !defined(__clang__)
static_assert(is_split<std::complex<float>>() && is_split<point<double>>() && is_split<inside<double>>());
static_assert(words_of<std::complex<double>>() == 2);
#endif
static_assert(!regroup::host::is_complex<turned<float>>() && !regroup::host::is_complex<two<float>>());
static_assert(words_of<array<double>>() == 2 && words_of<in_array<float>>() == 2 && words_of<tuple<float>>() == 1);
static_assert(is_split<tuple<float>>() && is_split<arrays<double>>());

// What may hold more than its members, or other things than scalars, or too many, is kept whole.
struct derived : two<float> {
  float more;
};
struct counted {
  float x;
  ~counted() {}
};
struct shown {  // of one of its two numbers
  float x;
  float hidden;
};
template <>
struct std::tuple_size<shown> : std::integral_constant<std::size_t, 1> {};
struct of_thirteen {
  float a, b, c, d, e, f, g, h, i, j, k, l, m;
};
static_assert(!is_split<of_thirteen>());
static_assert(!is_split<derived>() && !is_split<counted>() && !is_split<std::pair<counted, float>>() && !is_split<shown>());
static_assert(!is_split<std::optional<float>>() && !is_split<std::string>() && !is_split<std::tuple<float, std::string>>());
static_assert(!is_split<std::tuple<>>() && !is_split<std::tuple<float&>>() && !is_split<std::array<float, 0>>());
static_assert(is_split<std::array<float, 16>>() && !is_split<std::array<float, 17>>());

TEST(states_of_scalars, of_complex_floats) { expect_bits_of_struct<std::complex<float>, two<float>>(); }
TEST(states_of_scalars, of_complex_doubles) { expect_bits_of_struct<std::complex<double>, two<double>>(); }
TEST(states_of_scalars, of_somebody_else) {
  expect_bits_of_struct<point<float>, two<float>>();
  expect_bits_of_struct<turned<float>, two<float>>();
}
TEST(states_of_scalars, of_arrays) {
  expect_bits_of_struct<array<float>, two<float>>();
  expect_bits_of_struct<in_array<double>, two<double>>();
}
TEST(states_of_scalars, of_tuples) { expect_bits_of_struct<tuple<float>, two<float>>(); }
/// The first of those that count.
template <class Flag>
struct first_of {
  struct state {
    double x;
    Flag some;
  };
  constexpr state identity() const { return {0, Flag{0}}; }
  constexpr state lift(double x) const { return {x, Flag{x > 9.5}}; }
  constexpr state operator()(state a, state b) const { return a.some ? a : b; }
  constexpr double lower(state s) const { return s.some ? s.x : -1; }
};
TEST(states_of_scalars, of_bools_beside_numbers) {
  for (const regroup::index n : {1, 40, 129, 4100, 20'000}) {
    std::vector<double> x(static_cast<std::size_t>(n)), y = x, z = x;
    for (regroup::index i = 0; i < n; ++i) x[static_cast<std::size_t>(i)] = static_cast<double>(i * 7919 % 1013) / 100;
    EXPECT_EQ(regroup::reduce(regroup::seq, x, first_of<bool>{}), regroup::reduce(regroup::seq, x, first_of<int>{})) << n;
    regroup::inclusive_scan(regroup::seq, x, y, first_of<bool>{});
    regroup::inclusive_scan(regroup::seq, x, z, first_of<int>{});
    EXPECT_EQ(y, z) << n;
  }
}
TEST(states_of_scalars, of_one_inside_another) {
  expect_bits_of_struct<inside<float>, two<float>>();
  expect_bits_of_struct<arrays<float>, two<float>>();
}
