// How a host drives the safetensors reader, and the files of the tests folder.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "formats/prefix_reader.h"
#include "formats/safetensors/safetensors.h"

namespace test_files {

/// A path below the tests folder: WASMQUANT_TESTS_DIR, else "tests" in the working directory.
inline std::string path_of(const std::string& name) {
  const char* folder = std::getenv("WASMQUANT_TESTS_DIR");
  return std::string(folder != nullptr ? folder : "tests") + "/" + name;
}

/// None if there is no such file.
inline std::optional<std::vector<uint8_t>> read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  return std::vector<uint8_t>(std::istreambuf_iterator<char>(in), {});
}

/// The file `name` of the tests folder. Without it no test says anything: the program ends with exit code 2.
inline std::vector<uint8_t> file_bytes(const std::string& name) {
  const std::string path = path_of(name);
  if (auto bytes = read_bytes(path)) return std::move(*bytes);
  std::fprintf(stderr, "no %s: run the tests in the repository, or set WASMQUANT_TESTS_DIR to its tests folder\n",
               path.c_str());
  std::exit(2);
}
inline std::string file_text(const std::string& name) {
  const auto bytes = file_bytes(name);
  return {bytes.begin(), bytes.end()};
}

/// As a host reads it (prefix_reader.h).
inline wasmquant::Result<wasmquant::FileIndex> read_in_pieces(const std::vector<uint8_t>& file, std::mt19937& random) {
  return read_prefix_in_pieces(file, random, wasmquant::safetensors::need, wasmquant::safetensors::read_index);
}

}  // namespace test_files
