// SPDX-License-Identifier: Apache-2.0
// What the verbs require of their outputs, on a host and on a device: a place for each result, in memory of their own.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <numeric>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "regroup/error.hpp"
#include "regroup/source.hpp"
#include "regroup/view.hpp"

namespace regroup {

/// The first and one past the last element that a view reaches in memory, in bytes.
template <class T>
std::pair<const std::byte*, const std::byte*> memory_of(const view<T>& v) {
  const auto* const first = reinterpret_cast<const std::byte*>(v.data());
  if (v.size() == 0) return {first, first};
  index low = 0;
  index high = 1;
  for (int a = 0; a < v.rank(); ++a) {
    const index reach = (v.extent(a) - 1) * v.stride(a);
    (reach < 0 ? low : high) += reach;
  }
  constexpr auto bytes = static_cast<index>(sizeof(T));
  return {first + low * bytes, first + high * bytes};
}

/// A view of where results go.
template <class Out>
auto writable(Out&& out) {
  static_assert(requires { view(out); },
                "regroup: results go to a view, a span or a contiguous container (no std::vector<bool>)");
  static_assert(!std::ranges::range<Out> || std::ranges::borrowed_range<Out>,
                "regroup: results would go to a temporary container, and be gone with it: give it a name");
  const auto v = view(out);
  static_assert(!std::is_const_v<typename decltype(v)::element_type>, "regroup: results are written, and this place is const");
  return v;
}

/// A compile error that says in one sentence why a place cannot hold answers.
template <class Place, class Answer>
constexpr void require_place_for() {
  static_assert(requires(Answer answer) { static_cast<Place>(static_cast<Answer&&>(answer)); },
                "regroup: the output's places cannot hold the answers, which have the type answer_of<monoid>");
  static_assert(!std::is_floating_point_v<std::remove_cvref_t<Answer>> || !std::is_integral_v<Place>,
                "regroup: these answers would be cut to integers, which the output holds: let it hold floating-point numbers, "
                "or give the monoid a `lower` that rounds");
  static_assert(!std::is_integral_v<std::remove_cvref_t<Answer>> || !std::is_integral_v<Place> || std::is_same_v<Place, bool> ||
                    sizeof(Answer) <= sizeof(Place),
                "regroup: these answers would be cut to narrower integers, which the output holds: let it hold the type "
                "answer_of<monoid>, or give the monoid a `lower` that fits");
}

namespace detail {

/// Sums of steps along some axes, of each from `least` to `most` steps of one length.
class step_sums {
 public:
  struct axis {
    index length, least, most;
  };
  void add(index length, index least, index most) {
    if (length < 0) {
      add(-length, -most, -least);
    } else if (const auto same = std::ranges::find(axes(), length, &axis::length); same != axes().end()) {
      same->least += least;
      same->most += most;
    } else if (length > 0) {
      room_[count_++] = {length, least, most};
    }
  }
  void put_longest_first() { std::ranges::sort(axes(), std::greater{}, &axis::length); }
  [[nodiscard]] std::span<axis> axes() noexcept { return {room_.data(), count_}; }
  /// Whether steps along the axes from the `from`-th on, the longest first, can sum to `sum`. Gives up after `left`
  /// combinations, where axes interleave, and says that they can.
  [[nodiscard]] bool reach(index sum, std::size_t from, int& left) const {
    if (from == count_) return sum == 0;
    if (--left < 0) return true;
    index low = 0, high = 0;  // what the axes behind this one can add
    for (std::size_t k = from + 1; k < count_; ++k) {
      low += room_[k].least * room_[k].length;
      high += room_[k].most * room_[k].length;
    }
    const auto& [length, least, most] = room_[from];
    const auto whole = [length = length](index within) { return within / length - (within % length < 0 ? 1 : 0); };
    const index last = std::min(most, whole(sum - low));
    for (index k = std::max(least, -whole(high - sum)); k <= last; ++k) {
      if (reach(sum - k * length, from + 1, left)) return true;
    }
    return false;
  }

