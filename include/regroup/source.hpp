// SPDX-License-Identifier: Apache-2.0
// What a fold reads: a *source* has `size()` and `operator[](position)`. Ranges, rows and index functions are sources; many of
// them are a batch (batch.hpp).
#pragma once

#include <algorithm>
#include <concepts>
#include <functional>
#include <iterator>
#include <ranges>
#include <string>
#include <type_traits>
#include <utility>

#include "regroup/error.hpp"
#include "regroup/monoid.hpp"
#include "regroup/view.hpp"

namespace regroup {

/// Elements at a fixed stride: the source of a row, a column or a contiguous range.
template <class T>
struct strided {
  T* first = nullptr;
  index count = 0;
  index stride = 1;

  [[nodiscard]] constexpr index size() const noexcept { return count; }
  constexpr T& operator[](index i) const noexcept { return first[i * stride]; }
  /// A pointer to the elements if they are contiguous, else nullptr.
  [[nodiscard]] constexpr T* contiguous() const noexcept { return stride == 1 || count <= 1 ? first : nullptr; }
};

/// All elements of a view in C order, whatever its strides: the source of several axes reduced together.
template <class T>
struct lattice {
  T* first = nullptr;
  const shape* extents = nullptr;  // kept by the batch
  const shape* strides = nullptr;
  index count = 0;

  [[nodiscard]] constexpr index size() const noexcept { return count; }
  constexpr T& operator[](index i) const noexcept { return first[offset_of(i, *extents, *strides)]; }
  /// Calls body(k, x, run, step) for the n >= 1 elements from position `from` on, run by run along the last axis: element k + i
  /// is x[i * step] for i < run. Only the first one's place is divided for.
  template <class Body>
  [[gnu::always_inline]] constexpr void each_run(index from, index n, const Body& body) const {
    const int last = extents->size() - 1;
    shape at = *extents;  // of the next run
    index offset = 0;
    for (int a = last; a >= 0; --a) {
      at[a] = a > 0 ? from % (*extents)[a] : from;
      from /= (*extents)[a];
      offset += at[a] * (*strides)[a];
    }
    const index step = (*strides)[last];
    for (index k = 0; k < n;) {
      const index run = std::min((*extents)[last] - at[last], n - k);
      body(k, first + offset, run, step);
      k += run;
      at[last] += run;
      offset += run * step;
      for (int a = last; a > 0 && at[a] == (*extents)[a]; --a) {
        offset += (*strides)[a - 1] - at[a] * (*strides)[a];
        at[a] = 0;
        ++at[a - 1];
      }
    }
  }
  /// Calls body(k, element k) for the n >= 1 elements from position `from` on.
  template <class Body>
  constexpr void visit(index from, index n, const Body& body) const {
    each_run(from, n, [&](index k, T* x, index run, index step) {
      if (step == 1) {
        for (index i = 0; i < run; ++i) body(k + i, x[i]);
      } else {
        for (index i = 0; i < run; ++i) body(k + i, x[i * step]);
      }
    });
  }
};

/// Whether a source of this library has a `visit`, faster than its elements one by one.
template <class Source>
inline constexpr bool has_visit = false;
template <class T>
inline constexpr bool has_visit<lattice<T>> = true;

// As in monoid.hpp.
#if defined(__clang__)
#pragma clang attribute push([[gnu::flatten]], apply_to = function)
#endif

/// The elements f(0), ..., f(count - 1), computed when they are read: `generate(n, [](index i) { return ...; })`.
/// `f` may be called more than once for a position and from any thread.
template <class F>
struct generate {
  index count;
  F f;
  generate(index n, F function) : count(n), f(std::move(function)) {
    if (n < 0) throw_argument("generate needs a count of 0 or more; got " + std::to_string(n));
  }
  [[nodiscard]] constexpr index size() const noexcept { return count; }
  constexpr decltype(auto) operator[](index i) const { return f(i); }
};

/// A random-access range as a source.
template <std::random_access_iterator I>
struct iterated {
  I first;
  index count = 0;
  [[nodiscard]] constexpr index size() const noexcept { return count; }
  constexpr decltype(auto) operator[](index i) const { return first[static_cast<std::iter_difference_t<I>>(i)]; }
};

/// A caller's object that stays where it is, since a copy for each piece would be too much, or take away what states refer to.
template <class T>
inline constexpr bool stays = !std::is_trivially_copyable_v<T> || sizeof(T) > 64;

/// A source that stays where it is.
template <class Source>
struct borrowed {
  const Source* source;
  [[nodiscard]] constexpr index size() const { return source->size(); }
  constexpr decltype(auto) operator[](index i) const { return (*source)[i]; }
  [[nodiscard]] constexpr auto contiguous() const noexcept
    requires requires { source->contiguous(); }
  {
    return source->contiguous();
  }
};

/// Whether a projection takes an element and its position in its range, row or segment.
template <class Projection, class X>
inline constexpr bool takes_position = !std::invocable<const Projection&, X> && std::invocable<const Projection&, X, index>;

/// A source seen through a projection: a member pointer or a function of an element, as in std::ranges, or of its position too.
/// Of an element that is made when it is read a member is copied, for that element does not last; a function of such elements
/// returns no reference into them.
template <class Source, class Projection>
struct projected {
  using element = decltype(std::declval<const Source&>()[index{}]);
  static constexpr bool is_numbered = takes_position<Projection, element>;
  static_assert(is_numbered || std::invocable<const Projection&, element>,
                "regroup: this projection takes neither these elements nor an element and its position");
  using result = typename std::conditional_t<is_numbered, std::invoke_result<const Projection&, element, index>,
                                             std::invoke_result<const Projection&, element>>::type;
  static constexpr bool is_of_temporary = !std::is_reference_v<element> && std::is_rvalue_reference_v<result>;
  Source source;
  Projection projection;
  using seen = std::conditional_t<is_of_temporary, std::remove_cvref_t<result>, result>;
  [[nodiscard]] constexpr index size() const noexcept { return source.size(); }
  constexpr seen operator[](index i) const { return of(source[i], i); }
  template <class Body>
  constexpr void visit(index first, index n, const Body& body) const {
    source.visit(first, n, [&](index k, auto&& x) { body(k, of(static_cast<element&&>(x), first + k)); });
  }

