// SPDX-License-Identifier: Apache-2.0
// A monoid in MPI's own collectives: an MPI_Op that combines its states, and their datatype. MPI chooses the tree, in rank
// order unless the monoid commutes, so results are within the monoid's bound; the executor `ranks` (mpi/ranks.hpp) has the
// bits of `seq`. Level: rank. Law: associativity, and commutativity only where it is declared.
#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>

#include <mpi.h>

#include "regroup/mpi/communicator.hpp"

namespace regroup::mpi {

/// `const mpi::operation sum{log_sum_exp<float>{}}; MPI_Allreduce(MPI_IN_PLACE, &state, 1, sum.type(), sum.op(), comm)`: for
/// MPI_Reduce, MPI_Scan, MPI_Exscan and their kin, over arrays of states as well. Lift before and lower after. Lives while MPI
/// does. Throws argument_error where MPI has not begun, and `error`.
template <class M>
class operation {
  using state = state_of<M>;
  static_assert(std::is_empty_v<M> && std::is_default_constructible_v<M>,
                "regroup: MPI calls a function without an object, so the monoid can have no values, nor members, of its own");
  static_assert(std::is_trivially_copyable_v<state>,
                "regroup: MPI hands states on as bytes, so they must be trivially copyable; mpi::ranks takes any");

 public:
  explicit operation(const M& = {}) {
    if (!has_begun() || has_ended()) {
      throw_argument("an mpi::operation needs MPI: make it after the mpi::environment, or MPI_Init, and before MPI_Finalize");
    }
    check(MPI_Type_contiguous(static_cast<int>(sizeof(state)), MPI_BYTE, &type_), "MPI_Type_contiguous");
    check(MPI_Type_commit(&type_), "MPI_Type_commit");
    check(MPI_Op_create(combine, is_commutative<M> ? 1 : 0, &op_), "MPI_Op_create");
  }
  operation(const operation&) = delete;
  operation& operator=(const operation&) = delete;
  ~operation() {
    if (has_ended()) return;
    MPI_Op_free(&op_);
    MPI_Type_free(&type_);
  }

  [[nodiscard]] MPI_Op op() const noexcept { return op_; }
  [[nodiscard]] MPI_Datatype type() const noexcept { return type_; }

 private:
  /// right[i] = left[i] right[i]: what MPI calls `in` stands left of `inout`. Its buffers may be aligned to anything. An
  /// operator that throws ends the program, since MPI, which calls this, is C.
  static void combine(void* left, void* right, int* count, MPI_Datatype*) noexcept {
    const M m;
    for (int i = 0; i < *count; ++i) {
      state a = m.identity(), b = a;
      std::memcpy(&a, static_cast<const std::byte*>(left) + i * index{sizeof(state)}, sizeof(state));
      std::byte* const place = static_cast<std::byte*>(right) + i * index{sizeof(state)};
      std::memcpy(&b, place, sizeof(state));
      const state both = m(a, b);
      std::memcpy(place, &both, sizeof(state));
    }
  }

  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  MPI_Op op_ = MPI_OP_NULL;
};

}  // namespace regroup::mpi
