// SPDX-License-Identifier: Apache-2.0
// Short rows of softmax, a group at a time on one thread, by the library's loops (src/row_groups.hpp): what each row waits
// for is computed for all rows of the group side by side. Bits as softmax_sweeps.hpp. Level: lane.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>

#include "regroup/algorithms/softmax_abreast.hpp"
#include "regroup/algorithms/softmax_sweeps.hpp"

namespace regroup::softmax_parts {

/// The longest row swept this way.
inline constexpr index longest_in_group = tile_elements;
/// Whether contiguous rows of one length are swept this way. (Shorter ones go across a vector. Longer ones have enough to
/// compute alone, and outputs to be written past the caches. Setting up a group takes 130 ns, which rows without outputs earn
/// later.)
template <class Out>
constexpr bool go_in_groups(index rows, index length) {
  constexpr bool has_outputs = !std::same_as<Out, std::nullopt_t>;
  constexpr index fewest = has_outputs ? host::abreast / 4 : 2 * host::abreast;
  constexpr index shortest = has_outputs ? lanes / 4 : lanes / 2, longest = (has_outputs ? 4 : 2) * lanes - 1;
  return rows >= fewest && length >= shortest && length <= longest;
}

// As in host/lanes.hpp.
#if defined(__clang__)
#pragma clang attribute push([[gnu::always_inline]], apply_to = function)
#pragma clang attribute push([[gnu::flatten]], apply_to = function)
#endif

/// Sweeps rows of up to `longest_in_group` elements, each of its own length. Inlined into a dispatched function, because `look`
/// computes too.
template <class X, class Y>
class group_sweep {
  using Real = widened<X>;
  using group = row_group<X, Y>;
  using pack = host::pack<Real>;
  static_assert(group::most == host::abreast);

 public:
  explicit group_sweep(scaled<Real> seen) : seen_(seen), form_{0, seen.scale, false} {}

  /// Looks at every row, a group's values and maps side by side, and, if there are outputs, writes them.
  template <class In, class Out, class Verb>
  void rows(const In& in, const Out& out, index first, index last, const look<Verb>& look) {
    group now{};
    for (index row = first; row < last;) {
      row = gather(now, in, out, row, last, look);
      if (now.count == 0) return;
      fold(now);
      pack m, s;
      for (index k = 0; k < group::most; ++k) {
        m.set(k, now.m[static_cast<std::size_t>(k)]);
        s.set(k, now.s[static_cast<std::size_t>(k)]);
      }
      const look_abreast<Verb, Real> all(look, numbers_, now.count);
      all.show(m, s);
      if constexpr (!std::same_as<Out, std::nullopt_t>) {
        write(all, now, m, s);
        give(now, out);
      }
    }
  }

 private:
  /// Elements of a group that the first cache holds beside their weights and outputs.
  static constexpr index elements_together = tile_elements / 2;
  /// Elements of the widest pair of packs: rows stand aside at multiples of it, so that whole pairs fit.
  static constexpr index widest_pair = 2 * index{cache_line} / index{sizeof(float)};
  template <class T>
  static std::unique_ptr<line_of<T>[]> scratch() {
    constexpr index elements = std::max(elements_together, longest_in_group) + group::most * widest_pair;
    return std::make_unique_for_overwrite<line_of<T>[]>(static_cast<std::size_t>(elements) * sizeof(T) / cache_line);
  }

