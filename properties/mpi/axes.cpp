// SPDX-License-Identifier: Apache-2.0
// Arrays that ranks cut along one axis: reductions of any axes of which it is the first, and scans along it, have the bits of
// `seq` over the whole, and a scan writes a rank's part and nothing beside it.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "../order/digest.hpp"
#include "parts.hpp"
#include "regroup/regroup.hpp"

namespace ranks_test {
namespace {

using order::digest_of;
using regroup::seq;
using regroup::shape;

/// Tiles are cut in some, in others there are many lines, or lines of nothing, or fewer elements than ranks.
std::vector<cut_array> cut_arrays() {
  order::dice random(61);
  return {{{20'000, 7}, 0, random}, {{9, 1030}, 0, random},      {{2, 3}, 0, random},       {{0, 5}, 0, random},
          {{50, 0}, 0, random},     {{500, 3, 4}, 0, random},    {{3, 5000, 2}, 1, random}, {{7, 90, 3}, 1, random},
          {{4, 3, 5001}, 2, random}, {{2, 5, 20, 3}, 2, random}};
}

/// Numbers, or pairs of them.
template <class X>
std::vector<X> elements(index n) {
  std::vector<X> xs;
  for (const float x : order::numbers<float>(order::kind::plain, n, static_cast<std::uint64_t>(n) + 5)) {
    if constexpr (requires { X{x, x}; }) {
      xs.push_back({0.9f + 0.01f * x, x});
    } else {
      xs.push_back(X(x));
    }
  }
  return xs;
}

template <class X, class M>
void reductions(const M& m) {
  for (const cut_array& a : cut_arrays()) {
    const auto x = elements<X>(a.size());
    const int rank = a.extents.size(), axis = a.axis;
    // Of axes before the one that is cut a rank's positions would not stand one after another.
    std::vector<shape> sets = {{axis}, {axis - rank}};
    if (axis + 1 < rank) sets.insert(sets.end(), {shape{axis, axis + 1}, shape{-1, axis}});
    if (axis + 2 < rank) sets.insert(sets.end(), {shape{axis, axis + 2}, shape{axis + 2, axis, axis + 1}});
    for (const shape& axes : sets) {
      index count = 1;
      for (int b = 0; b < rank; ++b) {
        if (std::ranges::find(axes, b) == axes.end() && std::ranges::find(axes, b - rank) == axes.end()) count *= a.extents[b];
      }
      std::vector<regroup::answer_of<M>> expected(static_cast<std::size_t>(count)), got(expected.size());
      regroup::reduce_axes(seq, a.whole(x.data()), axes, expected, m);
      regroup::reduce_axes(all(), a.part(x.data()), axes, got, m);
      EXPECT_EQ(digest_of(got), digest_of(expected)) << a.name() << ", axes " << to_string(axes);
    }
  }
}

TEST(axes, of_sums) { reductions<float>(regroup::plus<float>{}); }
TEST(axes, of_maps_that_do_not_commute) { reductions<regroup::affine_map<float>>(regroup::affine<float>{}); }

template <class M, class In, class Out>
void scan_axis(const auto& on, const In& in, index axis, const Out& out, const M& m, bool inclusive) {
  if (inclusive) {
    regroup::inclusive_scan_axis(on, in, axis, out, m);
  } else {
    regroup::exclusive_scan_axis(on, in, axis, out, m);
  }
}

/// Both scans into other memory, and one in place.
template <class X, class M>
void scans(const M& m) {
  for (const cut_array& a : cut_arrays()) {
    const auto x = elements<X>(a.size());
    std::vector<X> whole(x.size());
    const auto expect_part = [&](const std::vector<X>& got, const std::vector<X>& before, const char* what) {
      EXPECT_EQ(digest_of(got), digest_of(a.with_part_of(whole, before))) << what << ", " << a.name();
    };
    auto before = elements<X>(a.size() + 1);
    before.resize(x.size());
    for (const bool inclusive : {true, false}) {
      scan_axis(seq, a.whole(x.data()), a.axis, a.whole(whole.data()), m, inclusive);
      auto got = before;
      scan_axis(all(), a.part(x.data()), a.axis, a.part(got.data()), m, inclusive);
      expect_part(got, before, inclusive ? "inclusive" : "exclusive");
    }
    auto in_place = x;
    scan_axis(all(), a.part(in_place.data()), a.axis - a.extents.size(), a.part(in_place.data()), m, false);
    expect_part(in_place, x, "in place");
  }
}

TEST(scans_along_an_axis, of_log_sums) { scans<float>(regroup::log_sum_exp<float>{}); }
TEST(scans_along_an_axis, of_maps_that_do_not_commute) { scans<regroup::affine_map<float>>(regroup::affine<float>{}); }

}  // namespace
}  // namespace ranks_test
