// SPDX-License-Identifier: Apache-2.0
// Rows of softmax as kernels: a row folds to (M, s) by the program that a CPU runs (algorithms/softmax_row.hpp). One thread
// calls look(row, state), and the map that it returns is broadcast to all of the row's threads (those that hold strips make
// it themselves if it depends only on the state). They write y = map(x, weight of x), unless `out` is null. A row of at most
// two tiles stays in its team's registers: one read and one write of memory. y may be exactly x: no thread writes before the
// row has been folded, or where another has yet to read.
// Level: lane to device.
#pragma once

#include <concepts>
#include <functional>
#include <type_traits>

#include "regroup/algorithms/softmax_row.hpp"
#include "regroup/cuda/fold_kernel.hpp"
#include "regroup/cuda/strips.hpp"

namespace regroup::cuda {

using softmax_parts::over;
using softmax_parts::scaled;
using softmax_parts::weight;

/// What is known of a row once it has been folded; trivially copyable, so that one thread can broadcast it.
template <std::floating_point Real, class Map>
struct row_map {
  weight<Real> weigh;
  Map map;
};
template <class Look, std::floating_point Real>
using map_of = row_map<Real, std::invoke_result_t<const Look&, index, typename log_sum_exp<Real>::state>>;

/// The fold of a row, in every thread of the team, by a monoid that gives the same bits in any order and with elements
/// repeated. That freedom keeps many loads in flight.
template <int Loads, class M, class Team, class Source>
constexpr state_of<M> extreme_of(const M& m, Team& of, const Source& x) {
  constexpr index step = Team::threads;
  const index n = x.size();
  slots<state_of<M>, Team::own_lanes> lane;  // one of them: a thread's own
  lane[0].value = m.identity();
  for (index i = of.rank(); i < n; i += Loads * step) {
    slots<element_of<Source>, Loads> e;
    unrolled<Loads>([&](int k) { e[k].value = x[smaller(i + k * step, n - 1)]; });
    unrolled<Loads>([&](int k) { lane[0].value = m(lane[0].value, regroup::lift(m, e[k].value)); });
  }
  return of.broadcast(of.halve(m, lane, static_cast<int>(smaller(n, step))));
}

/// A short row in registers, folded by two_sweeps. If the map needs the weights, they overwrite the elements as they are
/// summed, so each exponential is computed once.
template <bool KeepsWeights, std::floating_point Real, class Held, class Source>
struct held_row {
  Held& held;
  const Source& x;

  template <class M, class Map>
  constexpr state_of<M> operator()(const over<M, Map>& m) const {
    return held.fold(m.m, m.map);
  }
  constexpr Real operator()(const over<maximum<Real>, scaled<Real>>& m) const {  // rare: read again
    return extreme_of<1>(m.m, held.of(), regroup::project(x, m.map));
  }
  constexpr Real operator()(const over<plus<Real>, weight<Real>>& m) const
    requires KeepsWeights
  {
    held.replace(m.map);
    return held.fold(m.m, std::identity{});
  }
};
/// The same for a row in strips; its elements are already scaled.
template <bool KeepsWeights, std::floating_point Real, class Team>
struct row_in_strips {
  Team& of;
  held_strip<Team::warps, Real>& held;

  template <class M>
  constexpr Real operator()(const over<M, scaled<Real>>& m) const {  // peak and maximum
    Real s = m.m.identity();
    held.each([&](int k, int c) { s = m.m(s, held.element(k, c)); });
    return of.extreme(m.m, s);
  }
  constexpr Real operator()(const over<plus<Real>, weight<Real>>& m) const {
    const auto weigh = [&m](Real x) { return math::decay(x - m.map.m); };
    if constexpr (KeepsWeights) {
      held.each([&](int k, int c) { held.element(k, c) = weigh(held.element(k, c)); });
      return of.fold(m.m, held, std::identity{});
    } else {
      return of.fold(m.m, held, weigh);
    }
  }
};
/// A row of up to 32 tiles, read once a fold.
template <std::floating_point Real, class Team, class Source>
struct row_of_tiles {
  Team& of;
  const Source& x;

