// SPDX-License-Identifier: Apache-2.0
// A program's own functions beside its own types, named as the library's are, are not called instead of these.
#include <gtest/gtest.h>

#include <span>
#include <tuple>
#include <vector>

#include "regroup/regroup.hpp"

namespace others {

struct item {
  double weight;
};
struct total {
  double weight;
};
struct sum {
  static constexpr bool is_commutative = true;
  constexpr total identity() const { return {0}; }
  constexpr total lift(const item& x) const { return {x.weight}; }
  constexpr total operator()(total a, total b) const { return {a.weight + b.weight}; }
  constexpr double lower(total s) const { return s.weight; }
};
struct ordered : sum {
  static constexpr bool is_commutative = false;
};
struct quick {  // whose elements are states as they are
  static constexpr bool is_commutative = true;
  static constexpr bool is_quick = true;
  constexpr total identity() const { return {0}; }
  constexpr total operator()(total a, total b) const { return {a.weight + b.weight}; }
};
constexpr auto weight_of = [](const item& x) { return x; };

#define REGROUP_NOT_THESE(name) \
  template <class... A>         \
  void name(A&&...) = delete;
REGROUP_NOT_THESE(widen)
REGROUP_NOT_THESE(project)
REGROUP_NOT_THESE(lift)
REGROUP_NOT_THESE(lower)
REGROUP_NOT_THESE(append)
REGROUP_NOT_THESE(contiguous)
REGROUP_NOT_THESE(contiguous_from)
REGROUP_NOT_THESE(rows)
REGROUP_NOT_THESE(leaf)
REGROUP_NOT_THESE(run)
REGROUP_NOT_THESE(fold)
REGROUP_NOT_THESE(scan)
REGROUP_NOT_THESE(output)
REGROUP_NOT_THESE(transpose)
REGROUP_NOT_THESE(writable)
REGROUP_NOT_THESE(perfect)
REGROUP_NOT_THESE(joined)
REGROUP_NOT_THESE(copy)
REGROUP_NOT_THESE(copy_elements)
REGROUP_NOT_THESE(with_tile)
REGROUP_NOT_THESE(fold_leaves)
REGROUP_NOT_THESE(sink_some)
REGROUP_NOT_THESE(fold_source)
REGROUP_NOT_THESE(fold_tiles)
REGROUP_NOT_THESE(rows_of_chunk)
REGROUP_NOT_THESE(leaf_of)
REGROUP_NOT_THESE(leaf_after)
REGROUP_NOT_THESE(set_apart)
REGROUP_NOT_THESE(members_of)
REGROUP_NOT_THESE(each_scalar)
REGROUP_NOT_THESE(assembled)
REGROUP_NOT_THESE(put_back)
REGROUP_NOT_THESE(pack_rows)
REGROUP_NOT_THESE(unpack_rows)
REGROUP_NOT_THESE(packed)
REGROUP_NOT_THESE(beside)
REGROUP_NOT_THESE(find_pages_ahead)
REGROUP_NOT_THESE(fetch_lines)
REGROUP_NOT_THESE(require_apart)
REGROUP_NOT_THESE(memory_read)
REGROUP_NOT_THESE(coalesced)
REGROUP_NOT_THESE(with_slices)
REGROUP_NOT_THESE(with_members)
REGROUP_NOT_THESE(with_widened)
REGROUP_NOT_THESE(are_adjacent)
REGROUP_NOT_THESE(short_leaf)
REGROUP_NOT_THESE(halved_leaf)
REGROUP_NOT_THESE(each_lane)
REGROUP_NOT_THESE(get)

}  // namespace others

TEST(others_names, are_not_called) {
  const std::vector<others::item> xs(9000, {0.5});
  const regroup::view x(xs.data(), {90, 100});
  std::vector<double> of_rows(90), of_columns(100), prefixes(9000);
  const auto each = [&](const auto& ex, const auto& m) {
    EXPECT_EQ(regroup::reduce(ex, xs, m), 4500);
    EXPECT_EQ(regroup::reduce(ex, xs, m, others::weight_of), 4500);
    regroup::reduce_rows(ex, x, of_rows, m);
    EXPECT_EQ(of_rows[89], 50);
    regroup::reduce_axes(ex, x, {0}, of_columns, m, others::weight_of);
    EXPECT_EQ(of_columns[99], 45);
    regroup::inclusive_scan(ex, xs, prefixes, m);
    EXPECT_EQ(prefixes[8999], 4500);
    regroup::inclusive_scan_axis(ex, x, 0, regroup::view(prefixes.data(), {90, 100}), m);
    EXPECT_EQ(prefixes[8999], 45);
    EXPECT_EQ(regroup::reduce(ex, regroup::view(xs.data(), {4500}, {2}), m), 2250);
    regroup::reduce_segments(ex, xs, std::vector<regroup::index>{0, 10, 9000}, std::span(prefixes).first(2), m);
    EXPECT_EQ(prefixes[1], 4495);
    regroup::accumulator acc{m};
    acc.push(xs);
    EXPECT_EQ(acc.value(), 4500);
  };
  each(regroup::seq, others::sum{});
  each(regroup::par, others::sum{});
  each(regroup::par, others::ordered{});

  const std::vector<others::total> totals(9000, {0.5});
  std::vector<others::total> of_each(90);
  regroup::reduce_rows(regroup::par, regroup::view(totals.data(), {90, 100}), of_each, others::quick{});
  EXPECT_EQ(of_each[89].weight, 50);
  std::vector<regroup::index> offsets;
  for (regroup::index s = 0; s <= 90; ++s) offsets.push_back(100 * s);
  regroup::reduce_segments(regroup::par, totals, offsets, of_each, others::quick{});
  EXPECT_EQ(of_each[89].weight, 50);
  const auto both = regroup::reduce(regroup::par, totals, regroup::fanout{others::quick{}, others::quick{}});
  EXPECT_EQ(std::get<1>(both).weight, 4500);
}
