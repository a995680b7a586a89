# The instrumented builds parse the standard library once. The others include what each file names, so that a file which
# forgets an include does not compile there; ccache, where there is one, does more.
if(WASMQUANT_CCACHE OR NOT (WASMQUANT_SANITIZE OR WASMQUANT_COVERAGE OR CMAKE_BUILD_TYPE STREQUAL "Debug"))
  return()
endif()
set(standard_headers <algorithm> <array> <bit> <cmath> <cstdint> <cstring> <limits> <memory> <optional> <span> <string>
    <string_view> <utility> <vector>)
foreach(arch sse4_2 avx2)
  if(TARGET wasmquant_kernels_${arch})
    target_precompile_headers(wasmquant_kernels_${arch} PRIVATE ${standard_headers} <xsimd/xsimd.hpp>)
  endif()
endforeach()
if(TARGET wasmquant_tests)
  target_precompile_headers(wasmquant_tests PRIVATE ${standard_headers} <random> <doctest/doctest.h>)
  set_source_files_properties(tests/native/main.cpp PROPERTIES SKIP_PRECOMPILE_HEADERS ON)  # doctest's implementation
endif()
