// SPDX-License-Identifier: Apache-2.0
// Elements in packs of 32 bytes, as the unordered mode gives them to CUB: every element is in exactly one pack, from any
// address; the sum is within the bound of the definition; special values are as everywhere.
#include "regroup/cuda/packs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "../order/digest.hpp"
#include "regroup/laws/bounds.hpp"
#include "regroup/monoids/affine.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/monoids/log_sum_exp.hpp"

namespace {

namespace cuda = regroup::cuda;
using regroup::bfloat16;
using regroup::float16;
using sum = regroup::log_sum_exp<float>;

/// A copy of some elements that begins `offset` elements after a multiple of 32 bytes, and ends where memory does.
template <class X>
class placed {
 public:
  placed(const std::vector<X>& xs, std::size_t offset)
      : memory_(new (std::align_val_t{32}) unsigned char[(offset + xs.size()) * sizeof(X)]), offset_(offset) {
    std::uninitialized_copy(xs.begin(), xs.end(), first());
  }
  ~placed() { ::operator delete[](memory_, std::align_val_t{32}); }
  placed(const placed&) = delete;
  placed& operator=(const placed&) = delete;
  [[nodiscard]] X* first() const { return reinterpret_cast<X*>(memory_) + offset_; }

 private:
  unsigned char* memory_;
  std::size_t offset_;
};

/// Counts elements and adds them; a tile is lifted at once.
struct tally {
  struct state {
    std::int64_t count, total, tiles;
  };
  static constexpr bool is_commutative = true;
  constexpr state identity() const { return {0, 0, 0}; }
  constexpr state lift(float x) const { return {1, static_cast<std::int64_t>(x), 0}; }
  constexpr state operator()(state a, state b) const {
    return {a.count + b.count, a.total + b.total, a.tiles + b.tiles};
  }
  template <class Tile>
  constexpr state lift_tile(const Tile& tile) const {
    const state s = tile.fold(*this);
    return {tile.size() == s.count && tile[s.count - 1] >= tile[0] ? s.count : -1'000'000, s.total, 1};
  }
};

template <class M, class X>
regroup::state_of<M> folded(const M& m, const X* first, std::size_t n) {
  const cuda::lift_packs<M, X> lift(m, first, static_cast<std::int64_t>(n));
  auto s = m.identity();
  for (std::int64_t i = 0; i < lift.packs(); ++i) s = m(s, lift(i));
  return s;
}

template <class X>
void every_address_and_length() {
  for (std::size_t offset = 0; offset < 32 / sizeof(X); ++offset) {
    for (std::size_t n = 0; n < 40; ++n) {
      std::vector<X> xs;
      for (std::size_t i = 1; i <= n; ++i) xs.push_back(X(static_cast<float>(i)));
      const placed<X> x(xs, offset);
      const auto s = folded(tally{}, x.first(), n);
      const auto count = static_cast<std::int64_t>(n);
      EXPECT_EQ(s.count, count) << n << " from " << offset;
      EXPECT_EQ(s.total, count * (count + 1) / 2) << n << " from " << offset;
      EXPECT_EQ(s.tiles, n == 0 ? 0 : static_cast<std::int64_t>((offset * sizeof(X) + n * sizeof(X) + 31) / 32));
    }
  }
}

template <class X>
void within_the_bound() {
  for (const std::size_t n : {1U, 7U, 8U, 9U, 1000U, 4097U}) {
    std::vector<X> xs;
    for (const float x : order::numbers<float>(order::kind::plain, static_cast<std::int64_t>(n), n)) xs.push_back(X(x));
    const placed<X> x(xs, 3);
    const float got = sum{}.lower(folded(sum{}, x.first(), n));
    long double highest = -std::numeric_limits<long double>::infinity(), s = 0;
    for (const X e : xs) highest = std::max<long double>(highest, regroup::widen(e));
    for (const X e : xs) s += std::exp(regroup::widen(e) - highest);
    const auto depth = static_cast<std::int64_t>(8 + (n + 3) / 4 + 1);
    const auto bound = regroup::laws::bound<sum>::answer(sum{}, std::span<const X>(xs), depth);
    EXPECT_LE(std::fabs(got - (highest + std::log(s))), bound[0]) << n;
  }
}

}  // namespace

TEST(packs, hold_every_element_once) {
  every_address_and_length<float16>();
  every_address_and_length<bfloat16>();
  every_address_and_length<float>();
}

TEST(packs, sum_within_the_bound) {
  within_the_bound<float16>();
  within_the_bound<bfloat16>();
  within_the_bound<float>();
}

TEST(packs, of_special_values) {
  constexpr float infinity = std::numeric_limits<float>::infinity(), none = std::numeric_limits<float>::quiet_NaN();
  const auto of = [](std::vector<float> xs, float other) {
    xs.resize(21, other);
    std::rotate(xs.begin(), xs.begin() + 7, xs.end());
    return sum{}.lower(folded(sum{}, xs.data(), xs.size()));
  };
  EXPECT_EQ(of({}, -infinity), -infinity);
  EXPECT_EQ(of({5}, -infinity), 5);
  EXPECT_EQ(of({infinity}, 1), infinity);
  EXPECT_TRUE(std::isnan(of({none}, 1)));
  EXPECT_TRUE(std::isnan(of({none, infinity}, -infinity)));
  EXPECT_EQ(sum{}.lower(folded(sum{}, static_cast<const float*>(nullptr), 0)), -infinity);
}

TEST(packs, are_for_tile_lifts_of_plain_floats) {
  struct half {
    constexpr float operator()(float x) const { return x / 2; }
  };
  EXPECT_TRUE((cuda::come_in_packs<sum, bfloat16, std::identity>));
  EXPECT_TRUE((cuda::come_in_packs<sum, float, std::identity>));
  EXPECT_FALSE((cuda::come_in_packs<sum, float, half>));
  EXPECT_FALSE((cuda::come_in_packs<regroup::plus<float>, float, std::identity>));
  EXPECT_FALSE((cuda::come_in_packs<regroup::log_sum_exp<double>, double, std::identity>));
}
