// SPDX-License-Identifier: Apache-2.0
// regroup scan: prefixes along one axis. The input is a view of its map, or lies in the output already (a stream), and
// the output is a view of its file; --reverse is the same scan through views whose stride along the axis is negative.
#include "regroup/scan.hpp"

#include <cstring>
#include <iostream>
#include <string>

#include "arriving.hpp"
#include "commands.hpp"
#include "progress.hpp"
#include "regroup/monoids/affine.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/monoids/log_sum_exp.hpp"
#include "text.hpp"
#include "typed.hpp"

namespace regroup::tool {
namespace {

/// Element and place of an affine scan: the row (a, b) as the file holds it.
template <class T>
struct row_pair {
  using number = widened<T>;
  T a, b;
  row_pair() = default;
  explicit row_pair(const affine_map<number>& map) : a(static_cast<T>(map.a)), b(static_cast<T>(map.b)) {}
};

template <class T>
struct as_map {
  affine_map<widened<T>> operator()(const row_pair<T>& row) const { return {widen(row.a), widen(row.b)}; }
};

struct scanner {
  const scan_command& command;
  const parallel& ex;
  int axis;

  template <class In, class Out, class M, class Projection = std::identity>
  void operator()(const view<In>& x, const view<Out>& y, const M& m, const Projection& projection = {}) const {
    const auto from = oriented(x);
    const auto to = oriented(y);
    if (command.exclusive) {
      exclusive_scan_axis(ex, from, axis, to, m, projection);
    } else {
      inclusive_scan_axis(ex, from, axis, to, m, projection);
    }
  }

 private:
  template <class T>
  view<T> oriented(const view<T>& v) const {
    if (!command.reverse || v.extent(axis) == 0) return v;
    extents strides = v.strides();
    strides[axis] = -strides[axis];
    return {v.data() + (v.extent(axis) - 1) * v.stride(axis), v.extents(), strides};
  }
};

/// sum, product, min, max, log_sum_exp.
void scan_numbers(const scanner& scan, const std::string& name, const input& x, const result& y) {
  with_number(x.type(), [&]<class T>(std::type_identity<T>) {
    using number = widened<T>;
    const view<const T> from = view_of<T>(x);
    const view<T> to = view_of<T>(y);
    if (name == "sum") scan(from, to, plus<number>{});
    if (name == "product") scan(from, to, product<number>());
    if (name == "min") scan(from, to, minimum<number>{});
    if (name == "max") scan(from, to, maximum<number>{});
    if (name == "log_sum_exp") {
      using real = std::conditional_t<std::is_same_v<number, float>, float, double>;
      scan(from, view_of<real>(y), log_sum_exp<real>{});
    }
  });
}

/// any, all: the truth of every element, scanned in place.
void scan_truth(const scanner& scan, bool any_of_them, const input& x, const result& y) {
  auto* const truth = y.as<std::uint8_t>();
  with_any(x.type(), [&]<class T>(std::type_identity<T>) {
    const view<const T> from = view_of<T>(x);
    for (index i = 0; i < x.size(); ++i) {
      truth[i] = static_cast<bool>(from.data()[offset_of(i, from.extents(), from.strides())]) ? 1 : 0;
    }
  });
  const view<std::uint8_t> to = view_of<std::uint8_t>(y);
  if (any_of_them) {
    scan(to, to, any{});
  } else {
    scan(to, to, all{});
  }
}

/// count: no element matters, so one stands for all of them.
void scan_count(const scanner& scan, const result& y) {
  const std::uint8_t anything = 0;
  extents still = y.shape();
  for (int a = 0; a < still.size(); ++a) still[a] = 0;
  scan(view<const std::uint8_t>(&anything, y.shape(), still), view_of<std::int64_t>(y), count{});
}

/// affine: the pairs along the last axis, side by side in the output, scanned in place.
void scan_affine(const scanner& scan, const input& x, const result& y) {
  with_number(x.type(), [&]<class T>(std::type_identity<T>) {
    const view<const T> from = view_of<T>(x);
    T* const copy = y.as<T>();
    if (x.about().fortran_order) {
      for (index i = 0; i < x.size(); ++i) copy[i] = from.data()[offset_of(i, from.extents(), from.strides())];
    } else if (from.data() != copy) {
      std::copy_n(from.data(), x.size(), copy);
    }
    const view<row_pair<T>> pairs(reinterpret_cast<row_pair<T>*>(copy), without(x.shape(), x.shape().size() - 1));
    scan(pairs, pairs, affine<widened<T>>{}, as_map<T>{});
  });
}

/// The axis that is scanned, from 0. Throws where the monoid and the shape do not fit.
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
  const parallel ex = executor_of(s);
  arriving from(c.x);
  const scanner scan{c, ex, scanned_axis(c, from)};
  results outputs;
  const result& y = outputs.add(c.output, scanned_type(c, from), from.shape());
  const progress shown(s, "regroup scan " + from.name());
  const input x = from.whole(y);
  if (y.size() == 0) {
    // nothing to do, however many rows of nothing there are
  } else if (c.with == "any" || c.with == "all") {
    scan_truth(scan, c.with == "any", x, y);
  } else if (c.with == "count") {
    scan_count(scan, y);
  } else if (c.with == "affine") {
    scan_affine(scan, x, y);
  } else {
    scan_numbers(scan, c.with, x, y);
  }
  outputs.commit();
  if (s.json) std::cout << "{\"output\": " << json_file(y) << "}\n";
  return 0;
}

}  // namespace regroup::tool
