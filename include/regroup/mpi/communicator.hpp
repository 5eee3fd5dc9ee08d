// SPDX-License-Identifier: Apache-2.0
// MPI as the executor over ranks needs it, on the C interface: a communicator of its own, errors as exceptions, and data
// handed from rank to rank in rank order. A function marked "every rank" is collective: all ranks call it, or none. Level:
// rank.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include <mpi.h>

#include "regroup/error.hpp"
#include "regroup/view.hpp"

namespace regroup::mpi {

/// An error reported by the MPI library; also thrown on all other ranks when one rank's part fails.
struct error : regroup::error {
  using regroup::error::error;
};

/// Throws `error` for a return code that is not success.
inline void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw error(std::string(call) + " failed: " + std::string(text, static_cast<std::size_t>(length)));
}

inline bool has_begun() {
  int begun = 0;
  MPI_Initialized(&begun);
  return begun != 0;
}
inline bool has_ended() {
  int ended = 0;
  MPI_Finalized(&ended);
  return ended != 0;
}

/// Initialises MPI until the end of the scope, for programs that do not call MPI_Init themselves. Only the thread that made
/// it may communicate. A rank that leaves the scope by an exception ends all ranks (MPI_Abort), since they would wait for it.
class environment {
 public:
  environment() {
    if (has_begun()) throw_argument("MPI begins once a program, and has: leave out the mpi::environment, or MPI_Init");
    int provided = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
  }
  environment(const environment&) = delete;
  environment& operator=(const environment&) = delete;
  ~environment() {
    if (std::uncaught_exceptions() > exceptions_) MPI_Abort(MPI_COMM_WORLD, 1);
    if (!has_ended()) MPI_Finalize();
  }

 private:
  int exceptions_ = std::uncaught_exceptions();
};

