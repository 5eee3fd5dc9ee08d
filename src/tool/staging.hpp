// SPDX-License-Identifier: Apache-2.0
// Converts arrays of any type, order and axes to the plain rows that a GPU is given, a block at a time, and back.
#pragma once

#include <algorithm>
#include <vector>

#include "gpu.hpp"
#include "numbers.hpp"
#include "typed.hpp"
#include "workers.hpp"

namespace regroup::tool {

/// Calls body(row, position, at, n) on all threads, for every run of n elements within a row among the elements
/// [first, first + count) in C order. `at` counts from `first`.
template <class Rows, class Body>
void each_run(const workers& ex, const Rows& rows, index first, index count, const Body& body) {
  constexpr index piece = index{1} << 16;
  ex.for_each((count + piece - 1) / piece, 2.0 * piece, [&](index number) {
    const index end = std::min((number + 1) * piece, count);
    for (index at = number * piece; at < end;) {
      const index row = (first + at) / rows.length(), position = (first + at) % rows.length();
      const index n = std::min(rows.length() - position, end - at);
      body(row, position, at, n);
      at += n;
    }
  });
}
template <class E, class Byte>
void take(const workers& ex, const number_rows<E, Byte>& from, index first, index count, E* to) {
  each_run(ex, from, first, count, [&](index row, index position, index at, index n) {
    const auto elements = from[row];
    for (index i = 0; i < n; ++i) to[at + i] = elements.get(position + i);
  });
}
template <class E, class Byte>
void put(const workers& ex, const E* from, const number_rows<E, Byte>& to, index first, index count) {
  each_run(ex, to, first, count, [&](index row, index position, index at, index n) {
    const auto places = to[row];
    for (index i = 0; i < n; ++i) places.set(position + i, from[at + i]);
  });
}

/// Calls body(elements, first, count) for all rows of `length` elements that `from` holds in C order, a block of rows at a
/// time, at least one row.
template <class E, class Byte, class Body>
void by_blocks(const workers& ex, const number_rows<E, Byte>& from, index rows, index length, const Body& body) {
  constexpr index block = index{1} << 26;
  const index at_once = std::clamp<index>(block / std::max<index>(length, 1), 1, std::max<index>(rows, 1));
  std::vector<E> elements(static_cast<std::size_t>(at_once * length));
  for (index first = 0; first < rows; first += at_once) {
    const index count = std::min(at_once, rows - first);
    take(ex, from, first * length, count * length, elements.data());
    body(elements.data(), first, count);
  }
}

/// A view in bytes with `axes` moved last and neighbouring axes joined where possible, as rows along the last axis.
template <class E, class Byte>
number_rows<E, Byte> joined(const view<Byte>& bytes, const extents& axes, element type) {
  auto one = coalesced(axes_last(bytes, axes));
  if (one.rank() == 0) one = {one.data(), {1}, {0}};
  return {one, type};
}

/// All elements of an input in C order, as X.
template <class X>
plain_array<X> plain(const workers& ex, const input& x) {
  plain_array<X> all{std::vector<X>(static_cast<std::size_t>(x.size())), x.shape()};
  if (x.size() > 0) take(ex, joined<X>(bytes_of(x), {}, x.type()), 0, x.size(), all.data.data());
  return all;
}

}  // namespace regroup::tool
