// SPDX-License-Identifier: Apache-2.0
// Any axes of views of rank 1 to 5, in C order or not, against a loop over indices.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "cases.hpp"
#include "recorder.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/monoids/log_sum_exp.hpp"
#include "regroup/reduce.hpp"

namespace {

using extents = std::vector<std::int64_t>;

extents strides_of(const extents& e, bool fortran) {
  extents s(e.size());
  std::int64_t step = 1;
  for (std::size_t k = 0; k < e.size(); ++k) {
    const std::size_t a = fortran ? k : e.size() - 1 - k;
    s[a] = step;
    step *= e[a];
  }
  return s;
}

/// All offsets in C order of the chosen axes.
std::vector<std::int64_t> offsets(const extents& e, const extents& s, const std::vector<bool>& chosen) {
  std::vector<std::int64_t> found = {0};
  for (std::size_t a = 0; a < e.size(); ++a) {
    if (!chosen[a]) continue;
    std::vector<std::int64_t> deeper;
    for (const auto base : found) {
      for (std::int64_t i = 0; i < e[a]; ++i) deeper.push_back(base + i * s[a]);
    }
    found = deeper;
  }
  return found;
}

template <order::rule Rule>
void one(const extents& e, unsigned mask, bool fortran, bool negative) {
  std::int64_t size = 1;
  for (const auto extent : e) size *= extent;
  const auto xs = order::elements(size);
  const auto s = strides_of(e, fortran);
  std::vector<bool> inner(e.size());
  std::vector<std::int64_t> axes;
  for (std::size_t a = 0; a < e.size(); ++a) {
    inner[a] = ((mask >> a) & 1u) != 0;
    if (inner[a]) axes.push_back(static_cast<std::int64_t>(a) - (negative ? static_cast<std::int64_t>(e.size()) : 0));
  }
  auto outer = inner;
  outer.flip();
  std::vector<order::word> trees;
  for (const auto base : offsets(e, s, outer)) {
    std::vector<order::word> row;
    for (const auto offset : offsets(e, s, inner)) row.push_back(xs[static_cast<std::size_t>(base + offset)]);
    trees.push_back(order::expected<Rule>(row));
  }
  const regroup::view<const order::word> x(xs.data(), regroup::shape(e), regroup::shape(s));
  order::for_some_executors([&](const auto& ex, const std::string& name) {
    std::vector<order::word> out(trees.size());
    regroup::reduce_axes(ex, x, regroup::shape(axes), out, order::hashed<Rule>{});
    EXPECT_EQ(out, trees) << name << ", shape " << regroup::to_string(x.extents()) << ", axes mask " << mask
                          << (fortran ? ", Fortran order" : "");
    if (axes.size() > 1) {
      std::reverse(axes.begin(), axes.end());
      std::fill(out.begin(), out.end(), 0);
      regroup::reduce_axes(ex, x, regroup::shape(axes), out, order::hashed<Rule>{});
      EXPECT_EQ(out, trees) << "axes in another order";
    }
  });
}

template <order::rule Rule>
void every_subset(const extents& e) {
  for (unsigned mask = 1; mask < (1u << e.size()); ++mask) {
    one<Rule>(e, mask, false, mask % 2 == 0);
    one<Rule>(e, mask, true, mask % 2 == 1);
  }
}

template <order::rule Rule>
void every_shape() {
  every_subset<Rule>({300});
  every_subset<Rule>({70, 129});
  every_subset<Rule>({5, 131, 40});
  every_subset<Rule>({3, 5, 7, 11});
  every_subset<Rule>({4, 1, 33, 2, 9});
  every_subset<Rule>({3, 0, 4});
  one<Rule>({3, 5000, 4}, 2, false, false);
  one<Rule>({90, 3, 95}, 5, false, true);
  for (const std::int64_t run : {767, 768, 1001, 4096, 9000}) {  // long runs, of more slices than go together, or of one
    one<Rule>({3, 70, run}, 5, false, false);
    one<Rule>({9, 1, 2, run}, 9, false, false);
  }
  one<Rule>({9, 3, 600, 5}, 5, false, false);  // slices side by side
  one<Rule>({6, 2, 800, 150}, 5, false, false);
  one<Rule>({6, 150, 800, 2}, 5, true, false);
}

}  // namespace

TEST(axes, contiguous_pieces) { every_shape<order::rule::pieces>(); }
TEST(axes, striped_lanes) { every_shape<order::rule::striped>(); }
TEST(axes, tile_lift) { every_shape<order::rule::tile>(); }

