// SPDX-License-Identifier: Apache-2.0
// regroup scan: prefixes along one axis. The input is a view of a mapped file or, for a stream, lies in the output already; the
// output is a view of its file. --reverse is the same scan through views with a negative stride along the axis. 16-bit numbers
// and int32 are read as float and int64 and converted back as they are written (numbers.hpp).
#include "regroup/scan.hpp"

#include <iostream>
#include <string>

#include "arriving.hpp"
#include "commands.hpp"
#include "progress.hpp"
#include "scan_monoids.hpp"
#include "staging.hpp"
#include "text.hpp"
#include "typed.hpp"

namespace regroup::tool {
namespace {

/// The view with the scanned axis last, and reversed if the scan is.
template <class Byte>
view<Byte> oriented(const view<Byte>& whole, const scan_command& c, int axis) {
  const view<Byte> v = with_last(whole, axis);
  const int last = v.rank() - 1;
  if (!c.reverse || v.extent(last) == 0) return v;
  extents strides = v.strides();
  strides[last] = -strides[last];
  return {v.data() + (v.extent(last) - 1) * v.stride(last), v.extents(), strides};
}

/// The elements of a scan of any array. For affine they are the pairs along the last axis.
template <class E, class Byte>
number_rows<E, Byte> elements(const view<Byte>& whole, element type, const scan_command& c, int axis) {
  if constexpr (numbers<E, Byte>::is_pair) {
    const int last = whole.rank() - 1;
    const view<Byte> firsts(whole.data(), without(whole.extents(), last), without(whole.strides(), last));
    return {oriented(firsts, c, axis), type, whole.stride(last)};
  } else {
    return {oriented(whole, c, axis), type};
  }
}

/// A view of y's shape whose elements are all the same 1, for a count, which does not look at its input.
view<const std::byte> as_many_ones(const result& y) {
  static const std::int64_t one = 1;
  extents still = y.shape();
  for (index& stride : still) stride = 0;
  return {reinterpret_cast<const std::byte*>(&one), y.shape(), still};
}

/// Scans on `device` or, if that is null, on the CPU.
void scan(const gpu* device, const workers& ex, const scan_command& c, int axis, const input& x, const result& y) {
  const bool counts = c.with == "count";
  const element type = counts ? element::int64 : x.type();
  const element computed = scanned_in(c.with, type);
  with_scanned(c.with, computed, [&]<class E>(std::type_identity<E>) {
    const auto from = elements<E>(counts ? as_many_ones(y) : bytes_of(x), type, c, axis);
    const auto to = elements<E>(bytes_of(y), y.type(), c, axis);
    if (device != nullptr) {
      return by_blocks(ex, from, from.size(), from.length(), [&](E* some, index first, index count) {
        device->scan({computed, some, count, from.length()}, c.with, y.type(), c.exclusive);
        put(ex, some, to, first * from.length(), count * from.length());
      });
    }
    with_scan_monoid<E>(c.with, y.type(), [&](const auto& m) {
      const auto answer = [&m](const auto& state) { return static_cast<E>(regroup::lower(m, state)); };
      ex.scan(from, to, m, c.exclusive ? scan_kind::exclusive : scan_kind::inclusive, answer);
    });
  });
}

/// The scanned axis, counted from 0. Throws if the monoid and the shape do not fit.
int scanned_axis(const scan_command& c, const arriving& x) {
  const int rank = x.shape().size();
  if (c.with != "affine") {
    if (rank == 0) throw_shape(x.name() + ": scan needs an axis; got rank 0, the shape ()");
    return checked_axis(x.name(), x.shape(), c.axis.value_or(-1));
  }
  if (rank < 2 || x.shape()[rank - 1] != 2) {
    throw_shape(x.name() + ": affine needs a shape (..., n, 2), the pairs (a, b) of maps a x + b; got " +
                to_string(x.shape()));
  }
  const int axis = checked_axis(x.name(), x.shape(), c.axis.value_or(-2));
  if (axis == rank - 1) {
    throw_shape(x.name() + ": affine cannot scan the last axis, which holds the pairs; name another, as --axis -2");
  }
  return axis;
}

element scanned_type(const scan_command& c, const arriving& x) {
  if (c.with == "any" || c.with == "all") return element::boolean;
  if (c.with == "count") return element::int64;
  if (x.type() == element::boolean) {
    throw_argument(x.name() + ": scan with " + c.with + " does not take bool; bool arrays have any, all and count");
  }
  return c.with == "log_sum_exp" ? logsumexp_type(x.type()) : x.type();
}

}  // namespace

int run(const scan_command& c, const settings& s) {
  const workers ex(s);
  const auto device = s.cuda ? open_gpu() : nullptr;
  arriving from(c.x);
  const int axis = scanned_axis(c, from);
  results outputs;
  const result& y = outputs.add(c.output, scanned_type(c, from), from.shape());
  const progress shown(s, "regroup scan " + from.name());
  const input x = from.whole(y);
  if (y.size() > 0) scan(device.get(), ex, c, axis, x, y);  // there may be many rows without elements
  outputs.commit();
  if (s.json) std::cout << json_object().add("output", json_file(y)).text() << '\n';
  return 0;
}

}  // namespace regroup::tool