  template <class M>
  constexpr Real operator()(const over<M, scaled<Real>>& m) const {  // peak and maximum
    return extreme_of<16>(m.m, of, regroup::project(x, m.map));
  }
  constexpr Real operator()(const over<plus<Real>, weight<Real>>& m) const {
    return of.broadcast(range_of(m.m, of, regroup::project(x, m.map), 0, x.size()));
  }
};

/// y[first + i] = value(k) for this thread's elements, i its k-th; then the map's own word for single places.
template <class Held, class Y, class Map, class Value>
constexpr void write_tile(const Held& held, const Y& y, index first, const Map& map, const Value& value) {
  using place = element_of<Y>;
  using team = std::remove_cvref_t<decltype(held.of())>;
  const index own = first + held.of().rank();
  if (auto* const side_by_side = y.contiguous(); side_by_side != nullptr) {  // then addresses are a constant apart
    held.each([&](int k) { side_by_side[own + team::threads * k] = static_cast<place>(value(k)); });
  } else {
    unrolled<team::held>([&](int k) {  // with no code of its own for a whole tile
      if (k < held.steps()) y[own + team::threads * k] = static_cast<place>(value(k));
    });
  }
  if constexpr (requires { map.finish(y); }) {  // by whoever wrote that place
    const index i = map.target - first;
    if (i >= 0 && i < held.size() && i % team::threads == held.of().rank()) map.finish(y);
  }
}

/// A tile of a row that is read once more.
template <std::floating_point Real, class Map, class Team, class X, class Y>
constexpr void map_tile(Team& of, const row_map<Real, Map>& told, const X& x, const Y& y, index first) {
  const held_tile held(of, x, first, static_cast<int>(smaller(x.size() - first, tile_elements)));
  write_tile(held, y, first, told.map, [&](int k) {
    const Real e = held.held(k);
    return told.map(e, told.weigh(e));
  });
}

/// f() of the team's first thread, in every thread of the team.
template <class Team, class F>
constexpr auto told_by_first(Team& of, const F& f) {
  slot<std::invoke_result_t<const F&>> x;
  if (of.rank() == 0) x.value = f();
  return of.broadcast(x).value;
}

/// Blocks a multiprocessor is to hold: of so many threads, each with its part of a strip.
template <std::floating_point Real>
constexpr int strip_blocks(int threads) {
  return (sizeof(Real) > 4 ? 384 : 768) / threads;
}
/// The same with a tile in registers; a tile of doubles, and its weights, need 170 of a thread's.
template <std::floating_point Real>
inline constexpr int row_blocks =
    sizeof(Real) > 4 ? 2 : resident_blocks_for(32 * sizeof(Real), sizeof(typename log_sum_exp<Real>::state));

/// Elements of the shortest rows, which four threads hold, a warp reading neighbours of eight rows together.
inline constexpr int short_row_threads = 4;
inline constexpr int short_row_held = 8;
inline constexpr index short_row_elements = short_row_threads * short_row_held;

/// One row of at most 32 elements, by four threads.
template <std::floating_point Real, class Team, class In, class Out, class Look>
constexpr void map_short(Team& of, const In& rows, const Out& out, scaled<Real> seen, const Look& look, index row) {
  const auto x = rows[row];
  using source = std::remove_const_t<decltype(x)>;
  using tile = held_tile<Team, source>;
  tile held(of, x, 0, static_cast<int>(x.size()));
  using map = decltype(map_of<Look, Real>::map);
  const auto state = softmax_parts::two_sweeps(seen, held_row<map::reads_weight, Real, tile, source>{held, x});
  const map told = told_by_first(of, [&] { return look(row, state); });
  if (out.first == nullptr) return;
  write_tile(held, out[row], 0, told, [&](int k) { return told(held.held(k), held.held(k)); });
}
/// Rows of at most 32 elements.
template <std::floating_point Real, class In, class Out, class Look>
struct map_short_rows {
  static constexpr int resident_blocks = row_blocks<Real>;
  In rows;
  Out out;
  scaled<Real> seen;
  Look look;

