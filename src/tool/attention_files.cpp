// SPDX-License-Identifier: Apache-2.0
#include "attention_files.hpp"

#include <algorithm>
#include <string>
#include <type_traits>

#include "typed.hpp"

namespace regroup::tool {
namespace {

std::optional<input> open_optional(const std::string& path) {
  if (path.empty()) return {};
  return open_array(path);
}

std::string described(const input& x) { return x.name() + " with shape " + to_string(x.shape()); }

[[noreturn]] void misfit(const input& a, const input& b, const std::string& what) {
  throw_shape(described(a) + " and " + described(b) + " do not fit: " + what);
}

/// The extent `from_end` axes before the last one; 1 if the rank is too low.
index extent(const input& x, int from_end) {
  const int axis = x.shape().size() - 1 - from_end;
  return axis < 0 ? 1 : x.shape()[axis];
}

attention_shapes shapes_of(const attention_files& f) {
  if (!is_float(f.q.type())) {
    throw_argument(f.q.name() + ": attention does not take " + name_of(f.q.type()) +
                   "; it takes float16, bfloat16, float32 and float64");
  }
  for (const input* x : {&f.k, &f.v}) {
    if (x->type() != f.q.type()) {
      throw_argument(x->name() + " is " + name_of(x->type()) + " but " + f.q.name() + " is " + name_of(f.q.type()) +
                     "; queries, keys and values need one type");
    }
  }
  const int rank = f.q.shape().size();
  if (rank < 2 || rank > 4) {
    throw_shape(f.q.name() + ": queries have the shape (..., heads, queries, d), rank 2 to 4; got " +
                to_string(f.q.shape()));
  }
  const int key_rank = f.table ? 4 : rank;
  for (const input* x : {&f.k, &f.v}) {
    if (x->shape().size() == key_rank) continue;
    if (f.table) {
      throw_shape(x->name() + ": with --page-table, keys and values are pools (pages, heads, page size, d); got " +
                  to_string(x->shape()));
    }
    misfit(f.q, *x, "keys and values have the rank of the queries, " + std::to_string(rank));
  }
  attention_shapes e;
  e.paged = f.table.has_value();
  e.batches = extent(f.q, 3);
  e.heads = extent(f.q, 2);
  e.queries = extent(f.q, 1);
  e.d = extent(f.q, 0);
  e.key_heads = extent(f.k, 2);
  e.keys = extent(f.k, 1);
  e.dv = extent(f.v, 0);
  if (extent(f.k, 0) != e.d)
    misfit(f.q, f.k, "the last extents differ, " + std::to_string(e.d) + " and " + std::to_string(extent(f.k, 0)));
  for (int a = 1; a < key_rank; ++a) {
    if (extent(f.k, a) != extent(f.v, a)) misfit(f.k, f.v, "all extents but the last are equal for keys and values");
  }
  if (!e.paged && extent(f.k, 3) != e.batches) misfit(f.q, f.k, "the batch extents differ");
  if (e.key_heads == 0 ? e.heads != 0 : e.heads % e.key_heads != 0) {
    misfit(f.q, f.k,
           "the " + std::to_string(e.heads) + " heads of the queries are no multiple of the " +
               std::to_string(e.key_heads) + " heads of the keys");
  }
  return e;
}

/// The elements of an integer array in C order.
std::vector<index> integers(const input& x, const char* what) {
  if (!is_integer(x.type())) {
    throw_argument(x.name() + ": " + what + " are int32 or int64; got " + name_of(x.type()));
  }
  std::vector<index> values(static_cast<std::size_t>(x.size()));
  const auto copy = [&]<class T>(std::type_identity<T>) {
    const view<const T> v = view_of<T>(x);
    for (index i = 0; i < v.size(); ++i) {
      values[static_cast<std::size_t>(i)] = v.data()[offset_of(i, v.extents(), v.strides())];
    }
  };
  if (x.type() == element::int32) {
    copy(std::type_identity<std::int32_t>{});
  } else {
    copy(std::type_identity<std::int64_t>{});
  }
  return values;
}

/// The page table, with the entries that no key needs set to 0; the others are checked to lie in the pool. Sets `keys` to
/// pages x page size.
std::vector<index> pages_of(const attention_files& f, const std::vector<index>& lengths, attention_shapes& e) {
  const input& table = *f.table;
  std::vector<index> pages = integers(table, "page tables");
  if (table.shape().size() != 2 || table.shape()[0] != e.batches) {
    throw_shape(table.name() + ": the page table of " + described(f.q) + " has the shape (" +
                std::to_string(e.batches) + ", pages); got " + to_string(table.shape()));
  }
  const index columns = table.shape()[1];
  const index page_size = e.keys;
  if (page_size > 0 && columns > std::numeric_limits<index>::max() / page_size) {
    throw_shape(table.name() + ": the table names more keys than 64 bits count");
  }
  e.keys = columns * page_size;
  const index pool = f.k.shape()[0];
  for (index b = 0; b < e.batches; ++b) {
    const index present = lengths.empty() ? e.keys : std::clamp<index>(lengths[static_cast<std::size_t>(b)], 0, e.keys);
    for (index p = 0; p < columns; ++p) {
      index& page = pages[static_cast<std::size_t>(b * columns + p)];
      if (p * page_size >= present) {
        page = 0;
      } else if (page < 0 || page >= pool) {
        throw_argument(table.name() + ": entry (" + std::to_string(b) + ", " + std::to_string(p) + ") is page " +
                       std::to_string(page) + ", but " +
                       (pool > 0 ? f.k.name() + " has pages 0 to " + std::to_string(pool - 1)
                                 : described(f.k) + " has no pages; give it some, or --kv-lengths of 0"));
      }
    }
  }
  return pages;
}

std::vector<index> lengths_of(const attention_files& f, const attention_shapes& e) {
  if (!f.lengths) return {};
  const std::vector<index> lengths = integers(*f.lengths, "key lengths");
  if (f.lengths->shape().size() != 1 || f.lengths->shape()[0] != e.batches) {
    throw_shape(f.lengths->name() + ": the key lengths of " + described(f.q) + " have the shape (" +
                std::to_string(e.batches) + ",); got " + to_string(f.lengths->shape()));
  }
  return lengths;
}

void check_lengths(const attention_files& f, const std::vector<index>& lengths, const attention_shapes& e) {
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    if (lengths[b] < 0 || lengths[b] > e.keys) {
      throw_argument(f.lengths->name() + ": entry " + std::to_string(b) + " is " + std::to_string(lengths[b]) +
                     "; a length is between 0 and the number of keys, " + std::to_string(e.keys));
    }
  }
}

/// One number a head, of any floating type. A finite number stays finite in the type that q is computed in.
head_numbers numbers_of_heads(const input& x, const std::string& what, const attention_files& f,
                              const attention_shapes& e) {
  if (!is_float(x.type())) {
    throw_argument(x.name() + ": " + what + "s are of any floating type; got " + name_of(x.type()));
  }
  if (!(x.shape() == extents{e.heads})) {
    throw_shape(x.name() + ": the " + what + "s of " + described(f.q) + " have the shape (" + std::to_string(e.heads) +
                ",), one a head; got " + to_string(x.shape()));
  }
  return with_float(x.type(), [&]<class T>(std::type_identity<T>) {
    const view<const T> numbers = view_of<T>(x);
    for (index head = 0; head < e.heads; ++head) {
      const auto number = static_cast<double>(regroup::widen(numbers(head)));
      if (std::isfinite(number)) require_fits(x.name(), f.q.type(), ("the " + what).c_str(), number);
    }
    return head_numbers(numbers);
  });
}

attention_mask mask_of_file(const attention_files& f, const attention_shapes& e) {
  const input& m = *f.mask;
  if (is_integer(m.type())) {
    throw_argument(m.name() + ": a mask is bool (true: attend) or floating (added); got " + name_of(m.type()));
  }
  const index full[] = {e.keys, e.queries, e.heads, e.batches};
  const int rank = f.q.shape().size();
  bool fits = m.shape().size() <= rank;
  for (int a = 0; fits && a < m.shape().size(); ++a) fits = extent(m, a) == 1 || extent(m, a) == full[a];
  if (!fits) {
    extents wanted;
    for (int a = rank - 1; a >= 0; --a) wanted.push_back(full[a]);
    throw_shape(described(m) + " does not broadcast to (..., heads, queries, keys), here " + to_string(wanted));
  }
  if (m.type() == element::boolean) return regroup::boolean(view_of<std::uint8_t>(m));
  return with_float(m.type(), [&]<class T>(std::type_identity<T>) {
    using number = std::conditional_t<std::is_same_v<T, double>, mask_number, T>;
    return attention_mask(additive(view_of<number>(m)));
  });
}

}  // namespace

