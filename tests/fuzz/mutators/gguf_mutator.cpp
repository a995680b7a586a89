// A GGUF file taken apart without its reader's checks, so that what the reader refuses can be mended and changed, too.
#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "formats/gguf/gguf.h"
#include "mutators/mutators.h"

namespace wasmquant::fuzz {
namespace {

struct TensorInfo {
  std::string name;
  std::vector<uint64_t> dimensions;
  uint32_t type = 0;
  uint64_t offset = 0;
};

struct Parts {
  uint32_t version = 3;
  std::vector<gguf::KeyValue> keys;  // type and bytes may be at odds
  std::vector<TensorInfo> tensors;
  std::string data;
};

class Reader {
 public:
  Reader(const uint8_t* data, size_t size) : text_(reinterpret_cast<const char*>(data), size) {}

  template <class T>
  bool number(T& value) {
    if (text_.size() < sizeof(T)) return false;
    std::memcpy(&value, text_.data(), sizeof(T));
    text_.remove_prefix(sizeof(T));
    return true;
  }
  bool bytes(std::string& out, uint64_t count) {
    if (text_.size() < count) return false;
    out.append(text_.substr(0, count));
    text_.remove_prefix(count);
    return true;
  }
  bool text(std::string& out) {
    uint64_t length = 0;
    return number(length) && bytes(out, length);
  }
  /// The value as the file has it.
  bool value(gguf::ValueType type, std::string& out, bool in_array = false) {
    if (type == gguf::ValueType::text) {
      std::string text;
      if (!this->text(text)) return false;
      gguf::append_text(out, text);
      return true;
    }
    if (type != gguf::ValueType::array)
      return static_cast<uint32_t>(type) < gguf::kValueTypeCount && bytes(out, gguf::fixed_bytes(type));
    uint32_t element = 0;
    uint64_t count = 0;
    if (in_array || !number(element) || !number(count) || count > 4096) return false;
    gguf::append_u32(out, element);
    gguf::append_u64(out, count);
    for (uint64_t i = 0; i < count; ++i)
      if (!value(static_cast<gguf::ValueType>(element), out, true)) return false;
    return true;
  }
  std::string_view rest() const { return text_; }

 private:
  std::string_view text_;
};

/// As much as can be understood; false when it is not GGUF at all.
bool take_apart(const uint8_t* data, size_t size, Parts& parts) {
  Reader in(data, size);
  std::string magic;
  uint64_t tensors = 0, keys = 0;
  if (!in.bytes(magic, 4) || magic != "GGUF" || !in.number(parts.version) || !in.number(tensors) || !in.number(keys))
    return false;
  for (uint64_t i = 0; i < keys; ++i) {
    gguf::KeyValue entry;
    uint32_t type = 0;
    if (!in.text(entry.key) || !in.number(type)) return true;
    entry.type = static_cast<gguf::ValueType>(type);
    if (!in.value(entry.type, entry.bytes)) return true;
    parts.keys.push_back(std::move(entry));
  }
  for (uint64_t i = 0; i < tensors; ++i) {
    TensorInfo tensor;
    uint32_t rank = 0;
    if (!in.text(tensor.name) || !in.number(rank) || rank > 16) return true;
    tensor.dimensions.resize(rank);
    for (uint64_t& each : tensor.dimensions)
      if (!in.number(each)) return true;
    if (!in.number(tensor.type) || !in.number(tensor.offset)) return true;
    parts.tensors.push_back(std::move(tensor));
  }
  parts.data = in.rest();
  return true;
}

uint64_t bytes_of(const TensorInfo& tensor) {
  uint64_t elements = 1;
  for (const uint64_t each : tensor.dimensions) elements = each > 65536 ? 0 : elements * each;
  const auto type = ggml_type_of(tensor.type);
  return type ? std::min<uint64_t>(info_of(*type).bytes_of(elements), 65536) : 0;
}

/// `mends`: offsets and data follow from the tensors.
std::string put_together(Parts& parts, bool mends) {
  uint32_t alignment = gguf::kDefaultAlignment;
  for (const gguf::KeyValue& entry : parts.keys)
    if (entry.key == gguf::kAlignmentKey && entry.bytes.size() == 4) std::memcpy(&alignment, entry.bytes.data(), 4);
  if (alignment == 0 || alignment > 4096 || (alignment & (alignment - 1)) != 0) alignment = gguf::kDefaultAlignment;
  uint64_t end = 0;
  for (TensorInfo& tensor : parts.tensors) {
    if (mends) tensor.offset = end;
    end += gguf::padded(bytes_of(tensor), alignment);
  }
  std::string out = "GGUF";
  gguf::append_u32(out, parts.version);
  gguf::append_u64(out, parts.tensors.size());
  gguf::append_u64(out, parts.keys.size());
  for (const gguf::KeyValue& entry : parts.keys) {
    gguf::append_text(out, entry.key);
    gguf::append_u32(out, static_cast<uint32_t>(entry.type));
    out += entry.bytes;
  }
  for (const TensorInfo& tensor : parts.tensors) {
    gguf::append_text(out, tensor.name);
    gguf::append_u32(out, static_cast<uint32_t>(tensor.dimensions.size()));
    for (const uint64_t each : tensor.dimensions) gguf::append_u64(out, each);
    gguf::append_u32(out, tensor.type);
    gguf::append_u64(out, tensor.offset);
  }
  if (!mends) return out + parts.data;
  out.resize(gguf::padded(out.size(), alignment));
  return out.append(std::min<uint64_t>(end, 65536), '\0');
}

uint64_t odd_number(std::minstd_rand& random) {
  constexpr uint64_t kValues[] = {0,  1,   2,   31,       32,         33,         63,
                                  64, 255, 256, 1u << 31, 1ull << 32, 1ull << 62, ~uint64_t{0}};
  return random() % 2 == 0 ? kValues[random() % std::size(kValues)] : random() % 512;
}

void change_key(gguf::KeyValue& entry, std::minstd_rand& random) {
  constexpr const char* kKeys[] = {"general.alignment", "general.architecture", "split.count",
                                   "split.no",          "split.tensors.count",  "general.quantization_version",
                                   "general.file_type"};
  switch (random() % 5) {
    case 0:
      entry.key = kKeys[random() % std::size(kKeys)];
      break;
    case 1:
      entry.key += 'x';
      break;
    case 2: {  // another type, with a value of it
      entry.type = static_cast<gguf::ValueType>(random() % (gguf::kValueTypeCount + 1));
      entry.bytes.clear();
      const uint64_t value = odd_number(random);
      if (entry.type == gguf::ValueType::text)
        gguf::append_text(entry.bytes, "llama");
      else if (static_cast<uint32_t>(entry.type) < gguf::kValueTypeCount)
        entry.bytes.append(reinterpret_cast<const char*>(&value), gguf::fixed_bytes(entry.type));
      break;
    }
    case 3:
      if (entry.type == gguf::ValueType::u32 && entry.bytes.size() == 4) {
        const uint32_t value = random() % 2 == 0 ? 1u << random() % 32 : static_cast<uint32_t>(odd_number(random));
        std::memcpy(entry.bytes.data(), &value, 4);
      }
      break;
    default: {
      const size_t size = entry.bytes.size();
      entry.bytes.resize(size + 8);
      entry.bytes.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(entry.bytes.data()), size, size + 8));
    }
  }
}