  template <block Block>
  constexpr void operator()(Block& b) const {
    each_row<short_row_threads, short_row_held>(b, rows,
                                                [&](auto& of, index row) { map_short(of, rows, out, seen, look, row); });
  }
};

/// Calls look(row, state) in one thread of a strip_team or clustered_strips and returns its map in every thread: broadcast,
/// or made in each thread if the state determines it.
template <class Team, class Look, class State>
constexpr auto looked(Team& of, const Look& look, index row, const State& state) {
  if constexpr (requires { look.map(state); }) {
    if (of.leads()) look(row, state);
    return look.map(state);
  } else {
    return of.told_by_first([&] { return look(row, state); });
  }
}

/// One row, by a strip_team or clustered_strips: one read and one write of memory.
template <std::floating_point Real, class Team, class In, class Out, class Look>
constexpr void map_strips(Team& of, const In& rows, const Out& out, scaled<Real> seen, const Look& look, index row) {
  held_strip<Team::warps, Real> held(of.block(), rows[row], of.first(), seen);
  using map = decltype(map_of<Look, Real>::map);
  const auto state = softmax_parts::two_sweeps(seen, row_in_strips<map::reads_weight, Real, Team>{of, held});
  map told = looked(of, look, row, state);
  if constexpr (requires { told.seen; }) told.seen = {1};  // as they are held
  if (out.first == nullptr) return;
  const auto y = out[row];
  held.write(of.block(), y, of.first(), [&told](Real e) { return told(e, e); });
  if constexpr (requires { told.finish(y); }) {  // by whoever wrote that place
    if (held.has_written(y, told.target - of.first())) told.finish(y);
  }
}

/// Rows of at most so many strips, a warp each, or a block.
template <int Strips, std::floating_point Real, class In, class Out, class Look>
struct map_held_rows {
  static constexpr int threads = warps_for<Strips> * warp_threads;
  static constexpr int resident_blocks = strip_blocks<Real>(threads);
  In rows;
  Out out;
  scaled<Real> seen;
  Look look;

  template <block Block>
  constexpr void operator()(Block& b) const {
    constexpr int teams = threads / (Strips * warp_threads);
    strip_team<Strips, Block> of(b);
    for (index row = b.block() * teams + b.thread() / (Strips * warp_threads); row < rows.size(); row += b.blocks() * teams) {
      map_strips(of, rows, out, seen, look, row);
    }
  }
};

/// One row of up to 16 tiles, by a block: read for the maximum, for the sum, and to be mapped.
template <std::floating_point Real, class Team, class In, class Out, class Look>
constexpr void map_tiles(Team& of, const In& rows, const Out& out, scaled<Real> seen, const Look& look, index row) {
  const auto x = rows[row];
  using source = std::remove_const_t<decltype(x)>;
  const auto state = softmax_parts::two_sweeps(seen, row_of_tiles<Real, Team, source>{of, x});
  const map_of<Look, Real> told = told_by_first(of, [&] {
    return map_of<Look, Real>{{seen, state.m}, look(row, state)};
  });
  if (out.first == nullptr) return;
  for (index first = 0; first < x.size(); first += tile_elements) map_tile(of, told, x, out[row], first);
}
/// Rows of up to 16 tiles, a block each.
template <std::floating_point Real, class In, class Out, class Look>
struct map_rows_of_tiles {
  static constexpr int resident_blocks = row_blocks<Real>;
  In rows;
  Out out;
  scaled<Real> seen;
  Look look;

  template <block Block>
  constexpr void operator()(Block& b) const {
    each_row<block_threads>(b, rows, [&](auto& of, index row) { map_tiles(of, rows, out, seen, look, row); });
  }
};

/// Where the fold of a longer row ends: its map, for the kernel after it.
template <std::floating_point Real, class Look>
struct put_map {
  scaled<Real> seen;
  Look look;
  map_of<Look, Real>* maps;
  constexpr void operator()(index row, const typename log_sum_exp<Real>::state& s) const {
    maps[row] = {{seen, s.m}, look(row, s)};
  }
};
/// Longer rows, folded before: a block each tile.
template <std::floating_point Real, class In, class Out, class Look>
struct map_split_rows {
  static constexpr int resident_blocks = row_blocks<Real>;
  In rows;
  Out out;
  const map_of<Look, Real>* maps;

  template <block Block>
  constexpr void operator()(Block& b) const {
    each_node(b, rows, tile_elements, 0, [&](auto& of, index row, index position) {
      map_tile(of, maps[row], rows[row], out[row], position * tile_elements);
    });
  }
};

}  // namespace regroup::cuda
