// SPDX-License-Identifier: Apache-2.0
// regroup reduce: any axes by any list of monoids in one pass. A mapped file is a view, given to reduce_axes. A stream is read
// in blocks of rows or, if a row is longer than a block, pushed into an accumulator. The bits are the same.
#include "regroup/reduce.hpp"

#include <unistd.h>

#include <iostream>
#include <optional>
#include <utility>
#include <vector>

#include "commands.hpp"
#include "progress.hpp"
#include "regroup/stream.hpp"
#include "scored_rows.hpp"
#include "several.hpp"
#include "staging.hpp"
#include "text.hpp"
#include "typed.hpp"

namespace regroup::tool {
namespace {

/// Which axes are reduced and which stay.
struct plan {
  std::string name;  // the input's
  description about;
  extents axes;           // reduced, ascending
  extents kept;           // the result's shape
  index rows = 1;         // results
  index length = 1;       // elements of each
  bool whole = false;     // every axis is reduced
  bool trailing = false;  // the reduced axes are the last ones
};

plan make_plan(const std::string& name, const description& about, const std::optional<std::vector<int>>& axes,
               bool keepdims) {
  const int rank = about.shape.size();
  std::vector<bool> reduced(static_cast<std::size_t>(rank), !axes.has_value());
  for (const int axis : axes.value_or(std::vector<int>{})) {
    const auto at = static_cast<std::size_t>(checked_axis(name, about.shape, axis));
    if (reduced[at]) throw_shape(name + ": --axis names axis " + std::to_string(at) + " twice");
    reduced[at] = true;
  }
  plan p{name, about, {}, {}};
  for (int a = 0; a < rank; ++a) {
    const index extent = about.shape[a];
    if (reduced[static_cast<std::size_t>(a)]) {
      p.axes.push_back(a);
      p.length *= extent;
      if (keepdims) p.kept.push_back(1);
    } else {
      p.rows *= extent;
      p.kept.push_back(extent);
    }
  }
  p.whole = p.axes.size() == rank;
  p.trailing = p.axes.size() == 0 || p.axes[0] == rank - p.axes.size();
  return p;
}

/// The result's shape with the monoid's own axis added.
extents with_axis(const plan& p, const std::string& monoid, index extent) {
  extents shape = p.kept;
  if (shape.size() == max_rank) {
    throw_shape(p.name + ": " + monoid + " adds an axis to the result's shape " + to_string(shape) +
                ", which has the " + std::to_string(max_rank) +
                " axes that an array may have; reduce one more, without --keepdims");
  }
  shape.push_back(extent);
  return shape;
}

void require_elements(const plan& p, const std::string& monoid) {
  if (p.length == 0 && p.rows > 0) {
    throw_shape(p.name + ": " + monoid + " of nothing does not exist; the shape " + to_string(p.about.shape) +
                " has no elements to reduce");
  }
}

/// The type of a monoid's answers. Throws if the monoid does not take the input's type.
element answer_type(const plan& p, const std::string& monoid) {
  const element type = p.about.type;
  if (monoid == "any" || monoid == "all") return element::boolean;
  if (monoid == "count") return element::int64;
  if (type == element::boolean) {
    throw_argument(p.name + ": " + monoid + " does not take bool; bool arrays have any, all and count");
  }
  if (monoid == "argmin" || monoid == "argmax" || monoid == "histogram") return element::int64;
  if (monoid == "log_sum_exp" || monoid == "moments") return logsumexp_type(type);
  if (monoid == "mean" && is_integer(type)) return element::float64;
  return type;
}

/// The result of one monoid, and its name in the output.
struct answer {
  std::string name;
  result* values;
};

/// Inserts `part` before the suffix: R.npy becomes R.part.npy.
std::string part_path(std::string path, const std::string& part) {
  if (path.empty()) return path;
  if (is_special(path)) throw_argument(path + ": several results need files of their own, named after one; give a file name");
  if (path.ends_with(".npy")) path.resize(path.size() - 4);
  return path + "." + part + ".npy";
}

/// The shape with K in place of the reduced axis.
extents top_k_shape(const plan& p, index k, bool keepdims, index& inner) {
  if (p.axes.size() != 1 && !p.whole) {
    throw_shape(p.name + ": top_k reduces one axis or the whole array; --axis names " + std::to_string(p.axes.size()));
  }
  if (k > p.length) {
    throw_shape(p.name + ": top_k:" + std::to_string(k) + " needs at least as many elements; the shape " +
                to_string(p.about.shape) + " has " + std::to_string(p.length) + " along what is reduced");
  }
  extents shape;
  inner = 1;
  const bool flattened = p.axes.size() != 1;
  for (int a = 0; a < p.about.shape.size(); ++a) {
    if (flattened) {
      if (keepdims && a > 0) shape.push_back(1);
      continue;
    }
    shape.push_back(a == p.axes[0] ? k : p.about.shape[a]);
    if (a > p.axes[0]) inner *= p.about.shape[a];
  }
  if (flattened) shape.push_back(k);
  return shape;
}

/// Makes the results of every monoid but softmax_mean.
class preparation {
 public:
  preparation(const reduce_command& c, const plan& p, results& outputs) : c_(c), p_(p), outputs_(outputs) {}