TEST(axes, a_hole_between_rows_and_a_broadcast_axis) {
  const auto xs = order::elements(10'000);
  std::vector<order::word> trees;
  for (std::int64_t j = 0; j < 7; ++j) {
    std::vector<order::word> row;
    for (std::int64_t i = 0; i < 90; ++i) {
      for (int repeat = 0; repeat < 3; ++repeat) row.push_back(xs[static_cast<std::size_t>(100 * i + 2 * j)]);
    }
    trees.push_back(order::expected<order::rule::striped>(row));
  }
  std::vector<order::word> out(7);
  regroup::reduce_axes(regroup::par, regroup::view<const order::word>(xs.data(), {90, 7, 3}, {100, 2, 0}), {0, 2}, out,
                       order::hashed<order::rule::striped>{});
  EXPECT_EQ(out, trees);
}

/// Whether any element is above zero.
struct any_above_zero {
  static constexpr bool is_commutative = true;
  constexpr bool identity() const { return false; }
  constexpr bool operator()(bool a, bool b) const { return a || b; }
  constexpr bool lift(float x) const { return x > 0; }
};

/// Slices of other types and states than words have the bits of each copied and folded alone.
template <class T, class M>
void slices_like_rows(const regroup::shape& extents, const M& m, const T& from) {
  const std::int64_t a = extents[0], b = extents[1], c = extents[2], d = extents[3];
  std::vector<T> xs(static_cast<std::size_t>(a * b * c * d), from);
  for (std::size_t i = 0; i < xs.size(); ++i) xs[i] = static_cast<T>(static_cast<float>((i * 7919) % 1000) / 64.0f - 5.0f);
  const auto out = std::make_unique<regroup::answer_of<M>[]>(static_cast<std::size_t>(b * d));
  const regroup::view<regroup::answer_of<M>> answers(out.get(), {b * d});
  for (const std::int64_t sign : {1, -1}) {  // the second axis backwards
    const auto* const first = xs.data() + (sign < 0 ? (b - 1) * c * d : 0);
    const regroup::view<const T> x(first, extents, {b * c * d, sign * c * d, d, 1});
    regroup::reduce_axes(regroup::par.with_threads(2), x, {0, 2}, answers, m);
    for (std::int64_t r = 0; r < b * d; ++r) {
      std::vector<T> one;
      for (std::int64_t i = 0; i < a * c; ++i) one.push_back(x(i / c, r / d, i % c, r % d));
      EXPECT_EQ(answers(r), regroup::reduce(regroup::seq, one, m)) << r << ", " << sign;
    }
  }
}
TEST(axes, slices_of_any_type) {
  for (const regroup::shape& extents : {regroup::shape{3, 40, 900, 1}, {5, 4, 30, 7}, {3, 2, 1500, 40}}) {
    slices_like_rows(extents, regroup::plus<float>{}, regroup::bfloat16{});
    slices_like_rows(extents, regroup::maximum<float>{}, regroup::float16{});
    slices_like_rows(extents, regroup::log_sum_exp<float>{}, regroup::float16{});
    slices_like_rows(extents, regroup::plus<double>{}, std::int8_t{});
    slices_like_rows(extents, any_above_zero{}, 0.0f);
  }
}

TEST(axes, rows_with_holes_between_them) {
  const auto xs = order::elements(9 * 2000);
  for (const std::int64_t run : {300, 768, 1900, 2000}) {
    std::vector<order::word> all;
    for (std::int64_t i = 0; i < 9; ++i) all.insert(all.end(), xs.begin() + 2000 * i, xs.begin() + 2000 * i + run);
    order::for_some_executors([&](const auto& ex, const std::string& name) {
      const order::hashed<order::rule::striped> m;
      EXPECT_EQ(regroup::reduce(ex, regroup::view<const order::word>(xs.data(), {9, run}, {2000, 1}), m),
                order::expected<order::rule::striped>(all))
          << name << ", " << run;
    });
  }
}

TEST(axes, reduce_of_any_rank_goes_in_c_order) {
  const auto xs = order::elements(3 * 70 * 40);
  std::vector<order::word> turned;
  for (std::int64_t i = 0; i < 40; ++i) {
    for (std::int64_t j = 0; j < 210; ++j) turned.push_back(xs[static_cast<std::size_t>(40 * j + i)]);
  }
  order::for_some_executors([&](const auto& ex, const std::string& name) {
    const order::hashed<order::rule::pieces> m;
    EXPECT_EQ(regroup::reduce(ex, regroup::view<const order::word>(xs.data(), {3, 70, 40}), m),
              order::expected<order::rule::pieces>(xs))
        << name;
    EXPECT_EQ(regroup::reduce(ex, regroup::view<const order::word>(xs.data(), {40, 3, 70}, {1, 2800, 40}), m),
              order::expected<order::rule::pieces>(turned))
        << name;
    EXPECT_EQ(regroup::reduce(ex, regroup::view<const order::word>(xs.data(), regroup::shape{}), m), xs[0]) << name;
  });
}
