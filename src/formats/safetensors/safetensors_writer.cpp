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

Status check_names(const List<Entry>& entries) {
  for (const Entry& entry : entries) {
    if (entry.name == kMetadataName)
      return not_writable(entry.name, "a tensor may not have this name: it means the metadata");
    if (!json::is_utf8(entry.name)) return not_writable(entry.name, "a tensor name must be valid UTF-8");
  }
  if (const auto twice =
          first_repeated(entries.size(), [&](uint32_t i) -> std::string_view { return entries[i].name; }))
    return error_at(ErrorCode::tensor_duplicate, shown_name(entries[*twice].name),
                    "two tensors to be written have this name");
  return {};
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

Result<Header> write_header(const List<Entry>& entries, const List<std::pair<std::string, std::string>>& metadata) {
  TRY_VOID(check_names(entries));
  Header header;
  std::string& out = header.bytes;
  out.assign(8, '\0');
  TRY_VOID(append_metadata(out, metadata));
  // Reserve exactly: with many tensors, doubling would waste half as much again.
  size_t text_bytes = out.size();
  for (const Entry& entry : entries) text_bytes += entry.name.size() + 80 + 8 * entry.shape.size();
  out.reserve(text_bytes);
  header.offsets.reserve(entries.size());
  uint64_t end = 0;
  for (const Entry& entry : entries) {
    TRY(bytes, tensor_bytes(entry.dtype, entry.shape, entry.name));
    if (bytes > kMaxDataBytes - end)
      return not_writable(entry.name, text_of("with this tensor the data would exceed {} bytes", kMaxDataBytes));
    const uint64_t offsets[] = {end, end + bytes};
    out += ',';
    json::append_quoted(out, entry.name);
    out += ":{\"dtype\":\"";
    out += info_of(entry.dtype).name;
    out += "\",\"shape\":";
    append_list(out, entry.shape);
    out += ",\"data_offsets\":";
    append_list(out, offsets);
    out += '}';
    header.offsets.push_back(end);
    end += bytes;
  }
  out += '}';
  out.append((8 - out.size() % 8) % 8, ' ');

  const uint64_t length = out.size() - 8;
  if (length > kMaxHeaderBytes)
    return error_at(ErrorCode::file_invalid, "", "the header would take {} bytes, allowed are {}", length,
                    kMaxHeaderBytes);
  for (size_t i = 0; i < 8; ++i) out[i] = static_cast<char>(length >> (8 * i));
  for (uint64_t& offset : header.offsets) offset += out.size();
  header.file_bytes = out.size() + end;
  return header;
}

}  // namespace wasmquant::safetensors
