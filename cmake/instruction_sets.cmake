# SPDX-License-Identifier: Apache-2.0
# A file written for one instruction set says so in its name, and only it gets the flags: src/NAME_v3.cpp,
# src/NAME_v4.cpp, src/NAME_v4_vnni.cpp for AVX-512 with vpdpwssd, src/NAME_v4_bf16.cpp with vdpbf16ps, and
# src/NAME_v4_amx.cpp for that with AMX.
# Called once in every directory that compiles the library's sources: CMake keeps properties of sources by directory.
function(regroup_isa_flags)
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    return()  # where these files are empty
  endif()
  set(flags_of_v3 -march=x86-64-v3)
  set(flags_of_v4 -march=x86-64-v4)
  set(flags_of_v4_vnni -march=x86-64-v4 -mavx512vnni)
  set(flags_of_v4_bf16 -march=x86-64-v4 -mavx512bf16)
  set(flags_of_v4_amx ${flags_of_v4_bf16} -mamx-tile -mamx-bf16)
  foreach(level v3 v4 v4_vnni v4_bf16 v4_amx)
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*_${level}.cpp)
    set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS "${flags_of_${level}}")
  endforeach()
endfunction()

# What a row asks of its loop is asked before it, not in it: up to a tenth faster. Attention's gain nothing. Not under a sanitizer,
# where that takes a compiler nine minutes.
function(regroup_optimise_rows)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/softmax_rows_v[34]*.cpp)
  set_property(SOURCE ${sources} APPEND PROPERTY COMPILE_OPTIONS $<$<CONFIG:Release>:-O3>)
endfunction()
