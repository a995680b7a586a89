#include "formats/onnx/protobuf.h"

#include <algorithm>
#include <cstring>

namespace wasmquant::protobuf {

Outcome read_varint(std::span<const uint8_t> bytes, uint64_t& value, uint32_t& used) noexcept {
  value = 0;
  for (uint32_t i = 0; i < kMaxVarintBytes; ++i) {
    if (i == bytes.size()) return Outcome::cut_off;
    const uint8_t byte = bytes[i];
    // The tenth byte has room for bit 63 only.
    if (i + 1 == kMaxVarintBytes && byte > 1) return Outcome::bad_varint;
    value |= uint64_t{byte & 0x7Fu} << (7 * i);
    if (byte < 0x80) {
      used = i + 1;
      return Outcome::read;
    }
  }
  return Outcome::bad_varint;
}

Outcome read_head(std::span<const uint8_t> bytes, Head& head) noexcept {
  uint64_t tag = 0;
  uint32_t used = 0;
  Outcome outcome = read_varint(bytes, tag, used);
  if (outcome != Outcome::read) return outcome;
  if (tag < 8 || tag > ~uint32_t{0}) return Outcome::bad_tag;
  head.number = static_cast<uint32_t>(tag >> 3);
  head.wire = static_cast<Wire>(tag & 7);
  head.bytes = used;
  const auto rest = bytes.subspan(used);
  switch (head.wire) {
    case Wire::varint:
    case Wire::bytes:
      outcome = read_varint(rest, head.value, used);
      break;
    case Wire::fixed64:
    case Wire::fixed32:
      used = head.wire == Wire::fixed64 ? 8 : 4;
      if (rest.size() < used) return Outcome::cut_off;
      head.value = 0;
      std::memcpy(&head.value, rest.data(), used);
      break;
    default:
      return Outcome::bad_tag;
  }
  head.bytes += used;
  return outcome;
}

void append_varint(std::string& out, uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

void append_field(std::string& out, uint32_t number, uint64_t value) {
  append_varint(out, uint64_t{number} << 3 | static_cast<uint64_t>(Wire::varint));
  append_varint(out, value);
}

void append_head(std::string& out, uint32_t number, uint64_t length) {
  append_varint(out, uint64_t{number} << 3 | static_cast<uint64_t>(Wire::bytes));
  append_varint(out, length);
}

void append_field(std::string& out, uint32_t number, std::string_view bytes) {
  append_head(out, number, bytes.size());
  out += bytes;
}

}  // namespace wasmquant::protobuf
