# Header-only libraries: from the system when new enough, else from the folder that tests/setup/toolchain.sh fills,
# else a pinned release fetched by CMake. Target: wasmquant_headers.
include(FetchContent)
add_library(wasmquant_headers INTERFACE)

function(wasmquant_header_library name probe repository tag subfolder)
  find_path(WASMQUANT_${name}_DIR ${probe} HINTS "$ENV{WASMQUANT_INCLUDE}" "${CMAKE_SOURCE_DIR}/.toolchain/include"
            NO_CMAKE_FIND_ROOT_PATH NO_DEFAULT_PATH)
  if(NOT WASMQUANT_${name}_DIR)
    message(STATUS "${name}: fetching ${tag}")
    FetchContent_Declare(${name} GIT_REPOSITORY ${repository} GIT_TAG ${tag} GIT_SHALLOW ON SOURCE_SUBDIR no-cmake)
    FetchContent_MakeAvailable(${name})
    set(WASMQUANT_${name}_DIR "${${name}_SOURCE_DIR}/${subfolder}")
  endif()
  target_include_directories(wasmquant_headers SYSTEM INTERFACE "${WASMQUANT_${name}_DIR}")
endfunction()

wasmquant_header_library(xsimd xsimd/xsimd.hpp https://github.com/xtensor-stack/xsimd.git 14.3.0 include)
wasmquant_header_library(rapidjson rapidjson/reader.h https://github.com/Tencent/rapidjson.git 24b5e7a8b27f42fa16b96fc70aade9106cf7102f include)
wasmquant_header_library(doctest doctest/doctest.h https://github.com/doctest/doctest.git v2.5.3 .)

file(STRINGS "${WASMQUANT_xsimd_DIR}/xsimd/config/xsimd_config.hpp" xsimd_major REGEX "define XSIMD_VERSION_MAJOR")
string(REGEX REPLACE ".*MAJOR +([0-9]+).*" "\\1" xsimd_major "${xsimd_major}")
if(xsimd_major LESS 14)
  message(FATAL_ERROR "xsimd ${xsimd_major} found in ${WASMQUANT_xsimd_DIR}; 14 or newer is needed (WASM masks, emulated arch)")
endif()
