# What the module gives JavaScript, without Embind: it compiles natively too, for its tests.
set(WASMQUANT_EMSCRIPTEN_VERSION "")
if(DEFINED EMSCRIPTEN_VERSION)
  set(WASMQUANT_EMSCRIPTEN_VERSION ", Emscripten ${EMSCRIPTEN_VERSION}")
endif()
configure_file(cmake/version.h.in generated/version.h @ONLY)

file(GLOB handle_sources CONFIGURE_DEPENDS bindings/border/*.cpp bindings/handles/*.cpp bindings/tensors/*.cpp)
add_library(wasmquant_handles STATIC ${handle_sources})
wasmquant_join_rooms(wasmquant_handles bindings ${handle_sources})
target_include_directories(wasmquant_handles PUBLIC bindings ${CMAKE_CURRENT_BINARY_DIR}/generated)
target_link_libraries(wasmquant_handles PUBLIC wasmquant_core)
