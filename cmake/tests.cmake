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

# Every access to memory checked (wasmquant_checked_tests), some take minutes: calibrations of a whole model and whatever goes through
# every length or every shape. They run without.
set(slow_files calibration/calibration_loss_test.cpp calibration/compensation_loss_test.cpp)
set(slow_cases "*every length*,*any shape*,*tiny-llama*")

function(wasmquant_room name program chosen cost labels simd)
  add_test(NAME ${name} COMMAND ${program} ${chosen} --no-intro=true WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" COST ${cost}
    ENVIRONMENT "WASMQUANT_SIMD=${simd};ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1;UBSAN_OPTIONS=print_stacktrace=1"
    FAIL_REGULAR_EXPRESSION "test cases: +0 ")
endfunction()

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
  endif()
  foreach(file ${files})
    string(REGEX REPLACE "(_test\\.cpp|/)$" "" name ${file})
    get_filename_component(name ${name} NAME)
    list(FIND longest_first "${name}" place)
    if(place EQUAL -1)
      set(place 100)
    endif()
    math(EXPR cost "100 - ${place}")
    set(chosen "--source-file=*/native/${file}*")
    set(labels "${room};plain")
    if(file IN_LIST slow_files)
      list(APPEND labels checked)
    endif()
    foreach(simd ${sets})
      wasmquant_room(${name}.${simd} wasmquant_tests ${chosen} ${cost} "${labels};${simd}" ${simd})
    endforeach()
    if(EMSCRIPTEN AND NOT file IN_LIST slow_files)
      wasmquant_room(${name}.checked wasmquant_checked_tests "${chosen};--test-case-exclude=${slow_cases}" ${cost} checked ${best_set})
    endif()
  endforeach()
endforeach()
if(EMSCRIPTEN)
  wasmquant_room(slow_cases wasmquant_tests "--test-case=${slow_cases}" 100 checked ${best_set})
endif()
