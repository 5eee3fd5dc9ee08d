// SPDX-License-Identifier: Apache-2.0
// How rows of softmax are swept, in five ways (three are softmax_abreast.hpp, softmax_groups.hpp and softmax_far.hpp) with one
// meaning and the same bits. A row x folds to the state (M, s); then `look(row, state)` returns the map that makes the outputs
// y[i] = map(x[i], exp(x[i] - M)), or nothing.
//   near_sweep: contiguous rows that fit a cache, on one thread: every exponential is computed once, and a row is written
//               while the weights of the next one are computed (softmax_kernels.hpp)
//   tile_sweep: any row, its tiles swept like rows, by an executor's threads; tiles that are not contiguous are copied
// Level: lane.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "regroup/algorithms/softmax_kernels.hpp"
#include "regroup/algorithms/softmax_row.hpp"
#include "regroup/host/dispatch.hpp"
#include "regroup/host/folds.hpp"
#include "regroup/memory.hpp"

namespace regroup {

namespace softmax_parts {

// As in host/lanes.hpp.
#if defined(__clang__)
#pragma clang attribute push([[gnu::always_inline]], apply_to = function)
#pragma clang attribute push([[gnu::flatten]], apply_to = function)
#endif

/// The largest element of a row of which `peak` could not say. Rare, and it chooses an instruction set by itself: not inlined.
template <class X, std::floating_point Real>
[[gnu::noinline]] Real largest_of_any(scaled<Real> seen, const X* x, index length) {
  return maximum_of(seen, [&](const auto& largest) {
    return host::fold_source(largest, strided<const X>{x, length, 1});
  });
}

/// Sweeps contiguous rows of up to 65,536 elements, by the library's loops. Inlined into a dispatched function, because
/// `look` computes too.
template <class X, class Y>
class near_sweep {
  using Real = widened<X>;
  using row_state = typename log_sum_exp<Real>::state;
  static constexpr index most_tiles = longest_two_sweep_row / tile_elements;

 public:
  near_sweep(index length, scaled<Real> seen, bool past_caches) : seen_(seen), form_{length, seen.scale, past_caches} {}

  /// Calls look(row, state) and, if there are outputs, writes them by the map that it returns.
  template <class In, class Out, class Look>
  void rows(const In& in, const Out& out, index first, index last, const Look& look) {
    if (form_.length == 0) {
      for (index row = first; row < last; ++row) look(row, log_sum_exp<Real>{}.identity());
      return;
    }
    const auto next = [&](index row) { return in[std::min(row + 1, last - 1)].first; };
    Real m = largest(kernels_.largest(form_, in[first].first), in[first].first);
    if constexpr (std::same_as<Out, std::nullopt_t>) {
      const auto state_of = [&](index row) { return state({in[row].first, nullptr, m, next(row), {}}, m); };
      row_state now = state_of(first);
      for (index row = first; row + 1 < last; ++row) {
        const row_state after = state_of(row + 1);
        look(row, now);  // whose logarithm the row after does not wait for
        now = after;
      }
      look(last - 1, now);
    } else {
      using map = std::remove_cvref_t<std::invoke_result_t<const Look&, index, row_state>>;
      const auto scratch = std::make_unique_for_overwrite<line_of<Real>[]>(static_cast<std::size_t>(2 * pitch()));
      row_outputs<X, Y> before{.x = nullptr, .weights = nullptr, .y = nullptr, .m = m, .map = {map::outputs, 1, 1}};
      for (index row = first; row < last; ++row) {
        const X *const x = in[row].first, *const after = next(row);
        Y* const y = out[row].first;
        before.behind = lanes * steps_aside(place(before.y), -lanes * index{sizeof(Y)}, {place(x), place(after)});
        Real* weights = scratch[static_cast<std::size_t>(row % 2 * pitch())].values;
        const index kept = place(before.weights) - before.behind * index{sizeof(Real)};
        weights += lanes * steps_aside(place(weights), lanes * index{sizeof(Real)}, {place(x), place(after), kept});
        const row_state now = state({x, weights, m, after, before}, m);
        before = {x, weights, y, now.m, look(row, now).of_row()};
        if (before.map.kind == row_map_kind::zeros) {
          std::fill(y, y + form_.length, static_cast<Y>(Real{0}));
          before.y = nullptr;
        }
      }
      kernels_.write(form_, before);
      if (form_.past_caches) finish_past_caches();
    }
  }

 private:
  /// The state of a row; m, its largest element, becomes the next one's.
  row_state state(const row_sweep<X, Y>& row, Real& m) const {
    std::array<Real, most_tiles> leaves;
    const Real above = kernels_.sweep(form_, row, leaves.data());
    const auto tiles = static_cast<std::size_t>(tiles_of(form_.length));
    const Real s = plus<Real>{}.lower(perfect(plus<Real>{}, std::span(leaves.data(), tiles)));
    m = largest(above, row.next);
    return {row.m, s};
  }
  [[nodiscard]] Real largest(Real found, const X* x) const {
    const Real m = detail::peak<Real>{}.lower(found);
    return math::is_finite(m) ? m : largest_of_any(seen_, x, form_.length);
  }
  /// Lines from the weights of a row to those of the next, and to step aside.
  [[nodiscard]] index pitch() const { return (form_.length * index{sizeof(Real)} + page) / index{cache_line} + 1; }

