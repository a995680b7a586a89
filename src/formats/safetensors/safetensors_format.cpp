#include "core/message.h"
#include "formats/format.h"
#include "formats/part_name.h"
#include "formats/safetensors/safetensors.h"

namespace wasmquant {
namespace {

class SafetensorsReader final : public HeaderReader {
 public:
  explicit SafetensorsReader(const FileStart& file) : HeaderReader(file.bytes) {
    const auto name = read_part_name(file.name);
    if (name) part_ = {name->number, name->count, text_of("{}{}", name->stem, name->extension)};
  }

 private:
  Result<uint64_t> wanted(std::span<const uint8_t> prefix) const override {
    TRY(need, safetensors::need(prefix, file_bytes()));
    return need.bytes;
  }
  Result<FileIndex> read(std::span<const uint8_t> prefix) const override {
    TRY(index, safetensors::read_index(prefix, file_bytes()));
    index.part = part_;
    return index;
  }

  Part part_;  // the header does not say
};

// A header of less than 4 GiB that starts with a brace.
bool looks_like_safetensors(std::span<const uint8_t> prefix) noexcept {
  return prefix.size() > 8 && (prefix[4] | prefix[5] | prefix[6] | prefix[7]) == 0 && prefix[8] == '{';
}

}  // namespace

const Format& safetensors_format() noexcept {
  static constexpr std::string_view kExtensions[] = {".safetensors"};
  static constexpr Format format{
      .name = "safetensors",
      .title = "safetensors",
      .extensions = kExtensions,
      .looks_like = looks_like_safetensors,
      .open = [](const FileStart& file) -> std::unique_ptr<IndexReader> {
        return std::make_unique<SafetensorsReader>(file);
      },
  };
  return format;
}

}  // namespace wasmquant