void change_tensor(TensorInfo& tensor, std::minstd_rand& random) {
  switch (random() % 6) {
    case 0:
      tensor.type = static_cast<uint32_t>(random() % 44);
      break;
    case 1:
      tensor.dimensions.resize(random() % 6, 256);
      break;
    case 2:
      if (!tensor.dimensions.empty()) tensor.dimensions[random() % tensor.dimensions.size()] = odd_number(random);
      break;
    case 3:
      tensor.offset += odd_number(random);
      break;
    case 4:
      tensor.name += "weight";
      break;
    default:
      tensor.name.resize(random() % 70, 'n');
  }
}

template <class T>
void shuffle_items(std::vector<T>& items, std::minstd_rand& random) {
  if (items.empty()) return;
  const auto at = items.begin() + static_cast<std::ptrdiff_t>(random() % items.size());
  const T copy = *at;
  if (random() % 2 == 0)
    items.erase(at);
  else
    items.insert(items.begin() + static_cast<std::ptrdiff_t>(random() % (items.size() + 1)), copy);
}

}  // namespace

size_t mutate_gguf(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  std::minstd_rand random(seed + 1);
  Parts parts;
  if (random() % 8 == 0 || !take_apart(data, size, parts)) return LLVMFuzzerMutate(data, size, max_size);
  for (unsigned round = 0; round <= random() % 3; ++round) {
    const bool of_keys = random() % 2 == 0;
    if (random() % 3 == 0) {
      of_keys ? shuffle_items(parts.keys, random) : shuffle_items(parts.tensors, random);
    } else if (of_keys && !parts.keys.empty()) {
      change_key(parts.keys[random() % parts.keys.size()], random);
    } else if (!parts.tensors.empty()) {
      change_tensor(parts.tensors[random() % parts.tensors.size()], random);
    } else {
      parts.tensors.push_back({"blk.0.attn_q.weight", {256, 2}, 0, 0});
    }
  }
  if (random() % 32 == 0) parts.version = static_cast<uint32_t>(odd_number(random));
  const std::string out = put_together(parts, random() % 4 != 0);
  if (out.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, out.data(), out.size());
  return out.size();
}

}  // namespace wasmquant::fuzz
