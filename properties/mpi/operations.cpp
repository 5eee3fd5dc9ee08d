// SPDX-License-Identifier: Apache-2.0
// A monoid as an MPI_Op gives what a fold over the ranks gives, in rank order where it does not commute: exactly for an exact
// one, within the bound for any other.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "parts.hpp"
#include "regroup/laws/bounds.hpp"
#include "regroup/mpi/operation.hpp"
#include "regroup/regroup.hpp"

namespace ranks_test {
namespace {

using map = regroup::affine_map<std::int64_t>;

/// Some maps of each rank.
std::vector<map> maps_of(int rank) {
  std::vector<map> maps;
  for (std::int64_t i = 0; i < 100; ++i) maps.push_back({2 * i + rank + 1, 7 * rank - i});
  return maps;
}
void expect_same(const std::vector<map>& got, const std::vector<map>& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(got[i].a == expected[i].a && got[i].b == expected[i].b) << i;
  }
}

}  // namespace

TEST(mpi_operation, keeps_rank_order) {
  const regroup::affine<std::int64_t> m;
  const regroup::mpi::operation compose{m};
  std::vector<map> whole(100, m.identity()), before, up_to;
  for (int rank = 0; rank < all().size(); ++rank) {
    if (rank == all().rank()) before = whole;
    const auto next = maps_of(rank);
    for (std::size_t i = 0; i < next.size(); ++i) whole[i] = m(whole[i], next[i]);
    if (rank == all().rank()) up_to = whole;
  }
  const auto mine = maps_of(all().rank());
  std::vector<map> got(100);
  MPI_Allreduce(mine.data(), got.data(), 100, compose.type(), compose.op(), MPI_COMM_WORLD);
  expect_same(got, whole);
  MPI_Scan(mine.data(), got.data(), 100, compose.type(), compose.op(), MPI_COMM_WORLD);
  expect_same(got, up_to);
  got.assign(100, m.identity());
  MPI_Exscan(mine.data(), got.data(), 100, compose.type(), compose.op(), MPI_COMM_WORLD);
  if (all().rank() > 0) expect_same(got, before);
}

TEST(mpi_operation, is_within_the_bound) {
  const regroup::log_sum_exp<float> m;
  const regroup::mpi::operation join{m};
  const auto x = [](index i) { return 9 * std::sin(static_cast<float>(i)); };
  constexpr index each = 10'000;
  std::vector<float> whole;
  for (index i = 0; i < each * all().size(); ++i) whole.push_back(x(i));
  regroup::accumulator mine{m};
  mine.push(std::span(whole).subspan(static_cast<std::size_t>(each * all().rank()), static_cast<std::size_t>(each)));
  auto state = mine.current();
  MPI_Allreduce(MPI_IN_PLACE, &state, 1, join.type(), join.op(), MPI_COMM_WORLD);
  long double sum = 0;
  for (const float value : whole) sum += std::exp(static_cast<long double>(value));
  const auto allowed = regroup::laws::bound<regroup::log_sum_exp<float>>::answer(m, std::span<const float>(whole), each)[0];
  EXPECT_NEAR(static_cast<double>(m.lower(state)), static_cast<double>(std::log(sum)), static_cast<double>(allowed));
}

}  // namespace ranks_test
