// SPDX-License-Identifier: Apache-2.0
// The fast mode: `cuda::device{stream}.with(cuda::not_guaranteed)`, the same verbs by CUB, in whatever order it chooses. Bits
// may differ from run to run (a scan combines whatever look-back finds ready); results are within the monoid's bound. CUB's
// two-phase temporary storage is handled inside. CUB's reductions assume that the operator commutes, so a monoid that does
// not declare it is refused; scans take any monoid. `_into` verbs take the caller's workspace, run in stream order and can be
// captured, like the ordered ones. Level: device.
#pragma once

#include <functional>
#include <type_traits>

#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/tabulate_output_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "regroup/cuda/device.cuh"
#include "regroup/cuda/packs.hpp"

namespace regroup::cuda {

/// An executor of reduce, reduce_segments and the scans of contiguous elements. `device::with` makes it.
class unordered_device {
 public:
  explicit unordered_device(const device& on) : on_(on) {}
  [[nodiscard]] const device& on() const noexcept { return on_; }

  /// The bytes of temporary storage that call(storage, bytes), one of CUB's, needs.
  template <class Call>
  [[nodiscard]] std::size_t bytes_of(const Call& call) const {
    std::size_t bytes = 0;
    check(call(nullptr, bytes), "asking CUB for its storage");
    return bytes;
  }
  template <class Call>
  void run(const Call& call, const workspace& w) const {
    std::size_t bytes = bytes_of(call);
    w.require(bytes);
    check(call(w.data, bytes), "a call of CUB");
  }

 private:
  device on_;
};

inline unordered_device device::with(not_guaranteed_t) const { return unordered_device(*this); }

/// The type that a projection makes of an element.
template <class Projection, class X>
constexpr auto projected_type() {
  static_assert(!takes_position<Projection, X&>,
                "regroup: CUB's reductions and scans know no positions; cuda::device in order does");
  if constexpr (std::invocable<const Projection&, X&>) {
    return std::type_identity<std::remove_cvref_t<std::invoke_result_t<const Projection&, X&>>>{};
  } else {
    return std::type_identity<std::remove_cv_t<X>>{};
  }
}
template <class Projection, class X>
using seen_through = typename decltype(projected_type<Projection, X>())::type;

/// Projects and lifts an element.
template <class M, class Projection>
struct lift_projected {
  M m;
  Projection projection;
  template <class X>
  constexpr state_of<M> operator()(const X& x) const {
    return regroup::lift(m, std::invoke(projection, x));
  }
};
/// Where CUB's states become answers.
template <class M, class Out>
auto lowered_to(const M& m, Out* to, index stride = 1) {
  require_place_for<Out, answer_of<M>>();
  return thrust::make_tabulate_output_iterator(put_answer<M, Out>{m, to, stride});
}

template <class X, class M, class Projection>
void require_in_cub() {
  require_on_device<M, seen_through<Projection, X>>();
  require_to_travel<lift_projected<M, Projection>>();
}
template <class M>
constexpr void require_commutative() {
  static_assert(is_commutative<M>,
                "regroup: CUB's reductions assume a b == b a, which this monoid does not declare; cuda::device folds in "
                "order");
}
template <class X>
const X* side_by_side(const device_view<X>& x) {
  if (x.one_row().stride != 1) throw_shape("CUB's mode needs elements side by side; got strides " + to_string(x.strides()));
  return x.data();
}

/// CUB's calls on our views, waiting for their storage.
template <class X, class M, class Projection, class Out>
auto cub_reduce(const unordered_device& fast, const device_view<X>& xs, const M& m, const Projection& p, Out out) {
  require_commutative<M>();
  require_in_cub<X, M, Projection>();
  const auto reduced = [=, stream = fast.on().stream()](const auto& first, index n, const auto& lift) {
    return [=](void* storage, std::size_t& bytes) {
      return cub::DeviceReduce::TransformReduce(storage, bytes, first, out, n, m, lift, m.identity(), stream);
    };
  };
  if constexpr (come_in_packs<M, std::remove_const_t<X>, Projection>) {
    const lift_packs<M, std::remove_const_t<X>> lift(m, side_by_side(xs), xs.size());
    return reduced(thrust::counting_iterator<index>(0), lift.packs(), lift);
  } else {
    return reduced(side_by_side(xs), xs.size(), lift_projected<M, Projection>{m, p});
  }
}
template <class X, class Offset, class M, class Projection, class Out>
auto cub_segments(const unordered_device& fast, const device_view<X>& xs, const device_view<Offset>& offsets, const M& m,
                  const Projection& p, Out out) {
  require_commutative<M>();
  require_in_cub<X, M, Projection>();
  const auto lifted = thrust::make_transform_iterator(side_by_side(xs), lift_projected<M, Projection>{m, p});
  return [=, first = side_by_side(offsets), count = offsets.size() - 1,
          stream = fast.on().stream()](void* storage, std::size_t& bytes) {
    return cub::DeviceSegmentedReduce::Reduce(storage, bytes, lifted, out, count, first, first + 1, m, m.identity(),
                                              stream);
  };
}
template <scan_kind Kind, class X, class Out, class M, class Projection>
auto cub_scan(const unordered_device& fast, const device_view<X>& x, const Out& out, const M& m, const Projection& p) {
  require_in_cub<X, M, Projection>();
  const auto lifted = thrust::make_transform_iterator(side_by_side(x), lift_projected<M, Projection>{m, p});
  return [=, n = x.size(), stream = fast.on().stream()](void* storage, std::size_t& bytes) {
    if constexpr (Kind == scan_kind::inclusive) {
      return cub::DeviceScan::InclusiveScan(storage, bytes, lifted, out, m, n, stream);
    } else {
      return cub::DeviceScan::ExclusiveScan(storage, bytes, lifted, out, m, m.identity(), n, stream);
    }
  };
}
/// The scan of x into y, which has its shape and may be exactly x.
template <scan_kind Kind, class X, class Y, class M, class Projection>
auto cub_scan_into(const unordered_device& fast, const device_view<X>& x, const device_view<Y>& y, const M& m,
                   const Projection& p) {
  if (x.extents() != y.extents() || x.rank() != 1) {
    throw_shape("CUB's scan takes a range of rank 1 and an output of its shape; got " + to_string(x.extents()) + " and " +
                to_string(y.extents()));
  }
  x.require_apart_from(y, true);
  return cub_scan<Kind>(fast, x, lowered_to(m, y.data(), y.one_row().stride), m, p);
}

}  // namespace regroup::cuda