  static constexpr index page = 4096;
  static index place(const void* p) { return static_cast<index>(reinterpret_cast<std::uintptr_t>(p) % page); }
  /// How many steps move a store, given its place in a page, clear of the loads that go on beside it: a load soon after a
  /// store to the same offset in another page waits for the store. On a Zen 2 a row of 1024 whose outputs began 16 bytes
  /// behind its elements, modulo a page, took 1.6 ns an element without this and takes 0.62 with it.
  static index steps_aside(index store, index step, std::initializer_list<index> loads) {
    const auto is_clear = [&](index load) { return (store - load + index{cache_line} + 16 * page) % page >= 512; };
    index steps = 0;  // a load is in the way of no more than two
    for (; !std::all_of(loads.begin(), loads.end(), is_clear); ++steps) store += step;
    return steps;
  }

  scaled<Real> seen_;
  row_form<Real> form_;
  const row_kernels<X, Y>& kernels_ = current_row_kernels<X, Y>();
};

#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute pop
#endif

/// The tiles of a row: in place if it is contiguous, else copies, of which the last two are kept.
template <class X>
class row_tiles {
 public:
  explicit row_tiles(const strided<const X>& row) : row_(row) {
    if (row.contiguous() == nullptr) {
      copies_ = std::make_unique_for_overwrite<X[]>(static_cast<std::size_t>(std::min(2 * tile_elements, row.count)));
    }
  }
  const X* operator[](index t) {
    const index first = t * tile_elements;
    if (!copies_) return row_.first + first;
    X* const copy = copies_.get() + t % 2 * tile_elements;
    if (std::exchange(held_[static_cast<std::size_t>(t % 2)], t) != t) {
      for (index i = 0; i < std::min(tile_elements, row_.count - first); ++i) copy[i] = row_[first + i];
    }
    return copy;
  }

 private:
  strided<const X> row_;
  std::unique_ptr<X[]> copies_;
  std::array<index, 2> held_ = {-1, -1};
};

/// Sweeps a row of any length, from X to Y, by the library's loops on an executor's threads, tile by tile.
template <executor Executor, class X, class Y>
class tile_sweep {
  using Real = widened<X>;
  using row_state = typename log_sum_exp<Real>::state;

 public:
  tile_sweep(const Executor& ex, index length, scaled<Real> seen, bool past_caches)
      : ex_(ex), seen_(seen), length_(length), whole_{tile_elements, seen.scale, past_caches} {
    const index of_thread = tiles_of(length) / (4 * std::max<index>(concurrency_of(ex), 1));
    chunk_tiles_ =
        static_cast<index>(std::bit_floor(static_cast<std::uint64_t>(std::clamp<index>(of_thread, 4, most_tiles))));
  }

  template <class In, class Out, class Look>
  void row(const In& in, const Out& out, index row, const Look& look) const {
    strided<const X> x = in[row];
    std::unique_ptr<X[]> copy;  // of a row of one tile, read three times
    if (length_ <= tile_elements && x.contiguous() == nullptr) {
      copy = std::make_unique_for_overwrite<X[]>(static_cast<std::size_t>(length_));
      for (index i = 0; i < length_; ++i) copy[static_cast<std::size_t>(i)] = x[i];
      x = {copy.get(), length_, 1};
    }
    const row_state state = length_ > longest_two_sweep_row ? of_tiles(x) : of_row(x);
    if constexpr (std::same_as<Out, std::nullopt_t>) {
      look(row, state);
    } else {
      write(x, out[row], state.m, look(row, state).of_row());
    }
  }

 private:
  static constexpr index most_tiles = 64;

