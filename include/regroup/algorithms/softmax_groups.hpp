// SPDX-License-Identifier: Apache-2.0
// Short contiguous rows of softmax, a group at a time on one thread, by the library's loops (src/row_groups.hpp): what each
// row waits for is computed for all rows of the group side by side. Bits as softmax_sweeps.hpp. Level: lane.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>

#include "regroup/algorithms/softmax_abreast.hpp"
#include "regroup/algorithms/softmax_sweeps.hpp"

namespace regroup::softmax_parts {

/// Whether contiguous rows are swept this way. (Shorter ones go across a vector. Longer ones have enough to compute alone, and
/// outputs to be written past the caches. Setting up a group takes 130 ns, which rows without outputs earn later.)
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

/// Sweeps contiguous rows of at most a tile. Inlined into a dispatched function, because `look` computes too.
template <class X, class Y>
class group_sweep {
  using Real = widened<X>;
  using group = row_group<X, Y>;
  using pack = host::pack<Real>;
  static_assert(group::most == host::abreast);

 public:
  group_sweep(index length, scaled<Real> seen) : seen_(seen), form_{length, seen.scale, false} {}

  /// Looks at every row, a group's values and maps side by side, and, if there are outputs, writes them.
  template <class In, class Out, class Verb>
  void rows(const In& in, const Out& out, index first, index last, const look<Verb>& look) {
    group now{};
    const index together = std::clamp(elements_together / form_.length, group::most / 4, group::most);
    now.pitch = (form_.length + lanes - 1) / lanes * lanes;
    const auto scratch = std::make_unique_for_overwrite<line_of<Real>[]>(
        static_cast<std::size_t>(together * now.pitch * index{sizeof(Real)} / index{cache_line}));
    now.weights = scratch[0].values;
    for (index row = first; row < last; row += now.count) {
      now.count = std::min(last - row, together);
      for (index k = 0; k < group::most; ++k) {
        const auto at = static_cast<std::size_t>(k);
        now.x[at] = in[row + std::min(k, now.count - 1)].first;
        if constexpr (!std::same_as<Out, std::nullopt_t>) now.y[at] = out[row + std::min(k, now.count - 1)].first;
      }
      fold(now);
      pack m, s;
      for (index k = 0; k < group::most; ++k) {
        m.set(k, now.m[static_cast<std::size_t>(k)]);
        s.set(k, now.s[static_cast<std::size_t>(k)]);
      }
      const look_abreast<Verb, Real> all(look, row, now.count);
      all.show(m, s);
      if constexpr (!std::same_as<Out, std::nullopt_t>) write(all, now, m, s);
    }
  }

 private:
  /// Elements of a group that the first cache holds beside their weights and outputs.
  static constexpr index elements_together = tile_elements / 2;

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
      if (!math::is_finite(rows.m[at])) rows.m[at] = largest_of_any(seen_, rows.x[at], form_.length);
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
      if (map.shown.get(k) == 0) std::fill_n(rows.y[at], form_.length, static_cast<Y>(Real{0}));
      if (map.single[at] >= 0) rows.y[at][map.single[at]] = static_cast<Y>(map.value.get(k));
    }
  }

  scaled<Real> seen_;
  row_form<Real> form_;
  const row_kernels<X, Y>& kernels_ = current_row_kernels<X, Y>();
};

#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute pop
#endif

}  // namespace regroup::softmax_parts
