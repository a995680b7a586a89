# The kernels. One body serves all instruction sets: on x86-64 every file with bodies is compiled once more per set, with
# that set's flags, and src/kernels/dispatch.h picks at run time. WebAssembly has one set and compiles each file once.
file(GLOB kernel_sources CONFIGURE_DEPENDS src/kernels/*.cpp)
target_sources(wasmquant_core PRIVATE ${kernel_sources})

if(NOT EMSCRIPTEN AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(kernel_bodies ${kernel_sources})  # plain scalar files are left out: nothing of theirs may use the newer set
  list(FILTER kernel_bodies EXCLUDE REGEX "/(arch|reference[a-z_]*)\\.cpp$")
  set(flags_sse4_2 -msse4.2)
  set(flags_avx2 -mavx2)  # without -mfma: contraction is off anyway, results must equal those of WebAssembly
  foreach(arch sse4_2 avx2)
    add_library(wasmquant_kernels_${arch} OBJECT ${kernel_bodies})
    target_link_libraries(wasmquant_kernels_${arch} PRIVATE wasmquant_flags wasmquant_headers)
    target_compile_options(wasmquant_kernels_${arch} PRIVATE ${flags_${arch}})
    target_compile_definitions(wasmquant_kernels_${arch} PRIVATE WASMQUANT_KERNEL_ARCH=${arch})
    target_sources(wasmquant_core PRIVATE $<TARGET_OBJECTS:wasmquant_kernels_${arch}>)
  endforeach()
  set_property(SOURCE ${kernel_sources} APPEND PROPERTY COMPILE_DEFINITIONS WASMQUANT_X86_KERNELS=1)
endif()

# What runs once per weight is compiled for speed, the rest of the WebAssembly module for size (CMakeLists.txt).
if(EMSCRIPTEN AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
  set(hot_kernels ${kernel_sources})
  list(FILTER hot_kernels EXCLUDE REGEX "/(arch|reference[a-z_]*)\\.cpp$")
  set(hot_loops ${core_sources})
  list(FILTER hot_loops INCLUDE REGEX "/(packing/int32_words|packing/transpose|observers/contiguous|quantize/qparams|quantize/block_scale|quantize/runs|observers/histogram|observers/exact_sum|algorithms/product|model/norm)\\.cpp$")
  set(cold_sources ${core_sources})
  list(REMOVE_ITEM cold_sources ${hot_loops})
  set_property(SOURCE ${hot_kernels} APPEND PROPERTY COMPILE_OPTIONS -O3)
  set_property(SOURCE ${hot_loops} APPEND PROPERTY COMPILE_OPTIONS -O2 -fno-unroll-loops)
  # A call is four bytes; even -Oz inlines what is several times that.
  set(size_options -mllvm -inline-threshold=-25)
  set_property(SOURCE ${cold_sources} APPEND PROPERTY COMPILE_OPTIONS ${size_options})
endif()
