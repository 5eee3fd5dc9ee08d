// SPDX-License-Identifier: Apache-2.0
// Rows of softmax across a vector (host/abreast.hpp): short ones, and columns of a matrix, a group at a time on one
// thread. A group's elements and weights are kept side by side, so every element is read once and every exponential
// computed once; bits as softmax_sweeps.hpp. Level: lane.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <type_traits>

#include "regroup/algorithms/softmax_row.hpp"
#include "regroup/host/abreast.hpp"
#include "regroup/host/halves.hpp"
#include "regroup/memory.hpp"

namespace regroup::softmax_parts {

/// The longest contiguous row swept this way.
inline constexpr index longest_row_abreast = 3 * lanes / 2;

// As in host/lanes.hpp.
#if defined(__clang__)
#pragma clang attribute push([[gnu::always_inline]], apply_to = function)
#pragma clang attribute push([[gnu::flatten]], apply_to = function)
#endif

/// The maps of a group's rows, which are all of one kind, or zeros where `shown` is 0.
template <std::floating_point Real>
struct maps_abreast {
  host::pack<Real> a, b, shown, value;
  std::array<index, static_cast<std::size_t>(host::abreast)> single;
};

/// The numbers of a group's rows, and of rows that follow one another.
using row_numbers = std::array<index, static_cast<std::size_t>(host::abreast)>;
constexpr row_numbers numbers_from(index first) {
  row_numbers numbers;
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

/// What a verb makes of the first `count` of some rows, computed side by side.
template <class Verb, std::floating_point Real>
class look_abreast {
  using pack = host::pack<Real>;
  using given = typename Verb::given;
  static constexpr index abreast = host::abreast;
  struct nothings {
    constexpr given get(index) const { return {}; }
  };

 public:
  look_abreast(const look<Verb>& look, const row_numbers& rows, index count) : look_(look), rows_(rows), count_(count) {
    if constexpr (!std::is_empty_v<given>) {
      for (index k = 0; k < count; ++k) given_.set(k, look.given_of(row(k)));
      for (index k = count; k < abreast; ++k) given_.set(k, given_.get(0));
    }
  }
  /// Gives the values of rows of states (m, s) to their taker.
  void show(const pack& m, const pack& s) const {
    if (!look_.has_values()) return;
    pack value;
    for (index k = 0; k < abreast; ++k) value.set(k, look_.value(given_.get(k), {m.get(k), s.get(k)}));
    for (index k = 0; k < count_; ++k) look_.put(row(k), given_.get(k), value.get(k));
  }
  [[nodiscard]] maps_abreast<Real> maps(const pack& m, const pack& s) const {
    constexpr auto kind = Verb::map::outputs;
    maps_abreast<Real> all;
    const auto set = [&](index k) {
      const row_map<Real> map = look_.map_of(given_.get(k), {m.get(k), s.get(k)}).of_row();
      all.a.set(k, map.a);
      all.b.set(k, map.b);
      if constexpr (kind != row_map_kind::shares_of_weights) return;
      all.shown.set(k, map.kind == kind ? Real{1} : Real{0});
      all.single[static_cast<std::size_t>(k)] = map.single;
      all.value.set(k, map.value);
    };
    for (index k = 0; k < abreast; ++k) set(k);
    return all;
  }

 private:
  [[nodiscard]] index row(index k) const { return rows_[static_cast<std::size_t>(k)]; }
  const look<Verb>& look_;
  row_numbers rows_;
  index count_;
  std::conditional_t<std::is_empty_v<given>, nothings, host::pack<given>> given_;
};

/// Sweeps rows of 1 to 65,536 elements, wherever they are. Inlined into a dispatched function.
template <class X, class Y, std::floating_point Real>
class abreast_sweep {
  using pack = host::pack<Real>;
  static constexpr index abreast = host::abreast;

 public:
  abreast_sweep(index length, scaled<Real> seen)
      : seen_(seen),
        length_(length),
        scratch_(room<Real>(2)),
        narrow_in_(room<X>(std::same_as<X, Real> ? 0 : 1)),
        narrow_out_(room<Y>(std::same_as<Y, Real> ? 0 : 1)) {}

  /// Looks at every row, a group's values and maps side by side, and, if there are outputs, sets y[i] = map(x[i], weight).
  template <class In, class Out, class Verb>
  void rows(const In& in, const Out& out, index first, index last, const look<Verb>& look) {
    for (index row = first; row < last;) {
      grid<const X> x = in.grid_at(row, std::min(last - row, abreast));
      pack m, s;
      if constexpr (std::same_as<Out, std::nullopt_t>) {
        states(x, m, s);
        look_abreast<Verb, Real>(look, numbers_from(row), x.rows).show(m, s);
      } else {
        const grid<Y> y = out.grid_at(row, x.rows);
        x.rows = y.rows;
        states(x, m, s);
        const look_abreast<Verb, Real> all(look, numbers_from(row), x.rows);
        all.show(m, s);
        write(all, y, m, s);
      }
      row += x.rows;
    }
  }

 private:
  template <class T>
  [[nodiscard]] std::unique_ptr<T[]> room(index groups) const {
    return std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(groups * length_ * abreast));
  }
  [[nodiscard]] Real* elements() const { return scratch_.get(); }
  [[nodiscard]] Real* weights() const { return scratch_.get() + length_ * abreast; }
  /// body(at, k): element after element, all rows side by side at `at`; independent of each other.
  template <class Body, class Meanwhile>
  void each(const Body& body, const Meanwhile& meanwhile) const {
    for (index i = 0; i < length_; ++i) {
      meanwhile(i);
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
      for (index k = 0; k < abreast; ++k) body(i * abreast + k, k);
    }
  }
  /// elements()[i * abreast + k] = element i of row k.
  void read(const grid<const X>& x) {
    Real* const to = elements();
    if constexpr (std::same_as<X, Real>) {
      host::pack_rows(x, to);
    } else {
      const X* const narrow = narrow_in_.get();
      host::pack_rows(x, narrow_in_.get());
      if constexpr (std::same_as<X, float16>) {
        host::widen_all(narrow, to, length_ * abreast);
      } else {
        for (index i = 0; i < length_ * abreast; ++i) to[i] = static_cast<Real>(regroup::widen(narrow[i]));
      }
    }
  }
  /// The largest elements of the rows of which `peak` could not say. Rare, so not inlined.
  [[gnu::noinline]] void put_maxima(const Real* x, pack& m) const {
    pack all;
    host::dispatch([&] { fold(maximum<Real>{}, [&](index i, index k) { return seen_(x[i * abreast + k]); }, all); });
    for (index k = 0; k < abreast; ++k) {
      if (!math::is_finite(m.get(k))) m.set(k, quiet_maximum(all.get(k)));
    }
  }
  /// (m, s) of every row.
  void states(const grid<const X>& from, pack& m, pack& s) {
    read(from);
    const Real* const x = elements();
    Real* const w = weights();
    fold(detail::peak<Real>{}, [&](index i, index k) { return seen_(x[i * abreast + k]); }, m);
    for (index k = 0; k < abreast; ++k) m.set(k, detail::peak<Real>{}.lower(m.get(k)));
    int strange = 0;
    for (index k = 0; k < abreast; ++k) strange |= math::is_finite(m.get(k)) ? 0 : 1;
    if (strange != 0) put_maxima(x, m);
    const X* const later = from.first + abreast * from.pitch;  // the next group, where memory may bring it already
    const index step = from.pitch == 1 ? from.stride : abreast;
    each([&](index at, index k) { w[at] = weight<Real>{seen_, m.get(k)}(x[at]); },
         [&](index i) { regroup::fetch_lines<1, 1>(later + i * step, abreast * sizeof(X)); });
    fold(plus<Real>{}, [&](index i, index k) { return w[i * abreast + k]; }, s);
    for (index k = 0; k < abreast; ++k) s.set(k, plus<Real>{}.lower(s.get(k)));
  }
  /// The states of the rows in the contract's order.
  template <class M, class At>
  void fold(const M& m, const At& at, pack& out) const {
    const auto leaf = [&](index i, pack& to) {
      host::leaf_abreast(m, std::min(tile_elements, length_ - i), [&](index j, index k) { return at(i + j, k); }, to);
    };
    if (length_ <= tile_elements) return leaf(0, out);
    std::array<pack, longest_two_sweep_row / tile_elements> leaves;
    std::size_t count = 0;
    for (index i = 0; i < length_; i += tile_elements) leaf(i, leaves[count++]);
    for (index k = 0; k < abreast; ++k) {
      std::array<Real, longest_two_sweep_row / tile_elements> of_row{};
      for (std::size_t t = 0; t < count; ++t) of_row[t] = leaves[t].get(k);
      out.set(k, perfect(m, std::span(of_row.data(), count)));
    }
  }
  /// The outputs of the rows by their maps, which are all of one kind, or zeros.
  template <class Verb>
  void write(const look_abreast<Verb, Real>& look, const grid<Y>& y, const pack& m, const pack& s) {
    constexpr auto kind = Verb::map::outputs;
    const maps_abreast<Real> map = look.maps(m, s);
    const pack top = m, a = map.a, b = map.b, shown = map.shown;  // copies, which no output can overwrite
    const scaled<Real> seen = seen_;
    const Real* const x = elements();
    Real* const values = weights();
    each([=](index at, index k) {
      if constexpr (kind == row_map_kind::weights) {
        values[at] *= a.get(k);
      } else if constexpr (kind == row_map_kind::differences) {
        values[at] = (seen(x[at]) - top.get(k)) - b.get(k);
      } else {
        values[at] = math::select(shown.get(k) != 0, values[at] * a.get(k) * b.get(k), Real{0});
      }
    }, [](index) {});
    if constexpr (std::same_as<Y, Real>) {
      host::unpack_rows(values, y);
    } else {
      Y* const narrow = narrow_out_.get();
      if constexpr (std::same_as<Y, float16>) {
        host::narrow_all(values, narrow, length_ * abreast);
      } else {
        for (index i = 0; i < length_ * abreast; ++i) narrow[i] = static_cast<Y>(values[i]);
      }
      host::unpack_rows(narrow, y);
    }
    if constexpr (kind != row_map_kind::shares_of_weights) return;
    for (index k = 0; k < y.rows; ++k) {
      if (const index i = map.single[static_cast<std::size_t>(k)]; i >= 0) y(i, k) = static_cast<Y>(map.value.get(k));
    }
  }

  scaled<Real> seen_;
  index length_;
  std::unique_ptr<Real[]> scratch_;
  std::unique_ptr<X[]> narrow_in_;
  std::unique_ptr<Y[]> narrow_out_;
};

#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute pop
#endif

}  // namespace regroup::softmax_parts
