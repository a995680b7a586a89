// Fields as a tree: a payload that is itself a series of fields counts as a message.
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "formats/onnx/protobuf.h"
#include "mutators/mutators.h"

namespace wasmquant::fuzz {
namespace {

using protobuf::Wire;

constexpr int kMaxDepth = 12;

struct Field {
  uint32_t number = 1;
  Wire wire = Wire::varint;
  uint64_t value = 0;
  std::string payload;          // of bytes that are no message
  std::vector<Field> children;  // of those that are
};

bool parse(std::string_view text, int depth, std::vector<Field>& out) {
  while (!text.empty()) {
    protobuf::Head head;
    const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size());
    if (read_head(bytes, head) != protobuf::Outcome::read) return false;
    text.remove_prefix(head.bytes);
    Field field{head.number, head.wire, head.value, {}, {}};
    if (head.wire == Wire::bytes) {
      if (head.value > text.size()) return false;
      const std::string_view payload = text.substr(0, head.value);
      text.remove_prefix(payload.size());
      if (depth >= kMaxDepth || payload.size() < 2 || !parse(payload, depth + 1, field.children)) {
        field.children.clear();
        field.payload = payload;
      }
    }
    out.push_back(std::move(field));
  }
  return true;
}

void write(const std::vector<Field>& fields, std::string& out) {
  for (const Field& field : fields) {
    if (field.wire == Wire::varint) {
      protobuf::append_field(out, field.number, field.value);
    } else if (field.wire == Wire::bytes) {
      std::string payload = field.payload;
      write(field.children, payload);
      protobuf::append_field(out, field.number, payload);
    } else {
      const bool wide = field.wire == Wire::fixed64;
      protobuf::append_varint(out, uint64_t{field.number} << 3 | static_cast<uint64_t>(field.wire));
      out.append(reinterpret_cast<const char*>(&field.value), wide ? 8 : 4);
    }
  }
}

void list(std::vector<Field>& fields, std::vector<std::pair<std::vector<Field>*, size_t>>& places) {
  for (size_t i = 0; i < fields.size(); ++i) {
    places.emplace_back(&fields, i);
    list(fields[i].children, places);
  }
}

void change(Field& field, const Field& other, std::minstd_rand& random) {
  constexpr uint64_t kValues[] = {0,          1,          2,          3,          7,           10,
                                  16,         22,         127,        128,        0x7FFFFFFF,  0x80000000,
                                  0xFFFFFFFF, 1ull << 53, 1ull << 62, 1ull << 63, ~uint64_t{0}};
  switch (random() % 6) {
    case 0:
      field.number = static_cast<uint32_t>(1 + random() % 27);
      break;
    case 1:
      field.value = kValues[random() % std::size(kValues)];
      break;
    case 2:
      field.value += random() % 3 - 1;
      break;
    case 3:
      field = other;
      break;
    case 4:  // the same number with the other field's contents
      field = Field{field.number, other.wire, other.value, other.payload, other.children};
      break;
    default: {
      if (field.wire != Wire::bytes || !field.children.empty()) {
        field.value = random();
        break;
      }
      std::string& payload = field.payload;
      const size_t size = payload.size();
      payload.resize(size + 16);
      payload.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(payload.data()), size, size + 16));
    }
  }
}

}  // namespace

size_t mutate_protobuf(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  std::minstd_rand random(seed + 1);
  std::vector<Field> fields;
  if (random() % 8 == 0 || !parse({reinterpret_cast<const char*>(data), size}, 0, fields) || fields.empty())
    return LLVMFuzzerMutate(data, size, max_size);
  for (unsigned round = 0; round <= random() % 4; ++round) {
    std::vector<std::pair<std::vector<Field>*, size_t>> places;
    list(fields, places);
    if (places.empty()) break;
    const auto [siblings, i] = places[random() % places.size()];
    const auto [strangers, k] = places[random() % places.size()];
    const Field other = (*strangers)[k];
    switch (random() % 5) {
      case 0:
        siblings->erase(siblings->begin() + static_cast<std::ptrdiff_t>(i));
        break;
      case 1:
        siblings->insert(siblings->begin() + static_cast<std::ptrdiff_t>(random() % (siblings->size() + 1)), other);
        break;
      case 2:
        std::swap((*siblings)[i], (*siblings)[random() % siblings->size()]);
        break;
      default:
        change((*siblings)[i], other, random);
    }
  }
  std::string out;
  write(fields, out);
  if (out.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, out.data(), out.size());
  return out.size();
}

}  // namespace wasmquant::fuzz
