// SPDX-License-Identifier: Apache-2.0
// A failure on one rank is an exception on all of them; none waits for ever, and the next call works.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "parts.hpp"
#include "regroup/mpi/softmax.hpp"
#include "regroup/regroup.hpp"

namespace ranks_test {
namespace {


/// A sum that gives up on one rank, past some sum.
struct fragile {
  int fails_on;
  float past = 0;
  static constexpr bool is_commutative = true;
  float identity() const { return 0; }
  float lift(float x) const { return x; }
  float operator()(float a, float b) const {
    if (all().rank() == fails_on && a + b > past) throw std::runtime_error("enough");
    return a + b;
  }
};

template <class Call>
void expect_failure_of(int rank, const Call& call) {
  try {
    call();
    FAIL() << "nothing was thrown";
  } catch (const regroup::mpi::error& e) {
    EXPECT_NE(all().rank(), rank);
    EXPECT_EQ(std::string(e.what()), "rank " + std::to_string(rank) + " of " + std::to_string(all().size()) +
                                         " failed with an exception of its own, so there is no result on any rank");
  } catch (const std::runtime_error& e) {
    EXPECT_EQ(all().rank(), rank);
    EXPECT_STREQ(e.what(), "enough");
  }
  EXPECT_EQ(regroup::reduce(all(), std::vector{1}, regroup::plus<int>{}), all().size());
}

TEST(errors, an_operator_that_throws) {
  const std::vector<float> x(9000, 1.0f);
  for (int rank = 0; rank < all().size(); ++rank) {
    std::vector<float> y(x.size());
    expect_failure_of(rank, [&] { (void)regroup::reduce(all(), x, fragile{rank}); });
    expect_failure_of(rank, [&] { regroup::inclusive_scan(all(), x, y, fragile{rank}); });
    expect_failure_of(rank, [&] { regroup::exclusive_scan(all(), x, y, fragile{rank}); });
  }
}

TEST(errors, an_operator_that_throws_when_all_is_there) {
  const std::vector<float> x(5000, 1.0f);
  const auto whole = static_cast<float>(all().size() * 5000);
  expect_failure_of(0, [&] { (void)regroup::reduce(all(), x, fragile{0, whole - 1}); });
}

TEST(errors, an_output_that_throws) {
  const std::vector<float> x(3000, 1.0f);
  for (int rank = 0; rank < all().size(); ++rank) {
    expect_failure_of(rank, [&] {
      regroup::reduce_rows(
          all(), regroup::view(x.data(), {3000, 1}),
          [&](index row, float) {
            if (all().rank() == rank && row == 700) throw std::runtime_error("enough");
          },
          regroup::plus<float>{});
    });
    expect_failure_of(rank, [&] {
      regroup::logsumexp(all(), regroup::view(x.data(), {3000, 1}), [&](index row, float) {
        if (all().rank() == rank && row == 700) throw std::runtime_error("enough");
      });
    });
  }
}

TEST(errors, numbers_of_rows) {
  if (all().size() == 1) return;
  const index rows = all().rank() == 1 ? 4 : 3;
  const std::vector<float> x(static_cast<std::size_t>(rows * 5));
  std::vector<float> out(static_cast<std::size_t>(rows));
  try {
    regroup::reduce_rows(all(), regroup::view(x.data(), {rows, 5}), out, regroup::plus<float>{});
    FAIL() << "nothing was thrown";
  } catch (const regroup::shape_error& e) {
    EXPECT_EQ(std::string(e.what()), "every rank brings the same number of rows, or segments, or positions on the axes that "
                                     "stay; this one, rank " + std::to_string(all().rank()) + ", has " + std::to_string(rows) +
                                         ", others from 3 to 4");
  }
}

TEST(errors, two_groups_are_no_order) {
  if (all().size() == 1) return;
  MPI_Comm half = MPI_COMM_NULL, between = MPI_COMM_NULL;
  const int side = all().rank() % 2;
  ASSERT_EQ(MPI_Comm_split(MPI_COMM_WORLD, side, all().rank(), &half), MPI_SUCCESS);
  ASSERT_EQ(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 7, &between), MPI_SUCCESS);
  EXPECT_THROW(regroup::mpi::ranks ranks(between), regroup::argument_error);
  const regroup::mpi::ranks some(half, regroup::seq);
  EXPECT_EQ(regroup::reduce(some, std::vector{1}, regroup::plus<int>{}), some.size());
  MPI_Comm_free(&between);
  MPI_Comm_free(&half);
}

}  // namespace
}  // namespace ranks_test
