// SPDX-License-Identifier: Apache-2.0
// Every rank runs every case, since a case communicates.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "regroup/mpi/ranks.hpp"

namespace {

template <class Call>
bool says(const char* sentence, const Call& call) {
  try {
    call();
  } catch (const regroup::argument_error& e) {
    if (std::string(e.what()).find(sentence) != std::string::npos) return true;
    std::printf("said, not \"%s\": %s\n", sentence, e.what());
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const bool before = says("MPI has not begun", [] { const regroup::mpi::ranks all(MPI_COMM_WORLD); });
  bool meanwhile = false;
  {
    const regroup::mpi::environment environment;
    meanwhile = says("MPI begins once", [] { const regroup::mpi::environment another; }) &&
                says("MPI_COMM_NULL", [] { const regroup::mpi::ranks none(MPI_COMM_NULL); }) && RUN_ALL_TESTS() == 0;
  }
  const bool after = says("MPI has ended", [] { const regroup::mpi::ranks all(MPI_COMM_WORLD); });
  return before && meanwhile && after ? 0 : 1;
}
