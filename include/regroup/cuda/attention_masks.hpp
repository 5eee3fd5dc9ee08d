// SPDX-License-Identifier: Apache-2.0
// The rules that read an array, for a device: the host's own (algorithms/attention_masks.hpp), with the array in device
// memory. Level: element.
#pragma once

#include <type_traits>

#include "regroup/algorithms/attention_masks.hpp"
#include "regroup/cuda/view.hpp"

namespace regroup::cuda {

/// regroup::additive: a bias that broadcasts to (..., H, Nq, Nk) is added to the scores; -inf hides.
template <class T>
struct additive {
  device_view<const T> bias;
  template <class U>
  explicit additive(const device_view<U>& b) : bias(b) {}
  template <class Extents>
  [[nodiscard]] auto bind(const Extents& e) const {
    return typename regroup::additive<T>::rule{broadcast(view<const T>(bias.data(), bias.extents(), bias.strides()), e)};
  }
};
template <class U>
additive(const device_view<U>&) -> additive<std::remove_const_t<U>>;

/// regroup::boolean: a key is seen where an array that broadcasts to (..., H, Nq, Nk) holds true.
template <class T>
struct boolean {
  device_view<const T> seen;
  template <class U>
  explicit boolean(const device_view<U>& s) : seen(s) {}
  template <class Extents>
  [[nodiscard]] auto bind(const Extents& e) const {
    return typename regroup::boolean<T>::rule{broadcast(view<const T>(seen.data(), seen.extents(), seen.strides()), e)};
  }
};
template <class U>
boolean(const device_view<U>&) -> boolean<std::remove_const_t<U>>;

/// regroup::alibi: slopes[head] times the distance is added; one float a head, side by side. Throws shape_error.
struct alibi {
  device_view<const float> slopes;
  template <class Extents>
  [[nodiscard]] auto bind(const Extents& e) const {
    if (!(slopes.extents() == shape{e.heads}) || (e.heads > 1 && slopes.strides()[0] != 1)) {
      throw_shape("ALiBi's slopes have one number a head, here " + std::to_string(e.heads) + ", side by side; got shape " +
                  to_string(slopes.extents()) + " and strides " + to_string(slopes.strides()));
    }
    return regroup::alibi::rule<const float*, const float*, decltype(e.shifts())>{slopes.data(), slopes.data(), e.shifts()};
  }
};

}  // namespace regroup::cuda