  std::vector<reduction> all() {
    std::vector<reduction> list;
    for (const monoid_name& m : c_.with) {
      if (m.name != "softmax_mean") list.push_back({m, make_target(m)});
    }
    return list;
  }
  std::vector<answer> answers;

 private:
  target make_target(const monoid_name& m) {
    const element type = answer_type(p_, m.name);
    if (m.name == "argmin" || m.name == "argmax" || m.name == "mean" || m.name == "moments") {
      require_elements(p_, m.name);
    }
    const bool alone = c_.with.size() == 1;
    const std::string path = alone ? c_.output : part_path(c_.output, m.name);
    if (m.name == "top_k") {
      target t;
      const extents shape = top_k_shape(p_, m.k, c_.keepdims, t.inner);
      t.values = &add("top_k.values", part_path(alone ? c_.output : path, "values"), type, shape);
      t.indices = &add("top_k.indices", part_path(alone ? c_.output : path, "indices"), element::int64, shape);
      return t;
    }
    if (m.name == "moments") return {&add(m.name, path, type, with_axis(p_, m.name, 3))};
    if (m.name == "histogram") return {&add(m.name, path, type, with_axis(p_, m.name, m.bins))};
    return {&add(m.name, path, type, p_.kept)};
  }
  result& add(const std::string& name, std::string path, element type, const extents& shape) {
    result& r = outputs_.add(std::move(path), type, shape);
    answers.push_back({name, &r});
    return r;
  }

