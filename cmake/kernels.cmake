# Loops over weights, which are compiled apart from the rest: the kernels, by folder, and the hot loops of other rooms.
#   src/kernels/loops, blocks   bodies with SIMD: on x86-64 every file is compiled once more per instruction set, with that set's
#                               flags, and src/kernels/dispatch.h picks at run time. WebAssembly has one set
#   src/kernels/ggml            recipes of GGUF's block types, scalar
#   src/kernels/reference       what the bodies must equal bit for bit; nothing of it may use a newer set
file(GLOB kernel_loops CONFIGURE_DEPENDS src/kernels/loops/*.cpp)
file(GLOB kernel_blocks CONFIGURE_DEPENDS src/kernels/blocks/*.cpp)
file(GLOB kernel_recipes CONFIGURE_DEPENDS src/kernels/ggml/*.cpp)
file(GLOB kernel_others CONFIGURE_DEPENDS src/kernels/*.cpp src/kernels/reference/*.cpp)

list(FILTER kernel_others EXCLUDE REGEX "/hadamard\\.cpp$")

# A part of the core; in WebAssembly with its own optimization (WASMQUANT_OPTIMIZE in CMakeLists.txt).
function(wasmquant_kernels name optimize)
  add_library(wasmquant_${name} OBJECT ${ARGN})
  wasmquant_join_rooms(wasmquant_${name} src ${ARGN})
  target_link_libraries(wasmquant_${name} PRIVATE wasmquant_flags wasmquant_headers)
  set_target_properties(wasmquant_${name} PROPERTIES WASMQUANT_OPTIMIZE "${optimize}")
  if(WASMQUANT_SANITIZE)
    # Every batch is an object on the stack: to follow how long each lives takes two thirds of the compiler's time here.
    target_compile_options(wasmquant_${name} PRIVATE -fno-sanitize-address-use-after-scope)
  endif()
  target_sources(wasmquant_core PRIVATE $<TARGET_OBJECTS:wasmquant_${name}>)
endfunction()
wasmquant_kernels(loops -O3 ${kernel_loops} ${CMAKE_SOURCE_DIR}/src/kernels/hadamard.cpp)
wasmquant_kernels(blocks -O2 ${kernel_blocks})
wasmquant_kernels(recipes "-O2;-fno-unroll-loops" ${kernel_recipes} ${hot_loops})
wasmquant_kernels(other_kernels -Oz ${kernel_others})

if(NOT EMSCRIPTEN AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(flags_sse4_2 -msse4.2)
  set(flags_avx2 -mavx2)  # without -mfma: contraction is off anyway, results must equal those of WebAssembly
  foreach(arch sse4_2 avx2)
    wasmquant_kernels(kernels_${arch} "" ${kernel_loops} ${kernel_blocks})
    target_compile_options(wasmquant_kernels_${arch} PRIVATE ${flags_${arch}})
    target_compile_definitions(wasmquant_kernels_${arch} PRIVATE WASMQUANT_KERNEL_ARCH=${arch})
  endforeach()
  foreach(name loops blocks recipes other_kernels kernels_sse4_2 kernels_avx2)
    target_compile_definitions(wasmquant_${name} PRIVATE WASMQUANT_X86_KERNELS=1)
  endforeach()
endif()
