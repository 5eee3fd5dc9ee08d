# SPDX-License-Identifier: Apache-2.0
# Device code compiles and links wherever nvcc is; its tests are skipped (exit code 77) where there is no GPU.
# regroup_cuda_options(TARGET): a target's device code is for the first architecture, whose PTX later ones run, and its
# host's part for one instruction set, at -O1: its loops are on the device. regroup_cuda_program(NAME SOURCE TEST) makes one
# such program and its test, and does nothing without nvcc.
include(CheckLanguage)
check_language(CUDA)
set(regroup_cuda_standard -std=c++20)  # CMake 3.25 knows no cuda_std_20
set(REGROUP_CUDA_ARCHITECTURES 80 90a CACHE STRING "The tool and the tests are for the first, timings for the last")
option(REGROUP_QUICK_KERNELS "Hardly optimise the kernels of tests and examples: a third of the time to compile" OFF)
if(CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_ARCHITECTURES ${REGROUP_CUDA_ARCHITECTURES})
  enable_language(CUDA)
else()
  message(STATUS "nvcc not found: the CUDA programs are left out, and the tool computes on the CPU only")
endif()

function(regroup_cuda_options target)
  target_compile_options(${target} PRIVATE ${regroup_cuda_standard} -DREGROUP_ONE_TARGET -Xcompiler=-O1)
  target_link_libraries(${target} PRIVATE regroup::cuda)
  regroup_warnings(${target})
  list(GET CMAKE_CUDA_ARCHITECTURES 0 oldest)
  set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES ${oldest})
endfunction()

function(regroup_cuda_program name source test)
  if(NOT CMAKE_CUDA_COMPILER)
    return()
  endif()
  add_executable(${name} ${source})
  regroup_cuda_options(${name})
  if(REGROUP_QUICK_KERNELS AND NOT name STREQUAL cuda_attention)  # whose kernels ptxas then takes for too large
    target_compile_options(${name} PRIVATE -Ofc=max)
  endif()
  add_dependencies(gpu ${name})
  add_test(NAME ${test} COMMAND ${name})
  set_tests_properties(${test} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 300)
endfunction()
