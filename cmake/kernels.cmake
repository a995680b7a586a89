# Loops over weights, which are compiled apart from the rest: the kernels, by folder, and the hot loops of other rooms.
#   src/kernels/loops, blocks   bodies with SIMD: on x86-64 every file is compiled once more per instruction set, with that set's
#                               flags, and src/kernels/dispatch.h picks at run time. WebAssembly has one set
#   src/kernels/ggml            recipes of GGUF's block types, scalar
#   src/kernels/reference       what the bodies must equal bit for bit; nothing of it may use a newer set
file(GLOB_RECURSE kernel_sources CONFIGURE_DEPENDS src/kernels/*.cpp)
add_library(wasmquant_loops OBJECT ${kernel_sources} ${hot_loops})
target_link_libraries(wasmquant_loops PRIVATE wasmquant_flags wasmquant_headers)
target_sources(wasmquant_core PRIVATE $<TARGET_OBJECTS:wasmquant_loops>)

set(kernel_loops ${kernel_sources})
list(FILTER kernel_loops INCLUDE REGEX "/kernels/loops/")
set(kernel_blocks ${kernel_sources})
list(FILTER kernel_blocks INCLUDE REGEX "/kernels/blocks/")
set(kernel_recipes ${kernel_sources})
list(FILTER kernel_recipes INCLUDE REGEX "/kernels/ggml/")

if(NOT EMSCRIPTEN AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(flags_sse4_2 -msse4.2)
  set(flags_avx2 -mavx2)  # without -mfma: contraction is off anyway, results must equal those of WebAssembly
  foreach(arch sse4_2 avx2)
    add_library(wasmquant_kernels_${arch} OBJECT ${kernel_loops} ${kernel_blocks})
    target_link_libraries(wasmquant_kernels_${arch} PRIVATE wasmquant_flags wasmquant_headers)
    target_compile_options(wasmquant_kernels_${arch} PRIVATE ${flags_${arch}})
    target_compile_definitions(wasmquant_kernels_${arch} PRIVATE WASMQUANT_KERNEL_ARCH=${arch})
    target_sources(wasmquant_core PRIVATE $<TARGET_OBJECTS:wasmquant_kernels_${arch}>)
  endforeach()
  set_property(SOURCE ${kernel_sources} APPEND PROPERTY COMPILE_DEFINITIONS WASMQUANT_X86_KERNELS=1)
endif()

# What runs once per weight is compiled for speed, the rest of the WebAssembly module for size (CMakeLists.txt).
if(EMSCRIPTEN AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
  set_property(SOURCE ${kernel_loops} src/kernels/hadamard.cpp APPEND PROPERTY COMPILE_OPTIONS -O3)
  set_property(SOURCE ${kernel_blocks} APPEND PROPERTY COMPILE_OPTIONS -O2)
  set_property(SOURCE ${hot_loops} ${kernel_recipes} APPEND PROPERTY COMPILE_OPTIONS -O2 -fno-unroll-loops)
  # A call is four bytes; even -Oz inlines what is several times that.
  set(size_options -mllvm -inline-threshold=-25)
  target_compile_options(wasmquant_core PRIVATE ${size_options})
endif()
