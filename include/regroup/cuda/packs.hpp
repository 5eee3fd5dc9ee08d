// SPDX-License-Identifier: Apache-2.0
// Elements side by side as aligned packs of 32 bytes, each lifted at once by the tile lift: what CUB's reductions iterate
// over, since of 16-bit elements they would load two to four bytes at a time, and combine each. The first and the last pack
// may be ragged. Law: the tile lift is the fold of its elements, within the bound. Level: thread.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <type_traits>

#include "regroup/executor.hpp"

namespace regroup::cuda {

/// 32 bytes, loaded by two instructions. (Packs of 16, with twice as many combines, ran log_sum_exp of floats at 0.89 of the
/// speed on an H100.)
struct alignas(32) [[gnu::may_alias]] pack {
  std::uint32_t words[8];
};

/// The tile that `lift_tile` receives for a pack: `at(i)` for i < count, folded from left to right.
template <class At, class Count>
struct pack_tile {
  At at;
  Count count;
  [[nodiscard]] constexpr index size() const { return count; }
  constexpr auto operator[](index i) const { return regroup::widen(at(i)); }
  template <class M, class Map = std::identity>
  constexpr state_of<M> fold(const M& m, const Map& map = {}) const {
    state_of<M> s = regroup::lift(m, map(regroup::widen(at(0))));
    for (index i = 1; i < count; ++i) s = m(s, regroup::lift(m, map(regroup::widen(at(i)))));
    return s;
  }
};
template <class At, class Count>
pack_tile(At, Count) -> pack_tile<At, Count>;

/// Pack number -> state, for `transform_reduce` over 0, ..., packs() - 1.
template <class M, class X>
class lift_packs {
 public:
  static constexpr index width = index{sizeof(pack)} / index{sizeof(X)};
  lift_packs(const M& m, const X* first, index size)
      : m_(m), first_(first), size_(size), before_(misplaced(first) / index{sizeof(X)}) {}

  [[nodiscard]] index packs() const { return size_ == 0 ? 0 : (before_ + size_ + width - 1) / width; }
  constexpr state_of<M> operator()(index number) const {
    const index begin = number * width - before_;
    if (begin >= 0 && begin + width <= size_) {
      using array = std::array<X, static_cast<std::size_t>(width)>;
      const auto elements = std::bit_cast<array>(*reinterpret_cast<const pack*>(first_ + begin));
      return m_.lift_tile(pack_tile{[&elements](index i) { return elements[static_cast<std::size_t>(i)]; },
                                    std::integral_constant<index, width>{}});
    }
    return ragged(begin);
  }

 private:
  /// The elements present in the first pack or the last. A call, since CUB unrolls over a thread's packs.
  [[gnu::noinline]] constexpr state_of<M> ragged(index begin) const {
    const X* const from = first_ + (begin < 0 ? 0 : begin);
    const X* const end = first_ + (begin + width < size_ ? begin + width : size_);
    return m_.lift_tile(pack_tile{[from](index i) { return from[i]; }, index{end - from}});
  }
  static index misplaced(const X* first) {
    return static_cast<index>(reinterpret_cast<std::uintptr_t>(first) % sizeof(pack));
  }
  M m_;
  const X* first_;
  index size_;
  index before_;  // places of the first pack that are ahead of `first`
};

namespace probe {
struct element {
  constexpr float operator()(index) const { return 0; }
};
}  // namespace probe
/// Whether elements are read in packs: floats of 2 or 4 bytes without a projection, for a monoid that lifts tiles.
template <class M, class X, class Projection>
inline constexpr bool come_in_packs = std::same_as<Projection, std::identity> &&
                                      (std::same_as<X, float> || std::same_as<X, float16> ||
                                       std::same_as<X, bfloat16>) &&
                                      has_lift_tile<M, pack_tile<probe::element, index>>;

}  // namespace regroup::cuda
