// SPDX-License-Identifier: Apache-2.0
// Short stretches of any lengths across a vector, as segments have them: in the order of their lengths, so that those of a
// group are about as long; stretch k of it in lane k of a pack. Where one has ended its lane keeps what it has, so that every
// stretch has the contract's tree, hence its bits. Level: lane. Law: as host/lanes.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <numeric>
#include <tuple>
#include <type_traits>
#include <utility>

#include "regroup/executor.hpp"
#include "regroup/host/lanes.hpp"
#include "regroup/host/matrix_columns.hpp"
#include "regroup/host/transpose.hpp"

namespace regroup::host {

/// Whether lanes of a monoid's states, and of each member's, are packs.
template <class M>
constexpr bool has_packs() {
  if constexpr (has_members<M>) {
    return []<class... Member>(std::type_identity<std::tuple<Member...>>) {
      return (has_packs<Member>() && ...);
    }(std::type_identity<std::remove_cvref_t<decltype(std::declval<const M&>().members())>>{});
  } else {
    return has_scalars<state_of<M>>;
  }
}
/// Whether elements may go abreast: they are small and can be copied as bytes, lanes are packs, and the lanes of a group's tile
/// fit on the stack.
template <class M, class X>
constexpr bool goes_in_packs() {
  return is_plain<state_of<M>, X> && is_movable<X> && sizeof(X) <= 32 && sizeof(state_of<M>) <= 32 && has_packs<M>();
}
/// Whether a monoid, and each member of it, folds element by element; a `lift_tile` needs the elements of one row.
template <class M, class X>
constexpr bool folds_elements() {
  if constexpr (has_members<M>) {
    return []<class... Member>(std::type_identity<std::tuple<Member...>>) {
      return (folds_elements<Member, X>() && ...);
    }(std::type_identity<std::remove_cvref_t<decltype(std::declval<const M&>().members())>>{});
  } else {
    return !has_lift_tile<M, tile<load_from<X>>>;
  }
}

/// Whether stretches of elements may go in groups: those of `longest_ragged` elements and their lanes fit on any stack, 64 KiB
/// and the 16 in which small elements wait to be turned; and every scalar in a lane is one that packs have.
template <class M, class X>
constexpr bool goes_ragged() {
  if constexpr (goes_in_packs<M, X>() && folds_elements<M, X>()) {
    using state = state_of<M>;
    constexpr std::size_t lane = std::max(sizeof(state), sizeof(pack<state>) / abreast);
    if constexpr (has_scalars<state>) return sizeof(X) + lane <= 32 && widest_scalar<state> <= 8;
    return sizeof(X) + lane <= 32;
  }
  return false;
}

/// The longest stretch that goes with others.
inline constexpr index longest_ragged = lanes;
/// Whether a group of `count` stretches is worth its steps, as many as the longest has elements: alone, each takes one for
/// every `abreast` elements, and some to halve what is left.
constexpr bool go_together(index count, index longest, index elements) {
  return count > 1 && longest <= elements / abreast + 2 * count;
}

// As in host/lanes.hpp.
#if defined(__clang__)
#pragma clang attribute push([[gnu::always_inline]], apply_to = function)
#pragma clang attribute push([[gnu::flatten]], apply_to = function)
#elif defined(__GNUC__)
#pragma GCC diagnostic push  // as in host/columns.hpp
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

/// Stretches by their lengths: those longer than `longest_ragged`, then the others, the longest first. Without a branch that
/// depends on them: a wrong guess costs as much as to fold some elements.
class by_length {
 public:
  template <class X>
  constexpr by_length(const stretch<X>* from, index n) {
    const auto longer = [&](index k) { return std::max(longest_ragged + 1 - from[k].size, index{0}); };
    for (index k = 0; k < n; ++k) ++first_[at(longer(k) + 1)];
    const auto sum = [](std::uint8_t a, std::uint8_t b) { return static_cast<std::uint8_t>(a + b); };
    std::partial_sum(first_.begin(), first_.end(), first_.begin(), sum);
    auto next = first_;
    for (index k = 0; k < n; ++k) place_[at(next[at(longer(k))]++)] = static_cast<std::uint8_t>(k);
  }
  /// The first of those that have at most `size` elements.
  [[nodiscard]] constexpr index first_of(index size) const { return first_[at(longest_ragged + 1 - size)]; }
  [[nodiscard]] constexpr index operator[](index i) const { return place_[at(i)]; }

