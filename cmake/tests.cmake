# Tests: one for each room of tests/native and each instruction set, so that `ctest -L kernels` and `ctest -L avx2` choose.
# A process for each of 500 cases would take Node minutes to start; a room is small enough to spread over the cores.
enable_testing()
if(EMSCRIPTEN)
  set(instruction_sets simd128)
else()
  set(instruction_sets emulated128)
  if(EXISTS /proc/cpuinfo)
    file(STRINGS /proc/cpuinfo cpu_flags REGEX "^flags" LIMIT_COUNT 1)
    foreach(name sse4_2 avx2)  # src/kernels/arch.h
      if(cpu_flags MATCHES " ${name}( |$)")
        list(APPEND instruction_sets ${name})
      endif()
    endforeach()
  endif()
endif()
if(WASMQUANT_COVERAGE)
  set(instruction_sets emulated128)  # the lines of the others are the same
endif()

# Without optimisation some cases take minutes: calibrations of a whole model and, with SAFE_HEAP, whatever goes through every code or
# every shape. The optimised builds run them.
set(slow "")
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  set(slow "*lose less than*" "*mends 8 bit*")
  if(EMSCRIPTEN)
    list(APPEND slow "*every length*" "*any shape*" "*tiny-llama*")
  endif()
endif()

file(GLOB rooms RELATIVE ${CMAKE_SOURCE_DIR}/tests/native LIST_DIRECTORIES true CONFIGURE_DEPENDS tests/native/*)
list(FILTER rooms EXCLUDE REGEX "\\.")
list(GET instruction_sets -1 every_set)  # cases of kernels go through every instruction set by themselves
foreach(simd ${instruction_sets})
  foreach(room ${rooms})
    if(room STREQUAL "kernels" AND NOT simd STREQUAL "${every_set}")
      continue()
    endif()
    # Calibrations take most of the time, and call nothing that depends on the set but kernels: the best set runs them.
    set(left_out ${slow})
    if(NOT simd STREQUAL "${every_set}")
      list(APPEND left_out "calibration:*" "static scales do not depend*")
    endif()
    if(left_out)
      list(JOIN left_out "," left_out)
      set(left_out "--test-case-exclude=${left_out}")
    endif()
    add_test(NAME ${room}.${simd} COMMAND wasmquant_tests "--source-file=*/native/${room}/*" --no-intro=true
             ${left_out} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(${room}.${simd} PROPERTIES LABELS "${room};${simd}"
      ENVIRONMENT "WASMQUANT_SIMD=${simd};ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1;UBSAN_OPTIONS=print_stacktrace=1"
      FAIL_REGULAR_EXPRESSION "test cases: +0 ")
  endforeach()
endforeach()
