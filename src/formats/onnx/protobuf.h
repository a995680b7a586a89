// The Protocol Buffers wire format: reads fields one head at a time and writes fields.
//   field: varint tag = number * 8 + wire type, then   0 varint   1 eight bytes   2 varint length, bytes   5 four bytes
// Wire types 3 and 4 (deprecated groups), 6 and 7 (undefined) are rejected. Source: protobuf.dev, "Encoding".
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace wasmquant::protobuf {

/// Wire types, numbered as in files; groups (3 and 4) are refused.
enum class Wire : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

inline constexpr size_t kMaxVarintBytes = 10;
/// Tag and value or length.
inline constexpr size_t kMaxHeadBytes = 2 * kMaxVarintBytes;

/// A field up to its payload; numbers are read completely.
struct Head {
  uint32_t number = 0;
  Wire wire = Wire::varint;
  uint64_t value = 0;  // a number (fixed ones: their bits), or the length of `bytes`
  uint32_t bytes = 0;  // length of the head
};

/// Result of reading a head; except after `read`, the output is undefined.
enum class Outcome : uint8_t {
  read,
  cut_off,     // `bytes` ends within the head
  bad_varint,  // more than 10 bytes, or more than 64 bits
  bad_tag,     // number 0 or above 2^29 - 1, or an unsupported wire type
};
/// Reads the varint at the start of `bytes`; `used`: its length.
Outcome read_varint(std::span<const uint8_t> bytes, uint64_t& value, uint32_t& used) noexcept;
Outcome read_head(std::span<const uint8_t> bytes, Head& head) noexcept;

void append_varint(std::string& out, uint64_t value);
/// Appends a whole field: a number as varint, or bytes.
void append_field(std::string& out, uint32_t number, uint64_t value);
void append_field(std::string& out, uint32_t number, std::string_view bytes);
/// Appends tag and length of a field of `length` bytes.
void append_head(std::string& out, uint32_t number, uint64_t length);

}  // namespace wasmquant::protobuf
