# The shipped WebAssembly module: single-threaded, no eval, no file system, memory grows to 4 GiB.
file(GLOB binding_sources CONFIGURE_DEPENDS bindings/*.cpp)
add_executable(wasmquant ${binding_sources})
wasmquant_join_rooms(wasmquant . ${binding_sources})
target_link_libraries(wasmquant PRIVATE wasmquant_handles)
target_compile_options(wasmquant PRIVATE -DEMSCRIPTEN_HAS_UNBOUND_TYPE_NAMES=0)
target_link_options(wasmquant PRIVATE --bind -Oz -fno-rtti -fno-exceptions -sMODULARIZE=1 -sEXPORT_ES6=1 -sEXPORT_NAME=createWasmquantModule
  -sENVIRONMENT=web,worker -sDYNAMIC_EXECUTION=0 -sFILESYSTEM=0 -sALLOW_MEMORY_GROWTH=1 -sMAXIMUM_MEMORY=4GB
  -sINITIAL_MEMORY=2MB -sSTACK_SIZE=256KB -sMALLOC=emmalloc -sSUPPORT_LONGJMP=0 -sINCOMING_MODULE_JS_API=instantiateWasm
  -sEXPORTED_RUNTIME_METHODS=wasmMemory -sBINARYEN_EXTRA_PASSES=converge --no-entry)
set_target_properties(wasmquant PROPERTIES OUTPUT_NAME wasmquant SUFFIX .js)
