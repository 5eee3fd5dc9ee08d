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

/// to(i, k) = from(i, k). Rows, or one element of all rows, that lie beside each other are copied together, or transposed.
template <class X>
void copy(const grid<const X>& from, const grid<X>& to) {
  const grid<const X> far = from.stride == 1 ? grid<const X>(to) : from;
  if (from.pitch == 1 && to.pitch == 1) {
    for (index i = 0; i < to.length; ++i) std::copy_n(from.first + i * from.stride, to.rows, to.first + i * to.stride);
  } else if (from.pitch == 1 && to.stride == 1) {
    host::transpose(from.first, from.stride, to.first, to.pitch, to.length, to.rows);
  } else if (from.stride == 1 && to.pitch == 1) {
    // Some elements of all rows, so that the lines they share are written one after another.
    const index some = to.stride <= abreast ? std::max<index>(to.length, 1) : 16;
    for (index i = 0; i < to.length; i += some) {
      host::transpose(from.first + i, from.pitch, to.first + i * to.stride, to.stride, to.rows, std::min(some, to.length - i));
    }
  } else if (std::abs(far.stride) > std::abs(far.pitch)) {  // neighbours in memory one after another
    for (index i = 0; i < to.length; ++i) {
      for (index k = 0; k < to.rows; ++k) to(i, k) = from(i, k);
    }
  } else {
    for (index k = 0; k < to.rows; ++k) {
      for (index i = 0; i < to.length; ++i) to(i, k) = from(i, k);
    }
  }
}

/// Up to `abreast` rows, interleaved at `first`.
template <class X>
grid<X> packed(X* first, index rows, index length) {
  return {first, rows, length, abreast, 1};
}
/// Interleaves rows; if there are fewer than `abreast`, the last one is repeated.
template <class X>
void pack_rows(const grid<const X>& g, X* to) {
  host::copy(g, host::packed(to, g.rows, g.length));
  for (index i = 0; abreast > g.rows && i < g.length; ++i) {
    X* const at = to + i * abreast;
    std::fill(at + g.rows, at + abreast, at[g.rows - 1]);
  }
}
/// And back.
template <class X>
void unpack_rows(const X* from, const grid<X>& g) {
  host::copy(host::packed(from, g.rows, g.length), g);
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
  X* const to = room.of(g.length * abreast);
  host::pack_rows(g, to);
  return host::packed<const X>(to, abreast, g.length);
}

/// The distance between copied rows, in elements: an odd number of cache lines, so that no two of 64 rows begin at the same
/// offset in a page.
template <class X>
constexpr index step_apart(index length) {
  const index lines = (length * index{sizeof(X)} + index{cache_line} - 1) / index{cache_line};
  return (lines | 1) * index{cache_line} / index{sizeof(X)};
}
/// to[k * step + i] = element i of row k.
template <class X>
void set_apart(const grid<const X>& g, X* to, index step) {
  host::copy(g, grid<X>{to, g.rows, g.length, 1, step});
}
/// And back.
template <class X>
void put_back(const X* from, index step, const grid<X>& g) {
  host::copy(grid<const X>{from, g.rows, g.length, 1, step}, g);
}

}  // namespace regroup::host
