// SPDX-License-Identifier: Apache-2.0
// regroup softmax: one axis of an array, from its map into its output.
#include "regroup/algorithms/softmax.hpp"

#include <iostream>

#include "commands.hpp"
#include "progress.hpp"
#include "text.hpp"
#include "typed.hpp"

namespace regroup::tool {

int run(const softmax_command& c, const settings& s) {
  const parallel ex = executor_of(s);
  const input x = open_array(c.x);
  if (!is_float(x.type())) {
    throw_argument(x.name() + ": softmax does not take " + name_of(x.type()) +
                   "; it takes float16, bfloat16, float32 and float64");
  }
  if (x.shape().size() == 0) throw_shape(x.name() + ": softmax needs an axis; got rank 0, the shape ()");
  const int axis = checked_axis(x.name(), x.shape(), c.axis.value_or(-1));
  require_fits(x.name(), x.type(), "--scale", c.scale);
  results outputs;
  const result& y = outputs.add(c.output, x.type(), x.shape());
  const result* lse = nullptr;
  if (!c.lse.empty()) lse = &outputs.add(c.lse, logsumexp_type(x.type()), without(x.shape(), axis));
  const progress shown(s, "regroup softmax " + x.name());

  const auto compute = [&]<class T>(std::type_identity<T>) {
    using real = widened<T>;
    softmax_options<real> options{.scale = c.scale, .axis = axis, .logsumexp = {}};
    if (lse != nullptr) options.logsumexp = view_of<real>(*lse);
    if (c.log) {
      log_softmax(ex, view_of<T>(x), view_of<T>(y), options);
    } else {
      softmax(ex, view_of<T>(x), view_of<T>(y), options);
    }
  };
  if (y.size() > 0 || lse != nullptr) with_float(x.type(), compute);  // however many rows of nothing there are
  outputs.commit();
  if (s.json) {
    std::cout << "{\"output\": " << json_file(y);
    if (lse != nullptr) std::cout << ", \"lse\": " << json_file(*lse);
    std::cout << "}\n";
  }
  return 0;
}

}  // namespace regroup::tool