  const reduce_command& c_;
  const plan& p_;
  results& outputs_;
};

/// Reduces a view over `axes`; its first row is row `first` of the results.
template <class X, class T>
void fold_view(const workers& ex, const view<const T>& x, const extents& axes, const several<X>& m, index first) {
  reduce_axes(
      ex, x, axes, [&](index row, const auto& state) { m.answer(first + row, state); }, m);
}

/// Reduces a stream in C order over its last axes: `rows` runs of `length` elements. Takes the memory of one block.
template <class X, class T>
void fold_stream(const workers& ex, stream& in, const plan& p, const several<X>& m, progress& shown) {
  constexpr index block = 256 * tile_elements;
  std::vector<T> elements(static_cast<std::size_t>(std::min(block, std::max<index>(in.remaining(), 1))));
  const auto next = [&](index count) {
    in.read(elements.data(), count);
    shown.advance(count);
    return std::span<const T>(elements.data(), static_cast<std::size_t>(count));
  };
  if (p.length <= block) {
    const index at_once = p.length == 0 ? p.rows : block / p.length;
    for (index row = 0; row < p.rows; row += at_once) {
      const index count = std::min(at_once, p.rows - row);
      const auto piece = next(count * p.length);
      fold_view<X, T>(ex, view<const T>(piece.data(), {count, p.length}), {1}, m, row);
    }
    return;
  }
  for (index row = 0; row < p.rows; ++row) {
    accumulator<several<X>, X> sum(m);
    for (index left = p.length; left > 0;) {
      const index count = std::min(left, block);
      sum.push(ex, next(count));
      left -= count;
    }
    m.answer(row, sum.value());
  }
}

/// The type in which a GPU computes elements of `type`; boolean means a byte that is 0 or 1.
element reduced_in(const std::string& monoid, element type) {
  if (monoid == "any" || monoid == "all" || monoid == "count") return element::boolean;
  if (is_integer(type) && (monoid == "mean" || monoid == "moments" || monoid == "log_sum_exp")) return element::float64;
  return computed_in(type);
}

/// Reduces on a GPU, in one pass for all monoids that compute in the same type.
void fold_on(const gpu& device, const workers& ex, const input& x, const plan& p, const std::vector<reduction>& all) {
  for (const element computed : {element::float32, element::float64, element::int64, element::boolean}) {
    std::vector<reduction> some;
    std::copy_if(all.begin(), all.end(), std::back_inserter(some),
                 [&](const reduction& r) { return reduced_in(r.monoid.name, x.type()) == computed; });
    if (some.empty()) continue;
    with_computed(computed, [&]<class X>(std::type_identity<X>) {
      by_blocks(ex, joined<X>(bytes_of(x), p.axes, x.type()), p.rows, p.length, [&](X* rows, index first, index count) {
        device.reduce({computed, rows, count, p.length}, first, some);
      });
    });
  }
}

void print(const std::vector<answer>& answers, const settings& s, bool in_files) {
  if (s.json) {
    json_object all;
    for (const answer& a : answers) all.add(a.name, in_files ? json_file(*a.values) : json_text(*a.values));
    std::cout << all.text() << '\n';
  } else if (!in_files) {
    for (const answer& a : answers) {
      const std::string text = plain_text(*a.values);
      std::cout << a.name << (text.empty() ? "" : " ") << text << '\n';
    }
  }
}

/// Calls f(element type, accumulation type).
template <class F>
void with_types(element type, const F& f) {
  with_any(type, [&]<class T>(std::type_identity<T>) {
    using X = std::conditional_t<
        std::is_same_v<T, double>, double,
        std::conditional_t<std::is_integral_v<T> || std::is_same_v<T, boolean>, std::int64_t, float>>;
    f(std::type_identity<T>{}, std::type_identity<X>{});
  });
}

bool names(const reduce_command& c, const std::string& name) {
  return std::any_of(c.with.begin(), c.with.end(), [&](const monoid_name& m) { return m.name == name; });
}

}  // namespace

int run(const reduce_command& c, const settings& s) {
  const workers ex(s);
  const auto device = s.cuda ? open_gpu() : nullptr;
  std::optional<stream> arriving;
  std::optional<input> x;
  if (c.x == "-") {
    arriving.emplace(STDIN_FILENO);
  } else {
    x = open_array(c.x);
  }
  const std::string name = x ? x->name() : arriving->name();
  const plan p = make_plan(name, x ? x->about() : arriving->about(), c.axes, c.keepdims);
  results outputs;
  progress shown(s, "regroup reduce " + name, p.about.size());
  const bool streams = names(c, "softmax_mean") ? c.with.size() == 1 && streams_softmax_mean(p.about)
                                                : p.trailing && !p.about.fortran_order;
  if (arriving && (device || !streams)) x = arriving->spool();

  preparation make(c, p, outputs);
  const std::vector<reduction> all = make.all();
  std::vector<answer> answers = std::move(make.answers);
  if (device) fold_on(*device, ex, *x, p, all);
  with_types(p.about.type, [&]<class T, class X>(std::type_identity<T>, std::type_identity<X>) {
    if (device) return;
    several<X> m;
    for (const reduction& r : all) m.add(make_member<X>(r.monoid, r.to));
    if (m.empty()) return;
    if (x) {
      fold_view<X, T>(ex, view_of<T>(*x), p.axes, m, 0);
    } else {
      fold_stream<X, T>(ex, *arriving, p, m, shown);
    }
  });
  for (std::size_t i = 0; i < c.with.size(); ++i) {
    if (c.with[i].name != "softmax_mean") continue;
    const std::string path = c.with.size() == 1 ? c.output : part_path(c.output, "softmax_mean");
    result& r = outputs.add(path, p.about.type, softmax_mean_shape(name, p.about, c.axes, c.keepdims));
    if (x) {
      reduce_softmax_mean(ex, *x, r);
    } else {
      reduce_softmax_mean(ex, *arriving, r, shown);
    }
    // answers are in the order of --with, and a top_k before this one has two
    std::size_t at = i;
    for (std::size_t j = 0; j < i; ++j) at += c.with[j].name == "top_k";
    answers.insert(answers.begin() + static_cast<std::ptrdiff_t>(at), {"softmax_mean", &r});
  }
  outputs.commit();
  print(answers, s, !c.output.empty());
  return 0;
}

}  // namespace regroup::tool