  /// body(first tile, tiles, chunk) for aligned chunks of the row, which are nodes of its tree.
  template <class Body>
  void each_chunk(const Body& body) const {
    const index tiles = tiles_of(length_);
    ex_.for_each(chunks(), static_cast<double>(chunk_tiles_ * tile_elements) / 2, [&](index c) {
      host::dispatch([&] { body(c * chunk_tiles_, std::min(chunk_tiles_, tiles - c * chunk_tiles_), c); });
    });
  }
  [[nodiscard]] index chunks() const { return (tiles_of(length_) + chunk_tiles_ - 1) / chunk_tiles_; }
  [[nodiscard]] index size_of(index tile) const { return std::min(tile_elements, length_ - tile * tile_elements); }
  [[nodiscard]] row_form<Real> form_of(index tile) const { return {size_of(tile), whole_.scale, whole_.past_caches}; }
  /// A fold of the chunks' states: `of_chunk(first tile, tiles)`, by m.
  template <class M, class OfChunk>
  state_of<M> fold(const M& m, const OfChunk& of_chunk) const {
    if (length_ == 0) return m.identity();
    std::vector<state_of<M>> states(static_cast<std::size_t>(chunks()));
    each_chunk(
        [&](index first, index tiles, index c) { states[static_cast<std::size_t>(c)] = of_chunk(first, tiles); });
    return perfect(m, std::span(states));
  }
  /// The sum of the weights of tile t, before `last`, in plus's order, under `above`, which becomes the largest element of the
  /// next one, if it is whole.
  Real sum(row_tiles<X>& x, index t, index last, Real& above) const {
    const bool has_next = t + 1 < last && size_of(t + 1) == tile_elements;
    Real leaf;
    above = kernels_.sweep(form_of(t), {x[t], nullptr, above, x[has_next ? t + 1 : t], {}}, &leaf);
    return leaf;
  }
  [[nodiscard]] Real largest(row_tiles<X>& x, index t) const {
    return detail::peak<Real>{}.lower(kernels_.largest(form_of(t), x[t]));
  }

  /// log_sum_exp's tree: every tile has its own maximum.
  row_state of_tiles(const strided<const X>& row) const {
    const log_sum_exp<Real> m;
    return fold(m, [&](index first, index tiles) {
      row_tiles<X> x(row);
      std::array<row_state, most_tiles> leaves;
      Real above = largest(x, first);
      for (index t = first; t < first + tiles; ++t) {
        if (size_of(t) < tile_elements) above = largest(x, t);
        const Real top = detail::peak<Real>{}.lower(above);
        const Real s = plus<Real>{}.lower(sum(x, t, first + tiles, above));
        auto& leaf = leaves[static_cast<std::size_t>(t - first)];
        leaf = {math::select(s == s, top, s), s};
        if (!math::is_finite(top)) leaf = leaf_of_tile(x[t], size_of(t), seen_);
      }
      return perfect(m, std::span(leaves.data(), static_cast<std::size_t>(tiles)));
    });
  }
  /// The row's maximum, then plus's tree.
  row_state of_row(const strided<const X>& row) const {
    Real m = fold(detail::peak<Real>{}, [&](index first, index tiles) {
      row_tiles<X> x(row);
      Real top = detail::peak<Real>{}.identity();
      for (index t = first; t < first + tiles; ++t) top = detail::peak<Real>{}(top, largest(x, t));
      return top;
    });
    if (!math::is_finite(m)) {
      m = maximum_of(seen_, [&](const auto& largest) { return host::fold_source(largest, row); });
    }
    const Real s = fold(plus<Real>{}, [&](index first, index tiles) {
      std::array<Real, most_tiles> leaves{};
      row_tiles<X> x(row);
      for (index t = first; t < first + tiles; ++t) {
        Real above = m;
        leaves[static_cast<std::size_t>(t - first)] = sum(x, t, first + tiles, above);
      }
      return perfect(plus<Real>{}, std::span(leaves.data(), static_cast<std::size_t>(tiles)));
    });
    return {m, plus<Real>{}.lower(s)};
  }

  /// The outputs, from the elements: a chunk at once, or, if not contiguous, so few that copying overlaps with computing.
  void write(const strided<const X>& x, const strided<Y>& y, Real m, const row_map<Real>& map) const {
    each_chunk([&](index tile, index tiles, index) {
      const index first = tile * tile_elements, last = std::min((tile + tiles) * tile_elements, length_);
      if (x.contiguous() != nullptr && y.contiguous() != nullptr) {
        put(x.first + first, y.first + first, first, last - first, whole_.past_caches, m, map);
        if (whole_.past_caches) finish_past_caches();
        return;
      }
      std::array<X, 2 * lanes> from;
      std::array<Y, 2 * lanes> to;
      for (index i = first; i < last; i += 2 * lanes) {
        const index n = std::min(2 * lanes, last - i);
        for (index k = 0; k < n; ++k) from[static_cast<std::size_t>(k)] = x[i + k];
        put(from.data(), to.data(), i, n, false, m, map);
        for (index k = 0; k < n; ++k) y[i + k] = to[static_cast<std::size_t>(k)];
      }
    });
  }
  /// The outputs of n elements, the first of them the row's `first`.
  void put(const X* x, Y* y, index first, index n, bool past_caches, Real m, const row_map<Real>& map) const {
    if (map.kind == row_map_kind::zeros) {
      std::fill(y, y + n, static_cast<Y>(Real{0}));
    } else {
      kernels_.write({n, whole_.scale, past_caches},
                     {x, nullptr, y, m, {map.kind, map.a, map.b, map.single - first, map.value}});
    }
  }

  const Executor& ex_;
  scaled<Real> seen_;
  index length_;
  row_form<Real> whole_;
  index chunk_tiles_;
  const row_kernels<X, Y>& kernels_ = current_row_kernels<X, Y>();
};

}  // namespace softmax_parts
}  // namespace regroup
