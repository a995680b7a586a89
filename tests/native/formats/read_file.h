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

#include "formats/prefix_reader.h"
#include "formats/safetensors/safetensors.h"

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

/// As a host reads it (prefix_reader.h).
inline wasmquant::Result<wasmquant::FileIndex> read_in_pieces(const std::vector<uint8_t>& file, std::mt19937& random) {
  return read_prefix_in_pieces(file, random, wasmquant::safetensors::need, wasmquant::safetensors::read_index);
}

}  // namespace test_files