 private:
  constexpr seen of(element&& x, [[maybe_unused]] index i) const {
    if constexpr (is_numbered) {
      return std::invoke(projection, static_cast<element&&>(x), i);
    } else {
      return std::invoke(projection, static_cast<element&&>(x));
    }
  }
};

#if defined(__clang__)
#pragma clang attribute pop
#endif

template <class Source, class Projection>
inline constexpr bool has_visit<projected<Source, Projection>> = has_visit<Source>;

/// The positions [first, first + count) of a source.
template <class Source>
struct piece {
  Source source;
  index first = 0;
  index count = 0;
  [[nodiscard]] constexpr index size() const noexcept { return count; }
  constexpr decltype(auto) operator[](index i) const { return source[first + i]; }
  [[nodiscard]] constexpr auto contiguous() const noexcept
    requires requires { source.contiguous(); }
  {
    const auto data = source.contiguous();
    return data == nullptr ? data : data + first;
  }
};

/// An index function that can be told to begin elsewhere, as `enumerate` can.
template <class F>
concept numbering = requires(const F& f, index first) {
  { f.from(first) } -> std::same_as<std::remove_cv_t<F>>;
  f.values;
};

/// A source computed by a `numbering`.
template <class Source>
concept numbered = numbering<decltype(Source::f)>;

/// Elements [first, first + count) of a source. A numbered source stays a generated source, numbered from `first`; any other
/// is wrapped in a `piece`.
template <class Source>
constexpr auto piece_of(const Source& s, index first, index count) {
  if constexpr (numbered<Source>) {
    return generate(count, s.f.from(first));
  } else {
    return piece<Source>{s, first, count};
  }
}

/// What a fold reads, or refers to where it `stays`.
template <class S>
concept elements_by_position = requires(const S& s, index i) {
  { s.size() } -> std::same_as<index>;
  s[i];
};
template <class S>
concept source = std::copy_constructible<S> && elements_by_position<S>;

template <source Source>
using element_of = std::remove_cvref_t<decltype(std::declval<const Source&>()[index{}])>;

/// The type that is written to an output: its element type, or its member type `place` if writing converts.
template <source Out>
struct place_in {
  using type = element_of<Out>;
};
template <source Out>
  requires requires { typename Out::place; }
struct place_in<Out> {
  using type = typename Out::place;
};
template <source Out>
using place_of = typename place_in<Out>::type;

/// A pointer to the elements of a source if they are contiguous, else nullptr.
template <source Source>
constexpr auto contiguous(const Source& s) noexcept {
  if constexpr (requires { s.contiguous(); }) {
    return s.contiguous();
  } else {
    return static_cast<const element_of<Source>*>(nullptr);
  }
}

/// Where the elements from `first` on lie in memory, or nullptr.
template <source Source>
constexpr auto contiguous_from(const Source& s, index first) noexcept {
  if constexpr (requires { s.contiguous(); }) {
    const auto all = s.contiguous();
    return all == nullptr ? all : all + first;
  } else {
    return nullptr;
  }
}

/// Any range of rank 1 as a source: a contiguous range or a view of rank 1, a random-access range, or a source.
template <class R>
constexpr auto as_source(const R& range) {
  if constexpr (has_axes<R>) {
    const auto v = view(range);
    if (v.rank() != 1) {
      throw_shape("a sequence of elements needs a view of rank 1; got shape " + to_string(v.extents()));
    }
    return strided<typename decltype(v)::element_type>{v.data(), v.extent(0), v.stride(0)};
  } else if constexpr (std::ranges::contiguous_range<const R> && std::ranges::sized_range<const R>) {
    using element = std::remove_reference_t<std::ranges::range_reference_t<const R>>;
    return strided<element>{std::ranges::data(range), static_cast<index>(std::ranges::size(range)), 1};
  } else if constexpr (std::ranges::random_access_range<const R> && std::ranges::sized_range<const R>) {
    return iterated<std::ranges::iterator_t<const R>>{std::ranges::begin(range),
                                                      static_cast<index>(std::ranges::size(range))};
  } else {
    static_assert(elements_by_position<R>,
                  "regroup: elements come as a random-access range that knows its size and can be read where it is const, "
                  "a view, or anything with `size()` (std::int64_t) and `operator[](position)`");
    if constexpr (stays<R>) {
      return borrowed<R>{&range};
    } else {
      return range;
    }
  }
}

template <source Source, class Projection>
constexpr auto project(const Source& s, const Projection& projection) {
  if constexpr (std::same_as<Projection, std::identity>) {
    return s;
  } else {
    return projected<Source, Projection>{s, projection};
  }
}

}  // namespace regroup
