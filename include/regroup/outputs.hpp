// SPDX-License-Identifier: Apache-2.0
// What verbs ask of their outputs, on a host and on a device: a place for each result, in memory of their own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "regroup/error.hpp"
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
auto writable(Out& out) {
  static_assert(requires { view(out); },
                "regroup: results go to a view, a span or a contiguous container (no std::vector<bool>)");
  const auto v = view(out);
  static_assert(!std::is_const_v<typename decltype(v)::element_type>, "regroup: results are written, and this place is const");
  return v;
}

/// The same elements with the axes' longest stride first, and axes of one element dropped.
template <class T>
view<T> by_stride(const view<T>& v) {
  const view<T> joined = coalesced(v);
  shape order;
  for (int axis = 0; axis < joined.rank(); ++axis) order.push_back(axis);
  std::sort(order.begin(), order.end(), [&](index a, index b) {
    const auto step = [&](index axis) { return std::abs(joined.stride(static_cast<int>(axis))); };
    return step(a) > step(b);
  });
  return joined.permuted(order);
}
/// How far apart the first and the last element lie along the axes of a view from `axis` on.
template <class T>
index reach_of(const view<T>& v, int axis) {
  index reach = 0;
  for (; axis < v.rank(); ++axis) reach += (v.extent(axis) - 1) * std::abs(v.stride(axis));
  return reach;
}
/// Whether two elements lie `distance` apart along the axes from `axis` on, longest stride first.
template <class T>
bool reaches(index distance, const view<T>& v, int axis) {
  if (axis == v.rank()) return distance == 0;
  const index stride = std::abs(v.stride(axis));
  if (stride == 0) return reaches(distance, v, axis + 1);
  const index most = v.extent(axis) - 1, rest = reach_of(v, axis + 1);
  const auto steps = [&](index within) { return within / stride - (within % stride < 0 ? 1 : 0); };
  const index last = std::min(most, steps(distance + rest));
  for (index k = std::max(-most, -steps(rest - distance)); k <= last; ++k) {
    if (reaches(distance - k * stride, v, axis + 1)) return true;
  }
  return false;
}

/// Refuses an output two of whose elements are one place in memory.
template <class T>
void require_distinct(const view<T>& out) {
  if (out.size() == 0) return;
  const auto is_nested = [](const view<T>& v) {
    for (int axis = 0; axis < v.rank(); ++axis) {
      if (v.extent(axis) > 1 && std::abs(v.stride(axis)) <= reach_of(v, axis + 1)) return false;
    }
    return true;
  };
  if (is_nested(out)) return;
  const view<T> v = by_stride(out);
  for (int axis = 0; axis < v.rank(); ++axis) {
    const index stride = std::abs(v.stride(axis));
    const index last = stride == 0 ? 1 : std::min(v.extent(axis) - 1, reach_of(v, axis + 1) / stride);
    for (index k = 1; k <= last; ++k) {
      if (!reaches(k * stride, v, axis + 1)) continue;
      throw_overlap("elements of the output share a place in memory; it has shape " + to_string(out.extents()) +
                    " with strides " + to_string(out.strides()));
    }
  }
}

/// The bytes of two views that may meet: the sums of a number of steps along each axis of the one less those of the other.
class common_bytes {
 public:
  template <class T, class U>
  common_bytes(const view<T>& a, const view<U>& b) {
    add(1, 0, index{sizeof(T)} - 1);
    add(1, 1 - index{sizeof(U)}, 0);
    for (int axis = 0; axis < a.rank(); ++axis) {
      if (a.extent(axis) > 1) add(a.stride(axis) * index{sizeof(T)}, 0, a.extent(axis) - 1);
    }
    for (int axis = 0; axis < b.rank(); ++axis) {
      if (b.extent(axis) > 1) add(b.stride(axis) * index{sizeof(U)}, 1 - b.extent(axis), 0);
    }
    std::sort(axes_.begin(), axes_.end(), [](const steps& x, const steps& y) { return x.length > y.length; });
  }
  /// Whether a byte of the first view is one of the second, whose first element lies `apart` behind the first's: exact, but
  /// for views whose axes interleave so that a million combinations do not tell, which count as meeting.
  [[nodiscard]] bool meet(index apart) const {
    const auto& [byte, least, most] = axes_.back();
    index divisor = 0;  // of all steps but the single bytes
    for (std::size_t k = 0; k + 1 < axes_.size(); ++k) divisor = std::gcd(divisor, axes_[k].length);
    const index behind = divisor == 0 ? 0 : ((apart - least) % divisor + divisor) % divisor;
    if (behind > most - least) return false;
    int left = 1 << 20;
    return sums_to(apart, 0, left);
  }

 private:
  struct steps {
    index length, least, most;
  };
  void add(index length, index least, index most) {
    if (length < 0) {
      add(-length, -most, -least);
    } else if (const auto same = std::find_if(axes_.begin(), axes_.end(), [&](const steps& s) { return s.length == length; });
               same != axes_.end()) {
      same->least += least;
      same->most += most;
    } else if (length > 0) {
      axes_.push_back({length, least, most});
    }
  }
  [[nodiscard]] bool sums_to(index sum, std::size_t axis, int& left) const {
    if (axis == axes_.size()) return sum == 0;
    if (--left < 0) return true;
    index low = 0, high = 0;  // of what the axes behind this one add
    for (std::size_t k = axis + 1; k < axes_.size(); ++k) {
      low += axes_[k].least * axes_[k].length;
      high += axes_[k].most * axes_[k].length;
    }
    const auto& [length, least, most] = axes_[axis];
    const auto whole = [length = length](index within) { return within / length - (within % length < 0 ? 1 : 0); };
    const index last = std::min(most, whole(sum - low));
    for (index k = std::max(least, -whole(high - sum)); k <= last; ++k) {
      if (sums_to(sum - k * length, axis + 1, left)) return true;
    }
    return false;
  }
  std::vector<steps> axes_;
};

/// Refuses an output that shares elements with an input unless it is that very input, element for element, or with itself.
template <class T, class U>
void require_apart(const view<T>& in, const view<U>& out, bool in_place_allowed) {
  require_distinct(out);
  const auto a = memory_of(in);
  const auto b = memory_of(out);
  if (in.size() == 0 || out.size() == 0 || a.second <= b.first || b.second <= a.first) return;
  const index apart = reinterpret_cast<const std::byte*>(out.data()) - reinterpret_cast<const std::byte*>(in.data());
  const bool is_same = apart == 0 && sizeof(T) == sizeof(U) && in.extents() == out.extents() && in.strides() == out.strides();
  if ((is_same && in_place_allowed) || !common_bytes(in, out).meet(apart)) return;
  throw_overlap(std::string("the output overlaps the input; give it memory of its own") +
                (in_place_allowed ? ", or exactly the input's" : ""));
}

/// Throws overlap_error where an output, if it is memory, shares some with what is read, if that is, or with itself.
template <class In, class Out>
void require_own_memory(const In& in, const Out& out, bool in_place_allowed = false) {
  if constexpr (requires { view(in), view(out); }) {
    require_apart(view(in), view(out), in_place_allowed);
  } else if constexpr (requires { view(out); }) {
    require_distinct(view(out));
  }
}

/// Each row's answer has a place.
inline void require_places(const shape& places, index size, index count) {
  if (size != count) {
    throw_shape("the output needs one place a row, " + std::to_string(count) + "; it has shape " + to_string(places));
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
