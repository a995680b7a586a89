// GGUF files byte by byte, as wrong as a test wants them.
#pragma once
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf/gguf.h"
#include "formats/prefix_reader.h"

namespace test_files {

/// Appends little-endian numbers and texts.
struct GgufBytes {
  std::string out;

  template <class T>
  GgufBytes& number(T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  GgufBytes& text(std::string_view value) {
    number<uint64_t>(value.size());
    out += value;
    return *this;
  }
  GgufBytes& begin(int64_t tensors, int64_t keys, uint32_t version = 3) {
    out += "GGUF";
    return number(version).number(tensors).number(keys);
  }
  GgufBytes& key_u32(std::string_view key, uint32_t value) { return text(key).number<uint32_t>(4).number(value); }
  GgufBytes& tensor(std::string_view name, std::vector<int64_t> dimensions, int32_t type, uint64_t offset) {
    text(name).number(static_cast<uint32_t>(dimensions.size()));
    for (const int64_t dimension : dimensions) number(dimension);
    return number(type).number(offset);
  }
  /// Zeros to a multiple of `alignment`, then `bytes` more.
  GgufBytes& data(size_t bytes, size_t alignment = 32) {
    out.resize((out.size() + alignment - 1) / alignment * alignment + bytes);
    return *this;
  }
};

inline std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

/// As a host reads it (prefix_reader.h).
inline wasmquant::Result<wasmquant::gguf::Index> read_gguf_in_pieces(const std::string& file, std::mt19937& random) {
  return read_prefix_in_pieces(bytes_of(file), random, wasmquant::gguf::need, wasmquant::gguf::read_index);
}

}  // namespace test_files