 private:
  static constexpr std::size_t at(index i) { return static_cast<std::size_t>(i); }
  std::array<std::uint8_t, longest_ragged + 3> first_{};
  std::array<std::uint8_t, lanes> place_;
};

/// The states of a group of stretches of sizes[k] elements, at most `longest` of them: element i of stretch k is at(i, k), and
/// beyond its end some element of a stretch.
template <class M, class Sizes, class At>
constexpr void ragged_leaf(const M& m, const Sizes& sizes, index longest, const At& at, pack<state_of<M>>& out) {
  if constexpr (has_members<M>) {  // each member by its own rule
    host::with_members(m, [&](const auto&... member) {
      std::tuple<pack<state_of<std::remove_cvref_t<decltype(member)>>>...> parts;
      [&]<std::size_t... K>(std::index_sequence<K...>) {
        (host::ragged_leaf(member, sizes, longest, at, std::get<K>(parts)), ...);
        for (index k = 0; k < abreast; ++k) out.set(k, m.from_parts(std::get<K>(parts).get(k)...));
      }(std::index_sequence_for<decltype(member)...>{});
    });
  } else {
    using state = state_of<M>;
    using length = word_of_bytes<widest_scalar<state>>;  // as wide as lanes are
    static_assert(longest_ragged <= std::numeric_limits<length>::max());
    alignas(64) std::array<length, abreast> size;
    std::ranges::transform(sizes, size.begin(), [](index some) { return static_cast<length>(some); });
    const auto has = [&](index k, length i) { return i < size[static_cast<std::size_t>(k)]; };
    // (g++ would unroll so short a loop, and then make no packs of it.)
    const auto each = [](const auto& body) {
#if !defined(__clang__) && !defined(__CUDACC__)  // which would warn
#pragma GCC ivdep
#pragma GCC unroll 1
#endif
      for (index k = 0; k < abreast; ++k) body(k);
    };
    const auto lift = [&, none = m.identity()](pack<state>& to, index i) {
      each([&](index k) {
        to.set(k, none);
        to.set_if(has(k, static_cast<length>(i)), k, regroup::lift(m, at(i, k)));
      });
    };
    // Element i is the first in b. Where a stretch has it, its lane becomes what was made. (Apart from the combine, for which a
    // choice beside it would be a branch.)
    pack<state> made;
    const auto combine = [&](pack<state>& a, const pack<state>& b, index i) {
      each([&](index k) { made.set(k, m(a.get(k), b.get(k))); });
      each([&](index k) { a.set_if(has(k, static_cast<length>(i)), k, made.get(k)); });
    };
    if constexpr (is_commutative<M>) {
      std::array<pack<state>, longest_ragged> lane;
      const auto nth = [&](index j) -> pack<state>& { return lane[static_cast<std::size_t>(j)]; };
      for (index j = 0; j < longest; ++j) lift(nth(j), j);
      for (index count = longest; count > 1;) {
        const index half = static_cast<index>(std::bit_ceil(static_cast<std::uint64_t>(count))) / 2;
        for (index j = 0; j + half < count; ++j) combine(nth(j), nth(j + half), j + half);
        count = half;
      }
      out = nth(0);
    } else {
      std::array<pack<state>, longest_ragged / piece_elements> piece;
      const auto nth = [&](index j) -> pack<state>& { return piece[static_cast<std::size_t>(j)]; };
      pack<state> next;
      for (index j = 0; j * piece_elements < longest; ++j) {
        const index first = j * piece_elements;
        lift(nth(j), first);
        for (index i = first + 1; i < std::min(first + piece_elements, longest); ++i) {
          lift(next, i);
          combine(nth(j), next, i);
        }
      }
      for (index h = 1; h * piece_elements < longest; h *= 2) {  // perfect(pieces)
        for (index j = 0; (j + h) * piece_elements < longest; j += 2 * h) combine(nth(j), nth(j + h), (j + h) * piece_elements);
      }
      out = nth(0);
    }
  }
}

/// fold_leaves of stretches that are read as they lie.
template <class M, class X>
void fold_ragged(const M& m, const stretch<X>* from, index n, columns<state_of<M>>& leaves) {
  dispatch([&] {
    const by_length order(from, n);
    std::array<X, longest_ragged * abreast> x;
    constexpr bool are_turned = sizeof(X) <= 8;
    std::array<X, are_turned ? longest_ragged * abreast : 0> rows;
    const auto row = [&](index k) { return rows.data() + k * longest_ragged; };
    const auto at = [&](index i, index k) { return regroup::widen(x[static_cast<std::size_t>(i * abreast + k)]); };
    // Of what is folded later, where all lie one after another.
    auto next = reinterpret_cast<std::uintptr_t>(from[n - 1].first + from[n - 1].size);
    const index empty = order.first_of(0);
    if constexpr (!has_scalars<state_of<M>>) {  // such lanes are first set in order
      for (index k = 0; k < n; ++k) leaves.set(k, m.identity());
    }
    index filled = 0;  // elements of every row
    for (index i = 0; i < empty;) {
      const index count = std::min(abreast, empty - i), longest = from[order[i]].size;
      std::array<index, abreast> sizes{};
      for (index k = 0; k < count; ++k) sizes[static_cast<std::size_t>(k)] = from[order[i + k]].size;
      const index elements = std::accumulate(sizes.begin(), sizes.end(), index{0});
      if (longest > longest_ragged || !go_together(count, longest, elements)) {
        const auto& [first, size] = from[order[i]];
        leaves.set(order[i++], host::leaf(m, tile(load_from<X>{first}, size)));
        continue;
      }
      if constexpr (are_turned) {
        for (index k = 0; k < abreast && filled < longest; ++k) std::fill_n(row(k), longest, from[order[i]].first[0]);
        filled = std::max(filled, longest);
        for (index k = 0; k < count; ++k) {
          const auto& [first, size] = from[order[i + k]];
          std::copy_n(first, size, row(k));
        }
        host::transpose(row(0), longest_ragged, x.data(), abreast, abreast, longest);
      } else {
        for (index k = 0; k < abreast; ++k) {  // the last stretch more than once, as if it were empty
          const X* const begin = from[order[i + std::min(k, count - 1)]].first;
          const index size = sizes[static_cast<std::size_t>(k)];
          X* const to = x.data() + k;
          for (index e = 0; e < size; ++e) to[e * abreast] = begin[e];
          for (index e = size; e < longest; ++e) to[e * abreast] = begin[0];
        }
      }
      const std::size_t bytes = static_cast<std::size_t>(elements) * sizeof(X);
      regroup::fetch_lines<1>(reinterpret_cast<const void*>(next), bytes);
      next += bytes;
      pack<state_of<M>> states;
      ragged_leaf(m, sizes, longest, at, states);
      for (index k = 0; k < count; ++k) leaves.set(order[i++], states.get(k));
    }
    for (index i = empty; i < n; ++i) leaves.set(order[i], m.identity());
  });
}

#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute pop
#elif defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

}  // namespace regroup::host