/// A group of ranks whose messages are separate from all others.
class communicator {
 public:
  /// Every rank of `comm`. Throws argument_error where MPI has not begun, or `comm` is no group of ranks.
  explicit communicator(MPI_Comm comm) {
    if (!has_begun()) throw_argument("MPI has not begun: make an mpi::environment, or call MPI_Init, before the first ranks");
    if (has_ended()) throw_argument("MPI has ended: keep the mpi::environment, or MPI_Finalize, for after the last ranks");
    int is_two_groups = 0;
    if (comm != MPI_COMM_NULL) check(MPI_Comm_test_inter(comm, &is_two_groups), "MPI_Comm_test_inter");
    if (comm == MPI_COMM_NULL || is_two_groups != 0) {
      throw_argument(comm == MPI_COMM_NULL ? "ranks need a communicator; got MPI_COMM_NULL, which this rank is not in"
                                           : "ranks stand in one order; got a communicator between two groups");
    }
    check(MPI_Comm_dup(comm, &comm_), "MPI_Comm_dup");
    check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
  }
  communicator(const communicator&) = delete;
  communicator& operator=(const communicator&) = delete;
  ~communicator() {
    if (!has_ended()) MPI_Comm_free(&comm_);
  }

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }

  /// Every rank: the least and the largest over all ranks.
  [[nodiscard]] std::array<index, 2> range(index number) const {
    std::int64_t least[] = {number, -number};
    check(MPI_Allreduce(MPI_IN_PLACE, least, 2, MPI_INT64_T, MPI_MIN, comm_), "MPI_Allreduce");
    return {least[0], -least[1]};
  }
  /// Every rank: throws shape_error on all of them unless all bring the same count.
  void require_same(index count, const std::string& of_what) const {
    const auto [least, largest] = range(count);
    if (least != largest) {
      throw_shape("every rank brings the same number of " + of_what + "; this one, rank " + std::to_string(rank_) + ", has " +
                  std::to_string(count) + ", others from " + std::to_string(least) + " to " + std::to_string(largest));
    }
  }

  /// Every rank: the sum over all ranks.
  [[nodiscard]] index sum(index count) const {
    check(MPI_Allreduce(MPI_IN_PLACE, &count, 1, MPI_INT64_T, MPI_SUM, comm_), "MPI_Allreduce");
    return count;
  }
  /// Every rank: each number becomes its sum over all ranks, in any order.
  template <std::floating_point Real>
  void sum(std::span<Real> xs) const {
    static_assert(std::same_as<Real, float> || std::same_as<Real, double>);
    const auto type = std::same_as<Real, float> ? MPI_FLOAT : MPI_DOUBLE;
    for (std::size_t at = 0; at < xs.size(); at += most_at_once) {
      const auto count = static_cast<int>(std::min(most_at_once, xs.size() - at));
      check(MPI_Allreduce(MPI_IN_PLACE, xs.data() + at, count, type, MPI_SUM, comm_), "MPI_Allreduce");
    }
  }
  /// Every rank: each count becomes the sum over the ranks before this one.
  void sum_before(std::span<index> counts) const {
    check(MPI_Exscan(MPI_IN_PLACE, counts.data(), static_cast<int>(counts.size()), MPI_INT64_T, MPI_SUM, comm_), "MPI_Exscan");
    if (rank_ == 0) std::ranges::fill(counts, 0);  // MPI leaves them as they are
  }

  /// What a rank tries while others wait for its message: exceptions are kept until all ranks have met again.
  class attempt {
   public:
    explicit attempt(const communicator& all) : all_(all) {}
    /// body(), unless something has failed already, here or in what was received.
    template <class Body>
    void operator()(const Body& body) {
      if (has_failed()) return;
      try {
        body();
      } catch (...) {
        failure_ = std::current_exception();
      }
    }
    /// The bytes of give() to hand on; no bytes mean that something has failed.
    template <class Give>
    [[nodiscard]] std::vector<std::byte> given(const Give& give) {
      std::vector<std::byte> bytes;
      (*this)([&] { bytes = give(); });
      return bytes;
    }
    /// Calls take(bytes) with what was received.
    template <class Take>
    void taken(const std::vector<std::byte>& bytes, const Take& take) {
      is_lost_ = is_lost_ || bytes.empty();
      (*this)([&] { take(bytes); });
    }
    /// Every rank: if anything failed on any, throws on all: a rank's own exception, or an `error` that names the first rank.
    void settle() const {
      const int mine = failure_ ? all_.rank_ : all_.size_;
      int first = 0;
      check(MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, all_.comm_), "MPI_Allreduce");
      if (failure_) std::rethrow_exception(failure_);
      if (first < all_.size_) {
        throw error("rank " + std::to_string(first) + " of " + std::to_string(all_.size_) +
                    " failed with an exception of its own, so there is no result on any rank");
      }
    }

   private:
    [[nodiscard]] bool has_failed() const noexcept { return failure_ || is_lost_; }
    const communicator& all_;
    std::exception_ptr failure_;
    bool is_lost_ = false;
  };

  /// Every rank: body(), which communicates nothing; if it throws on any rank, throws on all.
  template <class Body>
  void together(const Body& body) const {
    attempt attempted(*this);
    attempted(body);
    attempted.settle();
  }

  /// Every rank: joins what each holds on rank 0, adjacent pairs first, level by level. give() returns what a rank hands up,
  /// as bytes; take(bytes) adds what the ranks after it hold.
  template <class Give, class Take>
  void join(attempt& attempted, const Give& give, const Take& take) const {
    for (int step = 1; step < size_; step *= 2) {
      if (rank_ % (2 * step) != 0) {
        (void)exchange(attempted.given(give), rank_ - step, MPI_PROC_NULL);
        return;
      }
      if (rank_ + step < size_) attempted.taken(exchange({}, MPI_PROC_NULL, rank_ + step), take);
    }
  }

  /// Every rank: each takes what the ranks before it hold (Hillis and Steele 1986). give() returns what a rank holds and has
  /// taken, as bytes; take(bytes) adds what stands before that.
  template <class Give, class Take>
  void join_before(attempt& attempted, const Give& give, const Take& take) const {
    for (int step = 1; step < size_; step *= 2) {
      const int to = rank_ + step < size_ ? rank_ + step : MPI_PROC_NULL;
      const int from = rank_ >= step ? rank_ - step : MPI_PROC_NULL;
      const auto bytes = exchange(to == MPI_PROC_NULL ? std::vector<std::byte>{} : attempted.given(give), to, from);
      if (from != MPI_PROC_NULL) attempted.taken(bytes, take);
    }
  }

  /// Every rank: calls take(bytes) with what rank 0 gives.
  template <class Give, class Take>
  void broadcast(attempt& attempted, const Give& give, const Take& take) const {
    std::vector<std::byte> bytes;
    if (rank_ == 0) bytes = attempted.given(give);
    auto size = static_cast<std::uint64_t>(bytes.size());
    check(MPI_Bcast(&size, 1, MPI_UINT64_T, 0, comm_), "MPI_Bcast");
    bytes.resize(size);
    in_pieces(bytes, [&](std::byte* at, int count) { check(MPI_Bcast(at, count, MPI_BYTE, 0, comm_), "MPI_Bcast"); });
    attempted.taken(bytes, take);
  }

 private:
  /// MPI counts in int.
  static constexpr std::size_t most_at_once = std::size_t{1} << 30;
  template <class Body>
  static void in_pieces(std::vector<std::byte>& bytes, const Body& body) {
    for (std::size_t at = 0; at < bytes.size(); at += most_at_once) {
      body(bytes.data() + at, static_cast<int>(std::min(most_at_once, bytes.size() - at)));
    }
  }
  /// Sends this to `to` and returns what `from` sends here; either may be MPI_PROC_NULL (nobody).
  [[nodiscard]] std::vector<std::byte> exchange(std::vector<std::byte> bytes, int to, int from) const {
    const auto size = static_cast<std::uint64_t>(bytes.size());
    std::uint64_t comes = 0;
    check(MPI_Sendrecv(&size, 1, MPI_UINT64_T, to, 0, &comes, 1, MPI_UINT64_T, from, 0, comm_, MPI_STATUS_IGNORE),
          "MPI_Sendrecv");
    std::vector<std::byte> received(comes);
    std::vector<MPI_Request> requests;
    requests.reserve(bytes.size() / most_at_once + received.size() / most_at_once + 2);
    in_pieces(received, [&](std::byte* at, int count) {
      check(MPI_Irecv(at, count, MPI_BYTE, from, 0, comm_, &requests.emplace_back()), "MPI_Irecv");
    });
    in_pieces(bytes, [&](std::byte* at, int count) {
      check(MPI_Isend(at, count, MPI_BYTE, to, 0, comm_, &requests.emplace_back()), "MPI_Isend");
    });
    check(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    return received;
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace regroup::mpi
