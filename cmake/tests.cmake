# SPDX-License-Identifier: Apache-2.0
# regroup_tests(FOLDER [ONE_TARGET level [PRECOMPILED header ...]] [BUT name ...]
#   [VARIANTS asan|tsan ... [ALONE] [WITHOUT name ...] [TSAN name ...]]): every
# FOLDER/*.cpp becomes part of the GoogleTest program test_FOLDER, and each of its cases a ctest. A variant is the same
# sources without some, for tsan perhaps only few, and the library's, under a sanitizer, with REGROUP_SMALL in the environment
# so that the tests choose small sizes. Where they are quick enough at all sizes, variants ALONE, without it, are enough.
# ONE_TARGET, and the variants, compile what they test for one instruction set rather than three, and no further than that
# level (-O0, -O1): a quarter of the time, or a third. What most of them include is then compiled once, if it is PRECOMPILED.
# Sources named after BUT have all instruction sets, in a program test_FOLDER_targets of their own: a linker would keep either's
# copy for both.
include(GoogleTest)
set(regroup_one_target_flags -DREGROUP_ONE_TARGET)
set(regroup_one_target_warnings $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)  # of empty optionals, at -O1
# What is asked before every access is a third of the time to compile: AddressSanitizer sees null too, the preset `asan` the rest.
set(regroup_asan_flags -O0 -g1 -DREGROUP_ONE_TARGET -fsanitize=address,undefined -fno-sanitize=null,alignment,object-size
  -fno-sanitize-recover=all)
set(regroup_tsan_flags -O1 -g1 -DREGROUP_ONE_TARGET -fsanitize=thread)

function(regroup_test_program program folder)
  target_include_directories(${program} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_compile_definitions(${program} PRIVATE REGROUP_EXAMPLE_DATA="${PROJECT_SOURCE_DIR}/examples/data")
  target_link_libraries(${program} PRIVATE GTest::gtest_main rapidcheck rapidcheck_gtest regroup_mpfr ${CMAKE_DL_LIBS})
  if(folder STREQUAL interop)
    target_link_libraries(${program} PRIVATE regroup_thrust)
  endif()
endfunction()

function(regroup_discover program prefix)
  gtest_discover_tests(${program} TEST_PREFIX ${prefix}. DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT 300 ${ARGN})
endfunction()

# One program of a folder's sources, and what more it is compiled with.
function(regroup_folder_program program folder sources)
  add_executable(${program} ${sources})
  regroup_test_program(${program} ${folder})
  target_link_libraries(${program} PRIVATE regroup::regroup)
  if(folder STREQUAL tool AND TARGET regroup_tool_parts)
    target_link_libraries(${program} PRIVATE regroup_tool_parts)
  endif()
  regroup_warnings(${program})
  target_compile_options(${program} PRIVATE ${ARGN})
  regroup_discover(${program} ${folder})
endfunction()

function(regroup_tests folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg ALONE ONE_TARGET "PRECOMPILED;BUT;VARIANTS;WITHOUT;TSAN")
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  if(NOT sources)
    return()
  endif()
  foreach(names arg_BUT arg_WITHOUT arg_TSAN)
    list(TRANSFORM ${names} REPLACE "(.+)" "${CMAKE_CURRENT_SOURCE_DIR}/${folder}/\\1.cpp")
  endforeach()
  list(TRANSFORM arg_PRECOMPILED PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/${folder}/" REGEX "^[^<]")
  set(varied ${sources})
  list(REMOVE_ITEM varied "" ${arg_WITHOUT})
  if(arg_ONE_TARGET)
    set(others ${sources})
    if(arg_BUT)
      list(REMOVE_ITEM others ${arg_BUT})
      regroup_folder_program(test_${folder}_targets ${folder} "${arg_BUT}")
    endif()
    if(arg_ALONE AND REGROUP_SANITIZED_TESTS)
      list(REMOVE_ITEM others "" ${varied})
    endif()
    if(others)
      regroup_folder_program(test_${folder} ${folder} "${others}" ${arg_ONE_TARGET} ${regroup_one_target_flags}
        ${regroup_one_target_warnings})
      target_precompile_headers(test_${folder} PRIVATE ${arg_PRECOMPILED})
    endif()
  else()
    regroup_folder_program(test_${folder} ${folder} "${sources}")
  endif()

  if(NOT REGROUP_SANITIZED_TESTS)
    return()
  endif()
  set(environment ENVIRONMENT REGROUP_SMALL=1)
  if(arg_ALONE)
    set(environment)
  endif()
  foreach(variant IN LISTS arg_VARIANTS)
    regroup_library_variant(${variant})
    set(program test_${folder}_${variant})
    set(some ${varied})
    if(variant STREQUAL tsan AND arg_TSAN)
      set(some ${arg_TSAN})
    endif()
    add_executable(${program} ${some})
    regroup_test_program(${program} ${folder})
    target_link_libraries(${program} PRIVATE regroup_${variant})
    target_precompile_headers(${program} PRIVATE ${arg_PRECOMPILED})
    regroup_discover(${program} ${folder}_${variant} ${environment})
  endforeach()
endfunction()

# regroup_asan, regroup_tsan: the library itself under the sanitizer; whoever links it is compiled and linked so too. Its loops,
# most of the time to compile, are the plain library's; tsan has none of attention and softmax, whose threads are `for_each`'s.
function(regroup_library_variant variant)
  if(TARGET regroup_${variant})
    return()
  endif()
  regroup_isa_flags()
  get_target_property(sources regroup SOURCES)
  list(TRANSFORM sources PREPEND ${PROJECT_SOURCE_DIR}/ REGEX "^[^/]")
  set(not_of_asan "_v[34][^/]*$|/(attention_tile|softmax_rows|softmax|softmax_segments|log_softmax|logsumexp)[.]cpp$")
  set(not_of_tsan "/(attention|softmax|log)[^/]*$")
  list(FILTER sources EXCLUDE REGEX "${not_of_${variant}}")
  add_library(regroup_${variant} STATIC ${sources})
  target_compile_features(regroup_${variant} PUBLIC cxx_std_20)
  target_include_directories(regroup_${variant} PUBLIC ${PROJECT_SOURCE_DIR}/include)
  target_compile_options(regroup_${variant} PUBLIC ${regroup_${variant}_flags})
  target_link_options(regroup_${variant} PUBLIC ${regroup_${variant}_flags})
  if(variant STREQUAL tsan)  # oneTBB's binary is not instrumented: a stand-in with the same names
    target_include_directories(regroup_tsan BEFORE PUBLIC ${PROJECT_SOURCE_DIR}/properties/tsan)
  else()
    target_link_libraries(regroup_${variant} PUBLIC regroup)
  endif()
endfunction()
