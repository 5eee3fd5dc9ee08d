# SPDX-License-Identifier: Apache-2.0
# The first Python that has NumPy: the one on the path, else the system's. regroup_python_test(NAME SCRIPT) runs unittests.
if(NOT DEFINED REGROUP_PYTHON)
  foreach(candidate python3 /usr/bin/python3)
    execute_process(COMMAND ${candidate} -c "import sys, numpy; print(sys.executable, end='')"
      RESULT_VARIABLE status OUTPUT_VARIABLE executable ERROR_QUIET)
    if(status EQUAL 0)
      set(REGROUP_PYTHON ${executable} CACHE FILEPATH "A Python 3 with NumPy, for the tests")
      break()
    endif()
  endforeach()
endif()
if(NOT REGROUP_PYTHON)
  message(FATAL_ERROR "The tests need a Python 3 with NumPy (Debian: python3-numpy); set REGROUP_PYTHON to one.")
endif()

function(regroup_python_test name script)
  add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -E env PYTHONDONTWRITEBYTECODE=1 ${REGROUP_PYTHON} ${script} ${ARGN})
  set_tests_properties(${name} PROPERTIES TIMEOUT 300)
endfunction()