  /// Those of the rows [row, last) that go together; returns the next one. Empty ones are looked at and left out; those whose
  /// elements or places are not contiguous are copied aside.
  template <class In, class Out, class Verb>
  index gather(group& rows, const In& in, const Out& out, index row, index last, const look<Verb>& look) {
    index elements = 0, place = 0;
    rows.count = 0;
    rows.ahead = 0;
    for (; row != last; ++row) {
      const auto x = in[row];
      if (x.count == 0) [[unlikely]] {
        look(row, log_sum_exp<Real>{}.identity());
        continue;
      }
      elements += x.count;
      if (rows.count == group::most || (elements > elements_together && rows.count > 0)) {  // the next group's first
        const X* const next = x.contiguous();
        if (next != nullptr && from_ == nullptr) rows.ahead = next - rows.x[0];
        break;
      }
      const auto at = static_cast<std::size_t>(rows.count++);
      numbers_[at] = row;
      rows.length[at] = x.count;
      rows.x[at] = x.contiguous();
      rows.weights[at] = weights_[0].values + place;
      if (rows.x[at] == nullptr) [[unlikely]] {
        if (!from_) from_ = scratch<X>();
        X* const copy = from_[0].values + place;
        for (index i = 0; i < x.count; ++i) copy[i] = x[i];
        rows.x[at] = copy;
      }
      if constexpr (!std::same_as<Out, std::nullopt_t>) {
        rows.y[at] = out[row].contiguous();
        if (rows.y[at] == nullptr) [[unlikely]] {
          if (!to_) to_ = scratch<Y>();
          rows.y[at] = to_[0].values + place;
        }
      }
      place += (x.count + widest_pair - 1) / widest_pair * widest_pair;
    }
    return row;
  }
  /// Puts outputs that stand aside into their places.
  template <class Out>
  void give(const group& rows, const Out& out) const {
    if (!to_) return;
    for (std::size_t k = 0; k < static_cast<std::size_t>(rows.count); ++k) {
      const auto to = out[numbers_[k]];
      const Y* const y = rows.y[k];
      if (y == to.first) continue;
      for (index i = 0; i < to.count; ++i) to[i] = y[i];
    }
  }

  /// The states of a group's rows.
  void fold(group& rows) const {
    kernels_.largest_of_group(form_, rows);
    for (Real& m : rows.m) m = detail::peak<Real>{}.lower(m);
    int strange = 0;
    for (index k = 0; k < rows.count; ++k) strange |= math::is_finite(rows.m[static_cast<std::size_t>(k)]) ? 0 : 1;
    if (strange != 0) find_strange(rows);
    kernels_.sum_group(form_, rows);
    for (Real& s : rows.s) s = plus<Real>{}.lower(s);
  }
  /// The largest elements of the rows of which `peak` could not say.
  [[gnu::noinline]] void find_strange(group& rows) const {
    for (index k = 0; k < rows.count; ++k) {
      const auto at = static_cast<std::size_t>(k);
      if (!math::is_finite(rows.m[at])) rows.m[at] = largest_of_any(seen_, rows.x[at], rows.length[at]);
    }
  }
  template <class Verb>
  void write(const look_abreast<Verb, Real>& look, group& rows, const pack& m, const pack& s) const {
    constexpr auto kind = Verb::map::outputs;
    const maps_abreast<Real> map = look.maps(m, s);
    for (index k = 0; k < group::most; ++k) {
      rows.a[static_cast<std::size_t>(k)] = map.a.get(k);
      rows.b[static_cast<std::size_t>(k)] = map.b.get(k);
    }
    kernels_.write_group(form_, rows, kind);
    if constexpr (kind != row_map_kind::shares_of_weights) return;
    for (index k = 0; k < rows.count; ++k) {
      const auto at = static_cast<std::size_t>(k);
      if (map.shown.get(k) == 0) std::fill_n(rows.y[at], rows.length[at], static_cast<Y>(Real{0}));
      if (map.single[at] >= 0) rows.y[at][map.single[at]] = static_cast<Y>(map.value.get(k));
    }
  }

  scaled<Real> seen_;
  row_form<Real> form_;
  row_numbers numbers_{};
  std::unique_ptr<line_of<Real>[]> weights_ = scratch<Real>();
  std::unique_ptr<line_of<X>[]> from_;
  std::unique_ptr<line_of<Y>[]> to_;
  const row_kernels<X, Y>& kernels_ = current_row_kernels<X, Y>();
};

#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute pop
#endif

}  // namespace regroup::softmax_parts
