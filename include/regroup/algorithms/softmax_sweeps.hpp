// SPDX-License-Identifier: Apache-2.0
// How rows of softmax are swept, in three ways (one is softmax_abreast.hpp) with one meaning and the same bits. A row x
// folds to the state (M, s); then `look(row, state)` returns the map that makes the outputs y[i] = map(x[i], exp(x[i] - M)),
// or nothing.
//   near_sweep: rows side by side in memory that a cache holds, on one thread: every exponential is computed once, and a
//               row is written while the weights of the next one are computed
//   far_sweep:  any row, by folds that an executor spreads over its threads
// Level: lane.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>

#include "regroup/algorithms/softmax_row.hpp"
#include "regroup/host/dispatch.hpp"
#include "regroup/host/halves.hpp"
#include "regroup/host/lanes.hpp"
#include "regroup/memory.hpp"

namespace regroup {

namespace softmax_parts {

// As in host/lanes.hpp.
#if defined(__clang__)
#pragma clang attribute push([[gnu::always_inline]], apply_to = function)
#pragma clang attribute push([[gnu::flatten]], apply_to = function)
#endif

/// Writes y[i] = value(i) in order, L at a time. A value reads no output but, where y is the input, its own, so the loop
/// becomes packs. Then value.finish, if there is one, may set some of them.
template <class Y, class Value>
class writer {
 public:
  /// The outputs [first, last); `past_caches` where they are part of a large output.
  writer(Y* y, index first, index last, bool past_caches, const Value& value)
      : y_(y), next_(first), last_(last), value_(value) {
    if (!past_caches) return;
    const auto ragged = static_cast<index>(bytes_to_line(y + first) / sizeof(Y));
    if (ragged > 0 && ragged < last - first) put(ragged, false);
    past_caches_ = bytes_to_line(y + next_) == 0;
  }
  /// The next L outputs, if there are as many.
  void step() {
    if (next_ + lanes <= last_) put(lanes, past_caches_);
  }
  void finish() {
    while (next_ + lanes <= last_) put(lanes, past_caches_);
    if (next_ < last_) put(last_ - next_, false);
  }

 private:
  void put(index n, bool whole_lines) {
    alignas(cache_line) std::array<Y, lanes> values;
    Y* const to = whole_lines ? values.data() : y_ + next_;
    if constexpr (std::same_as<Y, float16>) {
      std::array<float, lanes> wide;
      asm("" : "=m"(wide));  // g++ 12 warns of elements past n, which nobody reads
      for (index j = 0; j < n; ++j) wide[static_cast<std::size_t>(j)] = value_(next_ + j);
      host::narrow_all(wide.data(), to, n);
    } else {
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
      for (index j = 0; j < n; ++j) to[j] = static_cast<Y>(value_(next_ + j));
    }
    if constexpr (requires { value_.finish(to, next_, n); }) value_.finish(to, next_, n);
    if (whole_lines) copy_lines_past_caches(y_ + next_, values.data(), sizeof(values));
    next_ += n;
  }
  Y* y_;
  index next_;
  index last_;
  Value value_;
  bool past_caches_ = false;
};

/// Sweeps rows of up to 65,536 elements side by side. Inlined into a dispatched function.
template <class X, std::floating_point Real>
class near_sweep {
  using row_state = typename log_sum_exp<Real>::state;

 public:
  near_sweep(index length, scaled<Real> seen)
      : seen_(seen),
        length_(length),
        scratch_(std::make_unique_for_overwrite<Real[]>(static_cast<std::size_t>((widens ? 4 : 2) * step()))) {}

  /// The states only: look(row, state).
  template <class In, class Look>
  void rows(const In& in, std::nullopt_t, index first, index last, bool, const Look& look) {
    for (index row = first; row < last; ++row) look(row, state(elements(in[row].first, 0), in[row].first, kept(0), [] {}));
  }
  template <class In, class Out, class Look>
  void rows(const In& in, const Out& out, index first, index last, bool past_caches, const Look& look) {
    using map = std::remove_cvref_t<std::invoke_result_t<const Look&, index, row_state>>;
    std::optional<writer<std::remove_pointer_t<decltype(out[0].first)>, output<map>>> before;  // writes the row before
    for (index row = first; first < last; ++row) {
      row_state now{};
      const element* x = nullptr;
      if (row < last) {
        x = elements(in[row].first, row);
        now = state(x, in[row].first, kept(row), [&] {
          if (before) before->step();
        });
      }
      if (before) before->finish();
      if (row == last) break;
      before.emplace(out[row].first, 0, length_, past_caches, output<map>{x, kept(row), look(row, now)});
    }
    if (past_caches) finish_past_caches();
  }

 private:
  static constexpr bool widens = std::same_as<X, float16>;  // a row before it is swept: its widening is dear
  using element = std::conditional_t<widens, Real, X>;      // what is swept
  static constexpr index most_tiles = longest_two_sweep_row / tile_elements;
  static constexpr index nearest_prefetch = 8192 / sizeof(X);  // elements ahead at least; longer rows fetch the next one

