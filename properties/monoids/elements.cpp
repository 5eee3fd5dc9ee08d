// SPDX-License-Identifier: Apache-2.0
// A monoid names its element type, so an accumulator needs no type: it holds those elements, and has the bits of reduce.
#include <gtest/gtest.h>

#include <array>
#include <concepts>
#include <cstddef>
#include <utility>
#include <vector>

#include "regroup/regroup.hpp"

namespace regroup {
namespace {

template <class M>
concept names_element = requires { typename M::element; };

template <class X>
std::vector<X> some() {
  std::vector<X> xs;
  for (index i = 0; i < 5000; ++i) {
    const auto value = static_cast<float>(i * 37 % 101) / 16 - 3;
    if constexpr (requires(X x) { x.position; }) {
      xs.push_back({value, i});
    } else if constexpr (requires(X x) { x.b; }) {
      xs.push_back({value / 4, value});
    } else {
      xs.push_back(static_cast<X>(value));
    }
  }
  return xs;
}

template <class Answer>
std::vector<std::byte> bytes_of(const Answer& answer) {  // without what lies between its members
  streams::writer bytes;
  bytes.put(answer);
  return std::move(bytes).finish();
}

template <class X, class M>
void expect_streams(const M& m) {
  static_assert(std::same_as<lifted_element<M>, X>);
  const std::vector<X> xs = some<X>();
  accumulator stream{m};
  stream.push(xs);
  const auto whole = stream.value();
  const auto reduced = reduce(seq, xs, m);
  if constexpr (requires { whole == reduced; }) {
    EXPECT_EQ(whole, reduced);
  } else {
    EXPECT_EQ(bytes_of(whole), bytes_of(reduced));
  }
}

}  // namespace

TEST(elements, of_one_number) {
  expect_streams<float>(plus<float>{});
  expect_streams<int>(maximum<int>{});
  expect_streams<float>(mean<float>{});
  expect_streams<double>(moments<double>{});
  expect_streams<float>(minmax<float>{});
  expect_streams<double>(compensated_plus<double>{});
  expect_streams<float>(scaled_product<float>{});
  expect_streams<float>(log_sum_exp<float>{});
  expect_streams<double>(histogram<double>{-2, 2, 9});
}

TEST(elements, with_positions_and_pairs) {
  expect_streams<indexed<float>>(argmin<float>{});
  expect_streams<affine_map<double>>(affine<double>{});
  const std::vector<indexed<float>> xs = some<indexed<float>>();
  accumulator three{top_k<float>{3}};
  three.push(xs);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(three.value()[i].position, reduce(seq, xs, top_k<float>{3})[i].position);
}

TEST(elements, of_all_members) {
  expect_streams<double>(fanout{plus<float>{}, plus<double>{}});
  expect_streams<float>(fanout{plus<float>{}, log_sum_exp<float>{}, fanout{maximum<float>{}, count{}}});
  static_assert(!names_element<fanout<count, argmin<float>>>);
  accumulator of_bool{fanout{regroup::any{}, regroup::all{}}};
  const std::array flags{true, false};
  of_bool.push(flags);
  accumulator more{fanout{regroup::any{}, regroup::all{}}, 2};
  more.push(flags);
  of_bool.merge(more);
  EXPECT_EQ(of_bool.value(), std::tuple(true, false));
  accumulator<fanout<plus<float>, maximum<int>>, int> named{fanout{plus<float>{}, maximum<int>{}}};
  named.push(std::vector<int>{16'777'217});
  EXPECT_EQ(std::get<1>(named.value()), 16'777'217);
}

}  // namespace regroup
