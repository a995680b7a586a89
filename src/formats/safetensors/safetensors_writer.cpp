// safetensors writer: entries to header bytes. Tensors are contiguous and in order; spaces align the data to 8 bytes.
#include <algorithm>

#include "core/json.h"
#include "core/list.h"
#include "core/message.h"
#include "core/order.h"
#include "formats/safetensors/safetensors.h"
#include "formats/safetensors/safetensors_header.h"
#include "formats/tensor_name.h"

namespace wasmquant::safetensors {
namespace {

Error not_writable(std::string_view name, std::string message) {
  return {ErrorCode::file_invalid, shown_name(name), std::move(message)};
}

// Some versions of transformers reject a file without format: "pt".
Status append_metadata(std::string& out, const List<std::pair<std::string, std::string>>& metadata) {
  List<std::string_view> keys;
  const auto append = [&](std::string_view key, std::string_view value) {
    out += keys.empty() ? "" : ",";
    json::append_quoted(out, key);
    out += ':';
    json::append_quoted(out, value);
    keys.push_back(key);
  };
  out += "{\"__metadata__\":{";
  for (const auto& [key, value] : metadata) {
    if (!json::is_utf8(key) || !json::is_utf8(value))
      return not_writable(kMetadataName, text_of("the entry '{}' must be valid UTF-8", shown_name(key)));
    append(key, value);
  }
  if (std::find(keys.begin(), keys.end(), "format") == keys.end()) append("format", "pt");
  if (const auto twice = first_repeated(keys.size(), [&](uint32_t i) -> std::string_view { return keys[i]; }))
    return not_writable(kMetadataName, text_of("the key '{}' is given twice", shown_name(keys[*twice])));
  out += '}';
  return {};
}

void append_list(std::string& out, std::span<const uint64_t> numbers) {
  out += '[';
  for (const uint64_t& number : numbers) {
    if (&number != numbers.data()) out += ',';
    append_number(out, number);
  }
  out += ']';
}

// FNV-1a.
uint64_t hash_of(std::string_view text) noexcept {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char each : text) hash = (hash ^ static_cast<uint8_t>(each)) * 0x100000001b3;
  return hash;
}

}  // namespace

Result<HeaderLayout> HeaderLayout::begin(const List<std::pair<std::string, std::string>>& metadata) {
  HeaderLayout layout;
  TRY_VOID(append_metadata(layout.metadata_, metadata));
  layout.header_bytes_ = 8 + layout.metadata_.size();
  return layout;
}

Status HeaderLayout::add(std::string_view name, StorageDtype dtype, std::span<const uint64_t> shape) {
  if (name == kMetadataName) return not_writable(name, "a tensor may not have this name: it means the metadata");
  if (!json::is_utf8(name)) return not_writable(name, "a tensor name must be valid UTF-8");
  TRY(bytes, tensor_bytes(dtype, shape, name));
  if (bytes > kMaxDataBytes - data_bytes_)
    return not_writable(name, text_of("with this tensor the data would exceed {} bytes", kMaxDataBytes));
  scratch_.clear();
  append(scratch_, name, dtype, shape, data_bytes_, bytes);
  header_bytes_ += scratch_.size();
  data_bytes_ += bytes;
  name_hashes_.push_back(hash_of(name));
  return {};
}

void HeaderLayout::append(std::string& out, std::string_view name, StorageDtype dtype, std::span<const uint64_t> shape,
                          uint64_t begin, uint64_t bytes) {
  const uint64_t offsets[] = {begin, begin + bytes};
  out += ',';
  json::append_quoted(out, name);
  out += ":{\"dtype\":\"";
  out += info_of(dtype).name;
  out += "\",\"shape\":";
  append_list(out, shape);
  out += ",\"data_offsets\":";
  append_list(out, offsets);
  out += '}';
}

Status HeaderLayout::finish(const CallableRef<std::string(uint32_t tensor)>& name_of) {
  const List<uint32_t> order =
      sorted_order(name_hashes_.size(), [this](uint32_t a, uint32_t b) { return name_hashes_[a] < name_hashes_[b]; });
  for (size_t i = 1; i < order.size(); ++i)
    for (size_t j = i; j-- > 0 && name_hashes_[order[j]] == name_hashes_[order[i]];)
      if (const std::string name = name_of(order[i]); name == name_of(order[j]))
        return error_at(ErrorCode::tensor_duplicate, shown_name(name), "two tensors to be written have this name");
  name_hashes_ = {};
  tail_bytes_ = 1 + (8 - (header_bytes_ + 1) % 8) % 8;
  header_bytes_ += tail_bytes_;
  if (header_bytes_ - 8 > kMaxHeaderBytes)
    return error_at(ErrorCode::file_invalid, "", "the header would have {} bytes; the limit is {}", header_bytes_ - 8,
                    kMaxHeaderBytes);
  return {};
}

std::string HeaderLayout::head() const {
  std::string out(8, '\0');
  for (size_t i = 0; i < 8; ++i) out[i] = static_cast<char>((header_bytes_ - 8) >> (8 * i));
  return out += metadata_;
}

std::string HeaderLayout::tail() const {
  std::string out(tail_bytes_, ' ');
  out[0] = '}';
  return out;
}

Result<Header> write_header(const List<TensorHeader>& entries,
                            const List<std::pair<std::string, std::string>>& metadata) {
  TRY(layout, HeaderLayout::begin(metadata));
  std::vector<uint64_t> begins;
  for (const TensorHeader& entry : entries) {
    begins.push_back(layout.data_bytes());
    TRY_VOID(layout.add(entry.name, entry.dtype, entry.shape));
  }
  TRY_VOID(layout.finish([&](uint32_t i) { return entries[i].name; }));
  std::string text = layout.head();
  begins.push_back(layout.data_bytes());
  for (size_t i = 0; i < entries.size(); ++i) {
    const auto& [name, dtype, shape] = entries[i];
    HeaderLayout::append(text, name, dtype, shape, begins[i], begins[i + 1] - begins[i]);
  }
  text += layout.tail();
  begins.pop_back();
  for (uint64_t& offset : begins) offset += layout.header_bytes();
  return Header{std::move(text), std::move(begins), layout.header_bytes() + layout.data_bytes()};
}

}  // namespace wasmquant::safetensors
