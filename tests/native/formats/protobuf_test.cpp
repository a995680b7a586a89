#include "formats/onnx/protobuf.h"

#include <doctest/doctest.h>

using namespace wasmquant;
using protobuf::Outcome;

namespace {

std::span<const uint8_t> message_bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace

TEST_CASE("varints are read back, and have the stated number of bytes") {
  for (int bit = 0; bit < 64; ++bit)
    for (const uint64_t value : {uint64_t{1} << bit, (uint64_t{1} << bit) - 1, ~uint64_t{0} >> bit}) {
      std::string out;
      protobuf::append_varint(out, value);
      uint64_t read = 0;
      uint32_t used = 0;
      CHECK(protobuf::read_varint(message_bytes(out), read, used) == Outcome::read);
      CHECK(read == value);
      CHECK(used == out.size());
      for (size_t cut = 0; cut < out.size(); ++cut)
        CHECK(protobuf::read_varint(message_bytes(out).first(cut), read, used) == Outcome::cut_off);
    }
}

TEST_CASE("varints of more than 64 bits are refused") {
  uint64_t value = 0;
  uint32_t used = 0;
  CHECK(protobuf::read_varint(message_bytes(std::string(10, '\xff')), value, used) == Outcome::bad_varint);
  CHECK(protobuf::read_varint(message_bytes(std::string(9, '\xff') + '\2'), value, used) == Outcome::bad_varint);
  CHECK(protobuf::read_varint(message_bytes(std::string(9, '\xff') + '\1'), value, used) == Outcome::read);
  CHECK(value == ~uint64_t{0});
  CHECK(protobuf::read_varint(message_bytes(std::string(9, '\x80') + '\0'), value, used) == Outcome::read);
}

TEST_CASE("heads of every wire type") {
  protobuf::Head head;
  std::string field;
  protobuf::append_field(field, 1000, uint64_t{300});
  CHECK(protobuf::read_head(message_bytes(field), head) == Outcome::read);
  CHECK(head.number == 1000);
  CHECK(head.value == 300);
  CHECK(head.bytes == field.size());

  field.clear();
  protobuf::append_field(field, 2, "abc");
  CHECK(protobuf::read_head(message_bytes(field), head) == Outcome::read);
  CHECK(head.wire == protobuf::Wire::bytes);
  CHECK(head.value == 3);
  CHECK(head.bytes == 2);

  CHECK(protobuf::read_head(message_bytes("\x15\1\2\3\4"), head) == Outcome::read);
  CHECK(head.value == 0x04030201);
  CHECK(protobuf::read_head(message_bytes("\x11\1\2\3\4"), head) == Outcome::cut_off);
  CHECK(protobuf::read_head(message_bytes(std::string("\x11\1\2\3\4\0\0\0\0", 9)), head) == Outcome::read);
  for (const char tag : {'\0', '\7', '\x0b', '\x0c', '\x0e', '\x0f'})  // number 0; groups; no types
    CHECK(protobuf::read_head(message_bytes(std::string(1, tag) + "\1"), head) == Outcome::bad_tag);
  CHECK(protobuf::read_head(message_bytes("\xff\xff\xff\xff\x7f\1"), head) ==
        Outcome::bad_tag);  // number beyond 2^29 - 1
}
