// SPDX-License-Identifier: Apache-2.0
// regroup attention: checks the files, then calls the library once; or computes a state and saves it.
#include "regroup/algorithms/attention.hpp"

#include <iostream>
#include <optional>

#include "attention_files.hpp"
#include "commands.hpp"
#include "progress.hpp"
#include "saved_state.hpp"
#include "staging.hpp"
#include "text.hpp"
#include "typed.hpp"

namespace regroup::tool {
namespace {

plain_array<int> small(const std::vector<index>& numbers, const extents& shape) {
  return {{numbers.begin(), numbers.end()}, shape};
}

/// The numbers of a mask of a floating type.
plain_array<float> bias_of(const workers& ex, const input& mask) {
  if (mask.type() != element::float64) return plain<float>(ex, mask);
  const plain_array<double> wide = plain<double>(ex, mask);
  plain_array<float> bias{{}, wide.shape};
  for (const double x : wide.data) bias.data.push_back(static_cast<float>(mask_number{x}));
  return bias;
}

/// Attention on a GPU, with 16-bit floats as float. Rules apply in mask_of's order.
void attention_on(const gpu& device, const workers& ex, const attention_command& c, const attention_files& f,
                  const attention_shapes& e, const result& o, const result* lse) {
  const auto given = [&](const std::optional<input>& x) {
    return x ? std::optional(plain<float>(ex, *x)) : std::nullopt;
  };
  mask_of(c, f, e);  // for its errors
  sinks_of(f, e);
  std::vector<float> out(static_cast<std::size_t>(o.size()));
  plain_attention a{.q = plain<float>(ex, f.q),
                    .k = plain<float>(ex, f.k),
                    .v = plain<float>(ex, f.v),
                    .scale = c.scale,
                    .alibi = given(f.alibi),
                    .sinks = given(f.sinks),
                    .out_shape = o.shape(),
                    .out = out.data(),
                    .lse = lse != nullptr ? lse->as<float>() : nullptr};
  if (f.lengths) a.lengths = small(e.lengths, f.lengths->shape());
  if (f.table) a.table = small(e.table, f.table->shape());
  if (lse != nullptr) a.lse_shape = lse->shape();
  if (c.softcap) a.cap = softcap{*c.softcap};
  if (f.mask && f.mask->type() == element::boolean) a.seen = plain<std::uint8_t>(ex, *f.mask);
  if (f.mask && f.mask->type() != element::boolean) a.bias = bias_of(ex, *f.mask);
  if (c.causal != causality::none) a.triangle = causal{c.causal == causality::top_left ? top_left : bottom_right};
  if (c.window) a.band = window{c.window->left, c.window->right};
  device.attention(a);
  if (o.size() > 0) put(ex, out.data(), joined<float>(bytes_of(o), {}, o.type()), 0, o.size());
}

}  // namespace

int run(const attention_command& c, const settings& s) {
  const workers ex(s);
  const auto device = s.cuda ? open_gpu() : nullptr;
  attention_files f(c);
  const attention_shapes e = check(f);
  if (device && f.q.type() == element::float64) {
    throw_argument(f.q.name() + ": attention with --device cuda takes float16, bfloat16 and float32; got float64, for " +
                   "which use --device cpu");
  }
  if (c.scale) require_fits(f.q.name(), f.q.type(), "--scale", *c.scale);

  extents shape = f.q.shape();
  const int last = shape.size() - 1;
  shape[last] = e.dv;
  const extents outer = without(shape, last);
  const element real_type = logsumexp_type(f.q.type());
  std::optional<made_directory> directory;
  if (!c.state_out.empty()) directory.emplace(c.state_out);
  results outputs;
  const result& o = outputs.add(c.output, f.q.type(), shape);
  const result* const lse = c.lse.empty() ? nullptr : &outputs.add(c.lse, real_type, outer);
  std::optional<saved_state> saved;
  if (directory) saved.emplace(outputs, c.state_out, real_type, outer, e.dv);
  const progress shown(s, "regroup attention");

  if (device) attention_on(*device, ex, c, f, e, o, lse);
  with_float(f.q.type(), [&]<class T>(std::type_identity<T>) {
    if (device) return;
    using real = attention_real<T>;
    const view<const T> q = view_of<T>(f.q);
    const view<const T> k = view_of<T>(f.k);
    const view<const T> v = view_of<T>(f.v);
    attention_source<T> keys = e.paged ? paged(k, v, view<const index>(e.table.data(), f.table->shape())) : dense(k, v);
    if (f.lengths) keys.lengths = e.lengths;
    attention_options options{.scale = c.scale, .mask = mask_of(c, f, e), .split = c.split};
    const logsumexp_output to_lse = lse != nullptr ? logsumexp_output(view_of<real>(*lse)) : logsumexp_output();
    if (saved) {
      const attention_state<real> state(ex, q, keys, options);
      saved->put(state);
      if (!c.output.empty() || lse != nullptr) state.normalise(view_of<T>(o), to_lse);
    } else {
      options.logsumexp = to_lse;
      options.sinks = sinks_of(f, e);
      attention(ex, q, keys, view_of<T>(o), options);
    }
  });
  std::optional<directory_in_use> no_other_state;
  if (directory) no_other_state.emplace(c.state_out, directory_in_use::changing);
  outputs.commit();
  no_other_state.reset();
  if (directory) directory->keep();
  if (s.json) {
    json_object files;
    if (!c.output.empty()) files.add("output", json_file(o));
    if (lse != nullptr) files.add("lse", json_file(*lse));
    if (saved) files.add("state", saved->json());
    std::cout << files.text() << '\n';
  }
  return 0;
}

}  // namespace regroup::tool