  template <class Map>
  struct output {
    const element* x;
    const Real* w;
    Map map;
    constexpr auto operator()(index i) const { return map(x[i], w[i]); }
    template <class Y>
    constexpr void finish(const Y& y, index first, index n) const {
      finish_row(map, y, first, n);
    }
  };
  struct load_seen {
    const element* x;
    scaled<Real> seen;
    constexpr Real operator()(index i) const { return seen(x[i]); }
  };
  /// Reads weights and keeps them; meanwhile memory brings later elements, and outputs of the row before are written.
  template <class Meanwhile>
  struct load_weights {
    const element* x;
    Real* kept;
    weight<Real> w;
    const X* later;
    const Meanwhile& other;
    Real operator()(index i) const { return kept[i] = w(x[i]); }
    template <class>
    void meanwhile(index i) const {
      host::prefetch<2>(later + i, lanes);
      other();
    }
  };

  /// The weights of a row, and the row if it is widened, beside those of the row before. None begins where another does in
  /// its page of 4 KiB: a load behind a store to the same place of another page waits for it.
  [[nodiscard]] Real* kept(index row) const { return scratch_.get() + row % 2 * step(); }
  [[nodiscard]] const element* elements(const X* x, index row) const {
    if constexpr (widens) {
      Real* const wide = scratch_.get() + (2 + row % 2) * step();
      host::widen_all(x, wide, length_);
      return wide;
    } else {
      return x;
    }
  }
  [[nodiscard]] index step() const {
    constexpr auto page = static_cast<index>(4096 / sizeof(Real));
    return (length_ + page - 1) / page * page + page / 3;
  }

  /// The state of the row x, of which `at` says where memory has it.
  template <class Meanwhile>
  row_state state(const element* x, const X* at, Real* weights, const Meanwhile& meanwhile) {
    if (length_ == 0) return log_sum_exp<Real>{}.identity();
    const X* const later = at + std::max(length_, nearest_prefetch);
    Real m = detail::peak<Real>{}.lower(fold(detail::peak<Real>{}, [&](index i) {
      return load_seen{x + i, seen_};
    }));
    if (!math::is_finite(m)) m = maximum_of(x, length_, seen_);
    const Real s = fold(plus<Real>{}, [&](index i) {
      return load_weights<Meanwhile>{x + i, weights + i, {seen_, m}, later + i, meanwhile};
    });
    return {m, plus<Real>{}.lower(s)};
  }
  /// The state of a row in the contract's order.
  template <class M, class LoadAt>
  Real fold(const M& m, const LoadAt& load_at) const {
    std::array<Real, most_tiles> leaves{};
    std::size_t count = 0;
    for (index i = 0; i < length_; i += tile_elements) {
      leaves[count++] = host::leaf(m, host::tile(load_at(i), std::min(tile_elements, length_ - i)));
    }
    return perfect(m, std::span(leaves.data(), count));
  }

  scaled<Real> seen_;
  index length_;
  std::unique_ptr<Real[]> scratch_;
};

#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute pop
#endif

/// Sweeps any row by folds of an executor.
template <executor Executor, std::floating_point Real>
class far_sweep {
 public:
  far_sweep(const Executor& ex, scaled<Real> seen, bool past_caches)
      : ex_(ex), seen_(seen), past_caches_(past_caches) {}

  template <class In, class Out, class Look>
  void row(const In& in, const Out& out, index row, const Look& look) const {
    const auto x = in[row];
    const auto state = state_of_row(x.size(), seen_, [&](const auto& m) { return fold(x, m); });
    if constexpr (std::same_as<Out, std::nullopt_t>) {
      look(row, state);
    } else {
      const auto map = look(row, state);
      write(x, out[row], [w = weight<Real>{seen_, state.m}, map](const auto& e) { return map(e, w(e)); });
      finish_row(map, out[row], 0, x.size());
    }
  }

 private:
  template <class X, class Y, class Map>
  void write(const strided<X>& x, const strided<Y>& y, const Map& map) const {
    ex_.for_each(tiles_of(x.count), static_cast<double>(tile_elements), [&](index t) {
      const index first = t * tile_elements;
      const index last = std::min(first + tile_elements, x.count);
      host::dispatch([&] {
        if (x.contiguous() != nullptr && y.contiguous() != nullptr) {
          writer(y.first, first, last, past_caches_, [&](index i) { return map(x.first[i]); }).finish();
        } else {
          for (index i = first; i < last; ++i) y[i] = static_cast<Y>(map(x[i]));
        }
      });
      if (past_caches_) finish_past_caches();
    });
  }
  template <class Row, class M>
  state_of<M> fold(const Row& row, const M& m) const {
    state_of<M> result = m.identity();
    ex_.fold(single{row}, m, [&](index, const state_of<M>& s) { result = s; });
    return result;
  }

  const Executor& ex_;
  scaled<Real> seen_;
  bool past_caches_;
};

}  // namespace softmax_parts
}  // namespace regroup
