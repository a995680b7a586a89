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

}  // namespace

size_t HeaderWriter::entry_bytes(size_t name_bytes, std::span<const uint64_t> shape, uint64_t data_bytes) noexcept {
  const auto digits = [](uint64_t number) {
    size_t count = 1;
    while (number >= 10) number /= 10, ++count;
    return count;
  };
  // ,"":{"dtype":"F8_E8M0","shape":[],"data_offsets":[,]}
  size_t bytes = 53 + name_bytes + 2 * digits(data_bytes);
  for (const uint64_t dimension : shape) bytes += digits(dimension) + 1;
  return bytes;
}

Result<HeaderWriter> HeaderWriter::begin(const List<std::pair<std::string, std::string>>& metadata, size_t bytes) {
  HeaderWriter writer;
  // At once: with many tensors, doubling would waste half as much again.
  writer.text_.reserve(bytes + 256);
  writer.text_.assign(8, '\0');
  TRY_VOID(append_metadata(writer.text_, metadata));
  return writer;
}

Status HeaderWriter::add(std::string_view name, StorageDtype dtype, std::span<const uint64_t> shape) {
  if (name == kMetadataName) return not_writable(name, "a tensor may not have this name: it means the metadata");
  if (!json::is_utf8(name)) return not_writable(name, "a tensor name must be valid UTF-8");
  TRY(bytes, tensor_bytes(dtype, shape, name));
  if (bytes > kMaxDataBytes - end_)
    return not_writable(name, text_of("with this tensor the data would exceed {} bytes", kMaxDataBytes));
  const uint64_t offsets[] = {end_, end_ + bytes};
  text_ += ',';
  if (text_.size() <= kMaxHeaderBytes) names_.push_back(static_cast<uint32_t>(text_.size()));
  json::append_quoted(text_, name);
  text_ += ":{\"dtype\":\"";
  text_ += info_of(dtype).name;
  text_ += "\",\"shape\":";
  append_list(text_, shape);
  text_ += ",\"data_offsets\":";
  append_list(text_, offsets);
  text_ += '}';
  offsets_.push_back(end_);
  end_ += bytes;
  return {};
}

// Equal names are equal when quoted.
std::string_view HeaderWriter::name_at(uint32_t place) const noexcept {
  const std::string_view text = std::string_view(text_).substr(place + 1);
  size_t end = 0;
  while (text[end] != '"') end += text[end] == '\\' ? 2 : 1;
  return text.substr(0, end);
}

Result<Header> HeaderWriter::finish() {
  const auto name = [this](uint32_t i) { return name_at(names_[i]); };
  if (const auto twice = first_repeated(names_.size(), name))
    return error_at(ErrorCode::tensor_duplicate, shown_name(name(*twice)), "two tensors to be written have this name");
  text_ += '}';
  text_.append((8 - text_.size() % 8) % 8, ' ');
  const uint64_t length = text_.size() - 8;
  if (length > kMaxHeaderBytes)
    return error_at(ErrorCode::file_invalid, "", "the header would have {} bytes, allowed are {}", length,
                    kMaxHeaderBytes);
  for (size_t i = 0; i < 8; ++i) text_[i] = static_cast<char>(length >> (8 * i));
  for (uint64_t& offset : offsets_) offset += text_.size();
  const uint64_t file_bytes = text_.size() + end_;
  return Header{std::move(text_), std::move(offsets_), file_bytes};
}

Result<Header> write_header(const List<TensorHeader>& entries,
                            const List<std::pair<std::string, std::string>>& metadata) {
  size_t bytes = 0;
  for (const TensorHeader& entry : entries)
    bytes += HeaderWriter::entry_bytes(entry.name.size(), entry.shape, kMaxDataBytes);
  TRY(writer, HeaderWriter::begin(metadata, bytes));
  for (const TensorHeader& entry : entries) TRY_VOID(writer.add(entry.name, entry.dtype, entry.shape));
  return writer.finish();
}

}  // namespace wasmquant::safetensors
