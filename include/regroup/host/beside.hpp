// SPDX-License-Identifier: Apache-2.0
// Rows copied to scratch memory and back: interleaved, as packs need them (`pack_rows`, `beside`), or one after another
// (`set_apart`). Level: lane.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "regroup/batch.hpp"
#include "regroup/host/transpose.hpp"
#include "regroup/memory.hpp"

namespace regroup::host {

/// Rows in a group: floats in the widest register.
inline constexpr index abreast = 16;

/// to[i * abreast + k] = element i of row k, for `abreast` rows; if there are fewer, the last one is repeated.
template <class X>
void pack_rows(const grid<const X>& g, X* to) {
  if (g.pitch == 1 && g.rows == abreast) {
    for (index i = 0; i < g.length; ++i) std::copy_n(g.first + i * g.stride, abreast, to + i * abreast);
    return;
  }
  if (g.stride == 1) {
    transpose(g.first, g.pitch, to, abreast, g.rows, g.length);
  } else {
    for (index i = 0; i < g.length; ++i) {
      for (index k = 0; k < g.rows; ++k) to[i * abreast + k] = g(i, k);
    }
  }
  if (g.rows == abreast) return;
  for (index i = 0; i < g.length; ++i) {
    X* const at = to + i * abreast;
    std::fill(at + g.rows, at + abreast, at[g.rows - 1]);
  }
}
/// And back.
template <class X>
void unpack_rows(const X* from, const grid<X>& g) {
  if (g.pitch == 1 && g.rows == abreast) {
    for (index i = 0; i < g.length; ++i) std::copy_n(from + i * abreast, abreast, g.first + i * g.stride);
  } else if (g.stride == 1) {
    transpose(from, abreast, g.first, g.pitch, g.length, g.rows);
  } else {
    for (index i = 0; i < g.length; ++i) {
      for (index k = 0; k < g.rows; ++k) g(i, k) = from[i * abreast + k];
    }
  }
}

/// Memory that grows; its elements are not initialised.
template <class X>
class scratch {
 public:
  X* of(index n) {
    if (n > size_) {
      values_ = std::make_unique_for_overwrite<X[]>(static_cast<std::size_t>(n));
      size_ = n;
    }
    return values_.get();
  }

 private:
  std::unique_ptr<X[]> values_;
  index size_ = 0;
};

/// The rows of a group, interleaved: in place if they already are, else copied.
template <class X>
grid<const X> beside(const grid<const X>& g, scratch<X>& room) {
  if (g.pitch == 1 && g.rows == abreast) return g;
  X* const copy = room.of(g.length * abreast);
  pack_rows(g, copy);
  return {copy, abreast, g.length, abreast, 1};
}

/// The distance between copied rows, in elements: an odd number of cache lines, so that no two of 64 rows begin at the same
/// offset in a page.
template <class X>
constexpr index step_apart(index length) {
  const index lines = (length * index{sizeof(X)} + index{cache_line} - 1) / index{cache_line};
  return (lines | 1) * index{cache_line} / index{sizeof(X)};
}
/// Calls body(i, k) for the elements of a grid, neighbours in memory one after another.
template <class X, class Body>
void each_element(const grid<X>& g, const Body& body) {
  if (std::abs(g.stride) > std::abs(g.pitch)) {
    for (index i = 0; i < g.length; ++i) {
      for (index k = 0; k < g.rows; ++k) body(i, k);
    }
  } else {
    for (index k = 0; k < g.rows; ++k) {
      for (index i = 0; i < g.length; ++i) body(i, k);
    }
  }
}
/// to[k * step + i] = element i of row k.
template <class X>
void set_apart(const grid<const X>& g, X* to, index step) {
  if (g.pitch == 1) return transpose(g.first, g.stride, to, step, g.length, g.rows);
  each_element(g, [&](index i, index k) { to[k * step + i] = g(i, k); });
}
/// And back.
template <class X>
void put_back(const X* from, index step, const grid<X>& g) {
  if (g.pitch != 1) return each_element(g, [&](index i, index k) { g(i, k) = from[k * step + i]; });
  if (g.rows == g.stride && g.rows <= abreast) return transpose(from, step, g.first, g.stride, g.rows, g.length);
  constexpr index some = 16;  // elements of all rows, so that the lines they share are written one after another
  for (index i = 0; i < g.length; i += some) {
    transpose(from + i, step, g.first + i * g.stride, g.stride, g.rows, std::min(some, g.length - i));
  }
}

}  // namespace regroup::host
