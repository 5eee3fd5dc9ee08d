# SPDX-License-Identifier: Apache-2.0
# A file written for one instruction set says so in its name, and only it gets the flag: src/NAME_v3.cpp, src/NAME_v4.cpp.
# Called once in every directory that compiles the library's sources: CMake keeps properties of sources by directory.
function(regroup_isa_flags)
  foreach(level v3 v4)
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*_${level}.cpp)
    set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS -march=x86-64-${level})
  endforeach()
endfunction()
