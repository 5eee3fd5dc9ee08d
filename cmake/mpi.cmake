# SPDX-License-Identifier: Apache-2.0
# regroup_mpi_program(PROGRAM SOURCE...) is a program of ranks, where there is an MPI; regroup_mpi_test(TEST PROGRAM RANKS)
# runs it on so many, more than there are cores too.
find_package(MPI COMPONENTS CXX)
if(NOT MPI_CXX_FOUND)
  message(STATUS "MPI not found (Debian: libmpich-dev, mpich): ranks are left out")
endif()

# What Open MPI, of version 4 and 5, asks of a root and of more ranks than cores.
set(regroup_mpi_environment OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
  PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe)

function(regroup_mpi_program program)
  if(NOT MPI_CXX_FOUND)
    return()
  endif()
  add_executable(${program} ${ARGN})
  target_link_libraries(${program} PRIVATE regroup::mpi)
  regroup_warnings(${program})
endfunction()

function(regroup_mpi_test test program ranks)
  if(NOT TARGET ${program})
    return()
  endif()
  add_test(NAME ${test} COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks} ${MPIEXEC_PREFLAGS}
    $<TARGET_FILE:${program}> ${MPIEXEC_POSTFLAGS})
  set_tests_properties(${test} PROPERTIES TIMEOUT 300 PROCESSORS 2
    ENVIRONMENT "${regroup_mpi_environment}")
endfunction()
