# The kernels. One body serves all instruction sets: on x86-64 every file with bodies is compiled once more per set, with
# that set's flags, and src/kernels/dispatch.h picks at run time. WebAssembly has one set and compiles each file once.
file(GLOB kernel_sources CONFIGURE_DEPENDS src/kernels/*.cpp)
target_sources(wasmquant_core PRIVATE ${kernel_sources})

# Plain scalar files: nothing of theirs may use a newer set.
set(scalar_kernels "/(arch|hadamard|reference[a-z_]*|ggml_(blocks|dequantize|layout|reference|scales|searched_blocks|simple_blocks|super_blocks))\\.cpp$")

if(NOT EMSCRIPTEN AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(kernel_bodies ${kernel_sources})
  list(FILTER kernel_bodies EXCLUDE REGEX "${scalar_kernels}")
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
  list(FILTER hot_kernels EXCLUDE REGEX "/(arch|reference[a-z_]*|quantize_[a-z]*|ggml_[a-z0-9_]*)\\.cpp$")
  set(hot_loops ${core_sources})
  list(FILTER hot_loops INCLUDE REGEX "/(packing/int32_words|packing/transpose|observers/contiguous|quantize/qparams|quantize/block_scale|quantize/runs|observers/histogram|observers/exact_sum|observers/slice_search|observers/moments|algorithms/product|model/norm)\\.cpp$")
  set(block_kernels ${kernel_sources})  # what has its error measured on the way
  list(FILTER block_kernels INCLUDE REGEX "/(quantize_[a-z]*|ggml_[a-z0-9_]*)\\.cpp$")
  list(FILTER block_kernels EXCLUDE REGEX "reference\\.cpp$")
  set(block_recipes ${block_kernels})
  list(FILTER block_recipes INCLUDE REGEX "${scalar_kernels}")
  list(REMOVE_ITEM block_kernels ${block_recipes})
  list(APPEND hot_loops ${block_recipes})
  set(cold_sources ${core_sources})
  list(REMOVE_ITEM cold_sources ${hot_loops})
  set_property(SOURCE ${hot_kernels} APPEND PROPERTY COMPILE_OPTIONS -O3)
  set_property(SOURCE ${block_kernels} APPEND PROPERTY COMPILE_OPTIONS -O2)
  set_property(SOURCE ${hot_loops} APPEND PROPERTY COMPILE_OPTIONS -O2 -fno-unroll-loops)
  # A call is four bytes; even -Oz inlines what is several times that.
  set(size_options -mllvm -inline-threshold=-25)
  set_property(SOURCE ${cold_sources} APPEND PROPERTY COMPILE_OPTIONS ${size_options})
endif()
