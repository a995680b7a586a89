// How a host drives the safetensors reader, and the files of the tests folder.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "formats/safetensors.h"

namespace test_files {

/// A path below the tests folder: WASMQUANT_TESTS_DIR, else "tests" in the working directory.
inline std::string path_of(const std::string& name) {
  const char* folder = std::getenv("WASMQUANT_TESTS_DIR");
  return std::string(folder != nullptr ? folder : "tests") + "/" + name;
}

inline std::optional<std::vector<uint8_t>> read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  return std::vector<uint8_t>(std::istreambuf_iterator<char>(in), {});
}

/// Asks need, gives a random part of what is missing, and so on; then reads. The reader only ever sees `prefix`.
inline wasmquant::Result<wasmquant::FileIndex> read_in_pieces(const std::vector<uint8_t>& file, std::mt19937& random) {
  std::vector<uint8_t> prefix;
  for (;;) {
    const auto need = wasmquant::safetensors::need(prefix, file.size());
    if (!need) return need.error();
    if (need->bytes == 0) return wasmquant::safetensors::read_index(prefix, file.size());
    if (need->bytes <= prefix.size() || need->bytes > file.size())
      return wasmquant::Error{wasmquant::ErrorCode::state_invalid, "need",
                              "asks for what it has, or for what is not there"};
    const size_t size = prefix.size() + 1 + random() % (need->bytes - prefix.size());
    prefix.assign(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
    prefix.shrink_to_fit();  // a read beyond the piece is then seen by the sanitizer
  }
}

}  // namespace test_files