attention_files::attention_files(const attention_command& c)
    : q(open_array(c.q)),
      k(open_array(c.k)),
      v(open_array(c.v)),
      mask(open_optional(c.mask)),
      alibi(open_optional(c.alibi)),
      sinks(open_optional(c.sinks)),
      lengths(open_optional(c.kv_lengths)),
      table(open_optional(c.page_table)) {}

attention_shapes check(attention_files& f) {
  attention_shapes e = shapes_of(f);
  e.lengths = lengths_of(f, e);
  if (e.paged) e.table = pages_of(f, e.lengths, e);
  check_lengths(f, e.lengths, e);
  const bool as_long_a_mask = f.mask && extent(*f.mask, 0) == e.keys;
  if (e.paged && f.k.shape()[0] == 0 && !as_long_a_mask) {
    for (input* const x : {&f.k, &f.v}) {
      description about = x->about();
      about.shape[2] = 0;
      *x = {x->name(), about, {}};
    }
  }
  return e;
}

attention_mask mask_of(const attention_command& c, const attention_files& f, const attention_shapes& e) {
  std::vector<attention_mask> rules;
  if (c.softcap) rules.push_back(softcap{*c.softcap});
  if (f.alibi) rules.push_back(alibi(numbers_of_heads(*f.alibi, "ALiBi slope", f, e)));
  if (f.mask) rules.push_back(mask_of_file(f, e));
  if (c.causal != causality::none) rules.push_back(causal{c.causal == causality::top_left ? top_left : bottom_right});
  if (c.window) rules.push_back(window{c.window->left, c.window->right});
  return attention_mask::all(std::move(rules));
}

head_numbers sinks_of(const attention_files& f, const attention_shapes& e) {
  return f.sinks ? numbers_of_heads(*f.sinks, "sink", f, e) : head_numbers();
}

}  // namespace regroup::tool