namespace regroup {

/// reduce by cub::DeviceReduce: any order, within the bound. Floats of 4 or 2 bytes are read 32 bytes at a time and lifted
/// by the tile lift, where the monoid has one (packs.hpp). Waits.
template <class X, class M, class Projection = std::identity>
answer_of<M> reduce(const cuda::unordered_device& fast, const cuda::device_view<X>& xs, const M& m,
                    const Projection& projection = {}) {
  const cudaStream_t stream = fast.on().stream();
  const cuda::device_buffer result(sizeof(state_of<M>), stream);
  const auto call = cuda::cub_reduce(fast, xs, m, projection, static_cast<state_of<M>*>(result.data()));
  cuda::slot<state_of<M>> state;
  cuda::with_workspace(fast.on(), fast.bytes_of(call), [&](const cuda::workspace& w) {
    fast.run(call, w);
    cuda::check(cudaMemcpyAsync(&state, result.data(), sizeof(state_of<M>), cudaMemcpyDeviceToHost, stream),
                "copying the result");
  });
  return regroup::lower(m, state.value);
}
/// The bytes of workspace that `reduce_into` needs with this projection, and reduce into one place on the device, in stream
/// order.
template <class X, class M, class Projection = std::identity>
std::size_t reduce_workspace(const cuda::unordered_device& fast, const cuda::device_view<X>& xs, const M& m,
                             const Projection& projection = {}) {
  return fast.bytes_of(cuda::cub_reduce(fast, xs, m, projection, cuda::lowered_to<M, answer_of<M>>(m, nullptr)));
}
template <class X, class Out, class M, class Projection = std::identity>
void reduce_into(const cuda::unordered_device& fast, const cuda::device_view<X>& xs, const cuda::device_view<Out>& out,
                 const M& m, const cuda::workspace& w, const Projection& projection = {}) {
  xs.require_places(out, 1);
  fast.run(cuda::cub_reduce(fast, xs, m, projection, cuda::lowered_to(m, out.data())), w);
}

/// reduce_segments by cub::DeviceSegmentedReduce (one block a segment).
template <class X, class Offset, class M, class Projection = std::identity>
std::size_t reduce_segments_workspace(const cuda::unordered_device& fast, const cuda::device_view<X>& xs,
                                      const cuda::device_view<Offset>& offsets, const M& m,
                                      const Projection& projection = {}) {
  return fast.bytes_of(
      cuda::cub_segments(fast, xs, offsets, m, projection, cuda::lowered_to<M, answer_of<M>>(m, nullptr)));
}
template <class X, class Offset, class Out, class M, class Projection = std::identity>
void reduce_segments_into(const cuda::unordered_device& fast, const cuda::device_view<X>& xs,
                          const cuda::device_view<Offset>& offsets, const cuda::device_view<Out>& out, const M& m,
                          const cuda::workspace& w, const Projection& projection = {}) {
  const index stride = xs.require_places(out, cuda::segments_of(xs, offsets).size());
  offsets.require_apart_from(out, false, "the offsets");
  if (out.size() == 0) return;
  fast.run(cuda::cub_segments(fast, xs, offsets, m, projection, cuda::lowered_to(m, out.data(), stride)), w);
}
/// The same in a workspace of its own; waits.
template <class X, class Offset, class Out, class M, class Projection = std::identity>
void reduce_segments(const cuda::unordered_device& fast, const cuda::device_view<X>& xs,
                     const cuda::device_view<Offset>& offsets, const cuda::device_view<Out>& out, const M& m,
                     const Projection& projection = {}) {
  const std::size_t bytes = reduce_segments_workspace(fast, xs, offsets, m, projection);
  cuda::with_workspace(fast.on(), bytes, [&](const cuda::workspace& w) {
    reduce_segments_into(fast, xs, offsets, out, m, w, projection);
  });
}

/// The bytes of workspace that either scan of x needs, and the scans by cub::DeviceScan, in stream order: one read and one
/// write of memory, any monoid.
template <class X, class M, class Projection = std::identity>
std::size_t scan_workspace(const cuda::unordered_device& fast, const cuda::device_view<X>& x, const M& m,
                           const Projection& projection = {}) {
  const auto places = cuda::lowered_to<M, answer_of<M>>(m, nullptr);
  return fast.bytes_of(cuda::cub_scan<scan_kind::inclusive>(fast, x, places, m, projection));
}
template <class X, class Y, class M, class Projection = std::identity>
void inclusive_scan_into(const cuda::unordered_device& fast, const cuda::device_view<X>& x, const cuda::device_view<Y>& y,
                         const M& m, const cuda::workspace& w, const Projection& projection = {}) {
  fast.run(cuda::cub_scan_into<scan_kind::inclusive>(fast, x, y, m, projection), w);
}
template <class X, class Y, class M, class Projection = std::identity>
void exclusive_scan_into(const cuda::unordered_device& fast, const cuda::device_view<X>& x, const cuda::device_view<Y>& y,
                         const M& m, const cuda::workspace& w, const Projection& projection = {}) {
  fast.run(cuda::cub_scan_into<scan_kind::exclusive>(fast, x, y, m, projection), w);
}
/// The same in a workspace of their own; they wait.
template <class X, class Y, class M, class Projection = std::identity>
void inclusive_scan(const cuda::unordered_device& fast, const cuda::device_view<X>& x, const cuda::device_view<Y>& y,
                    const M& m, const Projection& projection = {}) {
  const auto call = cuda::cub_scan_into<scan_kind::inclusive>(fast, x, y, m, projection);
  cuda::with_workspace(fast.on(), fast.bytes_of(call), [&](const cuda::workspace& w) { fast.run(call, w); });
}
template <class X, class Y, class M, class Projection = std::identity>
void exclusive_scan(const cuda::unordered_device& fast, const cuda::device_view<X>& x, const cuda::device_view<Y>& y,
                    const M& m, const Projection& projection = {}) {
  const auto call = cuda::cub_scan_into<scan_kind::exclusive>(fast, x, y, m, projection);
  cuda::with_workspace(fast.on(), fast.bytes_of(call), [&](const cuda::workspace& w) { fast.run(call, w); });
}

}  // namespace regroup
