// SPDX-License-Identifier: Apache-2.0
// regroup softmax: one axis of an array, from its mapped file into its output. A stream is computed in place in the output, a
// block of rows at a time.
#include "regroup/algorithms/softmax.hpp"

#include <iostream>

#include "arriving.hpp"
#include "commands.hpp"
#include "progress.hpp"
#include "staging.hpp"
#include "text.hpp"
#include "typed.hpp"

namespace regroup::tool {
namespace {

constexpr index block = 256 * tile_elements;

/// Softmax on a GPU; 16-bit floats are passed as float.
void compute_on(const gpu& device, const workers& ex, const softmax_command& c, int axis, const input& x,
                const result& y, const result* lse) {
  const element computed = computed_in(x.type());
  with_computed(computed, [&]<class X>(std::type_identity<X>) {
    const auto from = joined<X>(bytes_of(x), {axis}, x.type());
    const auto to = joined<X>(bytes_of(y), {axis}, y.type());
    const index length = x.shape()[axis], rows = lse != nullptr ? lse->size() : y.size() / length;
    by_blocks(ex, from, rows, length, [&](X* some, index first, index count) {
      device.softmax({computed, some, count, length}, lse != nullptr ? lse->as<X>() + first : nullptr, c.log, c.scale);
      put(ex, some, to, first * length, count * length);
    });
  });
}

}  // namespace

int run(const softmax_command& c, const settings& s) {
  const workers ex(s);
  const auto device = s.cuda ? open_gpu() : nullptr;
  arriving x(c.x);
  if (!is_float(x.type())) {
    throw_argument(x.name() + ": softmax does not take " + name_of(x.type()) +
                   "; it takes float16, bfloat16, float32 and float64");
  }
  if (x.shape().size() == 0) throw_shape(x.name() + ": softmax needs an axis; got rank 0, the shape ()");
  const int axis = checked_axis(x.name(), x.shape(), c.axis.value_or(-1));
  require_fits(x.name(), x.type(), "--scale", c.scale);
  results outputs;
  result& y = outputs.add(c.output, x.type(), x.shape());
  const result* lse = nullptr;
  if (!c.lse.empty()) lse = &outputs.add(c.lse, logsumexp_type(x.type()), without(x.shape(), axis));
  const bool by_rows = x.is_stream() && axis == x.shape().size() - 1 && y.size() > 0 && !device;
  progress shown(s, "regroup softmax " + x.name(), by_rows ? y.size() : 0);

  const auto compute = [&]<class T>(std::type_identity<T>) {
    using real = widened<T>;
    const auto put = [&](const view<const T>& from, const view<T>& to, const softmax_options<real>& options) {
      if (c.log) {
        log_softmax(ex, from, to, options);
      } else {
        softmax(ex, from, to, options);
      }
    };
    softmax_options<real> options{.scale = c.scale, .axis = axis, .logsumexp = {}};
    if (!by_rows) {
      if (lse != nullptr) options.logsumexp = view_of<real>(*lse);
      put(view_of<T>(x.whole(y)), view_of<T>(y), options);
      return;
    }
    options.axis = 1;
    const index length = x.shape()[axis], rows = y.size() / length;
    const index at_once = std::max<index>(block / length, 1);
    for (index row = 0; row < rows; row += at_once) {
      const index count = std::min(at_once, rows - row);
      const view<T> some(y.as<T>() + row * length, {count, length});
      x.read(some.data(), some.size());
      if (lse != nullptr) options.logsumexp = view<real>(lse->as<real>() + row, {count});
      put(some, some, options);
      y.done_with((row + count) * length);
      shown.advance(some.size());
    }
  };
  const bool does_something = y.size() > 0 || lse != nullptr;  // there may be many rows without elements
  if (does_something && device) {
    compute_on(*device, ex, c, axis, x.whole(y), y, lse);
  } else if (does_something) {
    with_float(x.type(), compute);
  }
  outputs.commit();
  if (s.json) {
    json_object files;
    files.add("output", json_file(y));
    if (lse != nullptr) files.add("lse", json_file(*lse));
    std::cout << files.text() << '\n';
  }
  return 0;
}

}  // namespace regroup::tool
