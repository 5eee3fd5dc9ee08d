# SPDX-License-Identifier: Apache-2.0
# Thrust as plain C++: its sequential, OpenMP and TBB back ends need a host compiler only. Target: regroup_thrust.
# Where Thrust is not found the target is empty, and REGROUP_HAS_THRUST is not defined.
find_path(REGROUP_THRUST_INCLUDE thrust/version.h
  HINTS $ENV{CUDA_HOME}/include/cccl /usr/local/cuda/include/cccl DOC "The directory that holds thrust/version.h")
find_package(OpenMP COMPONENTS CXX QUIET)

add_library(regroup_thrust INTERFACE)
if(REGROUP_THRUST_INCLUDE AND OpenMP_CXX_FOUND)
  target_include_directories(regroup_thrust SYSTEM INTERFACE ${REGROUP_THRUST_INCLUDE})
  target_compile_definitions(regroup_thrust INTERFACE REGROUP_HAS_THRUST
    THRUST_HOST_SYSTEM=THRUST_HOST_SYSTEM_CPP THRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_CPP)
  target_link_libraries(regroup_thrust INTERFACE OpenMP::OpenMP_CXX TBB::tbb)
else()
  message(STATUS "Thrust or OpenMP not found: the tests that use Thrust are left out")
endif()
