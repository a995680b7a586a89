# Tests: one for each room of tests/native, so that `ctest -L kernels` chooses, and one for each file of the rooms that take longest.
# A process for each of 500 cases would take Node minutes to start; these are small enough to spread over the cores.
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
list(GET instruction_sets -1 best_set)

# Only kernels depend on the instruction set: their room compares every set of the machine with the scalar reference, bit for bit. The
# room right above them runs once with each set, the others with the best.
set(rooms_of_every_set quantize)
set(rooms_by_file calibration pipeline)
# The longest start first, or the other cores wait for the last.
set(longest_first compensation_loss calibration_loss observers kernels model quantize formats session)

# Without optimisation some take minutes: calibrations of a whole model and, with SAFE_HEAP, whatever goes through every code or every
# shape. The optimised builds run them.
set(slow_files "")
set(slow_cases "")
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  set(slow_files calibration/calibration_loss_test.cpp calibration/compensation_loss_test.cpp)
  if(EMSCRIPTEN)
    set(slow_cases "--test-case-exclude=*every length*,*any shape*,*tiny-llama*")
  endif()
endif()

file(GLOB rooms RELATIVE ${CMAKE_SOURCE_DIR}/tests/native LIST_DIRECTORIES true CONFIGURE_DEPENDS tests/native/*)
list(FILTER rooms EXCLUDE REGEX "\\.")
foreach(room ${rooms})
  set(sets ${best_set})
  if(room IN_LIST rooms_of_every_set)
    set(sets ${instruction_sets})
  endif()
  set(files ${room}/)
  if(room IN_LIST rooms_by_file)
    file(GLOB files RELATIVE ${CMAKE_SOURCE_DIR}/tests/native CONFIGURE_DEPENDS tests/native/${room}/*_test.cpp)
    list(REMOVE_ITEM files ${slow_files} "")
  endif()
  foreach(file ${files})
    string(REGEX REPLACE "(_test\\.cpp|/)$" "" name ${file})
    get_filename_component(name ${name} NAME)
    list(FIND longest_first "${name}" place)
    if(place EQUAL -1)
      set(place 100)
    endif()
    math(EXPR cost "100 - ${place}")
    foreach(simd ${sets})
      add_test(NAME ${name}.${simd} COMMAND wasmquant_tests "--source-file=*/native/${file}*" --no-intro=true ${slow_cases}
               WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
      set_tests_properties(${name}.${simd} PROPERTIES LABELS "${room};${simd}" COST ${cost}
        ENVIRONMENT "WASMQUANT_SIMD=${simd};ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1;UBSAN_OPTIONS=print_stacktrace=1"
        FAIL_REGULAR_EXPRESSION "test cases: +0 ")
    endforeach()
  endforeach()
endforeach()