 private:
  std::array<axis, 2 * max_rank + 1> room_;  // two views' axes, and their bytes; the first count_ are read
  std::size_t count_ = 0;
};
inline constexpr int most_combinations = 1 << 20;

/// Whether two elements of a view are one place in memory: whether some steps along one axis, and some along shorter ones, lead
/// back to where they began.
template <class T>
bool shares_places(const view<T>& v) {
  if (v.size() == 0) return false;
  step_sums steps;
  for (int a = 0; a < v.rank(); ++a) {
    const index length = std::abs(v.stride(a));
    if (v.extent(a) == 1) continue;
    if (length == 0 || std::ranges::find(steps.axes(), length, &step_sums::axis::length) != steps.axes().end()) return true;
    steps.add(length, 1 - v.extent(a), v.extent(a) - 1);
  }
  steps.put_longest_first();
  int left = most_combinations;
  index reach = 0;  // of the shorter axes
  for (std::size_t a = steps.axes().size(); a-- > 0;) {
    const auto& [length, least, most] = steps.axes()[a];
    for (index k = 1; k <= std::min(most, reach / length); ++k) {
      if (steps.reach(k * length, a + 1, left)) return true;
    }
    reach += most * length;
  }
  return false;
}

/// Whether two views have a byte in common, where b's first element lies `apart` bytes behind a's.
template <class T, class U>
bool have_common_bytes(const view<T>& a, const view<U>& b, index apart) {
  const index least = 1 - index{sizeof(U)};
  const index most = index{sizeof(T)} - 1;
  step_sums steps;
  for (int axis = 0; axis < a.rank(); ++axis) {
    if (a.extent(axis) > 1) steps.add(a.stride(axis) * index{sizeof(T)}, 0, a.extent(axis) - 1);
  }
  for (int axis = 0; axis < b.rank(); ++axis) {
    if (b.extent(axis) > 1) steps.add(b.stride(axis) * index{sizeof(U)}, 1 - b.extent(axis), 0);
  }
  index divisor = 0;
  for (const auto& axis : steps.axes()) divisor = std::gcd(divisor, axis.length);
  const index behind = divisor == 0 ? 0 : ((apart - least) % divisor + divisor) % divisor;
  if (behind > most - least) return false;  // no two elements come so near
  steps.add(1, least, most);
  steps.put_longest_first();
  int left = most_combinations;
  return steps.reach(apart, 0, left);
}

}  // namespace detail

/// Throws overlap_error where two elements of an output are one place in memory.
template <class T>
void require_distinct(const view<T>& out) {
  if (detail::shares_places(out)) {
    throw_overlap("elements of the output share a place in memory; it has shape " + to_string(out.extents()) +
                  " with strides " + to_string(out.strides()));
  }
}

/// Throws overlap_error where elements of an output share memory with each other, or with what else a verb was given: `whose`,
/// such as "the offsets". The output may be exactly that, element for element, where `in_place_allowed`.
template <class T, class U>
void require_apart(const view<T>& in, const view<U>& out, bool in_place_allowed, const char* whose = "the input") {
  require_distinct(out);
  const auto a = memory_of(in);
  const auto b = memory_of(out);
  if (in.size() == 0 || out.size() == 0 || a.second <= b.first || b.second <= a.first) return;
  const index apart = reinterpret_cast<const std::byte*>(out.data()) - reinterpret_cast<const std::byte*>(in.data());
  const bool is_same = apart == 0 && sizeof(T) == sizeof(U) && in.extents() == out.extents() && in.strides() == out.strides();
  if ((is_same && in_place_allowed) || !detail::have_common_bytes(in, out, apart)) return;
  throw_overlap(std::string("the output overlaps ") + whose + "; give it memory of its own" +
                (in_place_allowed ? ", or exactly the input's" : ""));
}

/// The memory that is read: of a view, or of a range of references at equal distances, such as one reversed. Empty where
/// elements are made as they are read, or lie anyhow.
template <class In>
auto memory_read(const In& in) {
  if constexpr (requires { view(in); }) {
    return view(in);
  } else if constexpr (const auto s = as_source(in); std::is_lvalue_reference_v<decltype(s[0])>) {
    using element = std::remove_reference_t<decltype(s[0])>;
    const index n = s.size();
    if (n == 0) return view<element>();
    const auto apart = [&](index i) {
      const auto at = [&s](index k) { return reinterpret_cast<const std::byte*>(std::addressof(s[k])); };
      return at(i) - at(0);
    };
    const index step = n > 1 ? apart(1) : index{sizeof(element)};
    if (step % index{sizeof(element)} != 0 || apart(n - 1) != (n - 1) * step) return view<element>();
    return view<element>(std::addressof(s[0]), {n}, {step / index{sizeof(element)}});
  } else {
    return view<const std::byte>();
  }
}

/// The same for any inputs and outputs, as far as it is known where they lie.
template <class In, class Out>
void require_own_memory(const In& in, const Out& out, bool in_place_allowed = false, const char* whose = "the input") {
  if constexpr (requires { view(out); }) regroup::require_apart(regroup::memory_read(in), view(out), in_place_allowed, whose);
}

/// Each answer has a place.
inline void require_places(const shape& places, index size, index count) {
  if (size != count) {
    throw_shape("the output needs one place an answer, " + std::to_string(count) + "; it has shape " + to_string(places));
  }
}
inline void require_same_extents(const shape& in, const shape& out) {
  if (!(in == out)) {
    throw_shape("a scan's output has the shape of its input, " + to_string(in) + "; got " + to_string(out));
  }
}
inline void require_same_length(index elements, index places) {
  if (elements != places) {
    throw_shape("a scan needs one place an element; got " + std::to_string(elements) + " elements and " +
                std::to_string(places) + " places");
  }
}

inline void require_one_key_an_element(index keys, index elements) {
  if (keys != elements) {
    throw_shape("reduce_by_key needs one key an element; got " + std::to_string(keys) + " keys and " +
                std::to_string(elements) + " elements");
  }
}
inline void require_room_for_runs(const shape& places, index runs) {
  if (places.size() != 1 || places[0] < runs) {
    throw_shape("reduce_by_key found " + std::to_string(runs) + " runs; the output has shape " + to_string(places));
  }
}

}  // namespace regroup
