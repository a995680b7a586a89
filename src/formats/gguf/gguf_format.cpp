#include "formats/format.h"
#include "formats/gguf/gguf.h"
#include "formats/gguf/gguf_split.h"

namespace wasmquant {
namespace {

class GgufReader final : public HeaderReader {
 public:
  using HeaderReader::HeaderReader;

 private:
  Result<uint64_t> wanted(std::span<const uint8_t> prefix) const override {
    TRY(need, gguf::need(prefix, file_bytes()));
    return need.bytes;
  }

  Result<FileIndex> read(std::span<const uint8_t> prefix) const override {
    TRY(index, gguf::read_index(prefix, file_bytes()));
    FileIndex file;
    for (gguf::Tensor& tensor : index.tensors)
      file.tensors.push_back(
          {std::move(tensor.name), storage_dtype_of(tensor.type), std::move(tensor.shape), tensor.begin, tensor.end});
    for (const gguf::KeyValue& entry : index.metadata.entries())
      file.metadata.emplace_back(entry.key, gguf::text_of_value(entry));
    TRY(part, gguf::part_of(index.metadata));
    file.part = part;
    auto details = std::make_shared<gguf::FileMetadata>();
    details->metadata = std::move(index.metadata);
    file.details = std::move(details);
    return file;
  }
};

bool looks_like_gguf(std::span<const uint8_t> prefix) noexcept {
  return prefix.size() >= 4 && std::string_view(reinterpret_cast<const char*>(prefix.data()), 4) == "GGUF";
}

Status check_gguf_files(std::span<const FileIndex> files) {
  return files.size() > 1 ? gguf::check_parts(files) : Status();
}

}  // namespace

const Format& gguf_format() noexcept {
  static constexpr std::string_view kExtensions[] = {".gguf"};
  static constexpr Format format{
      .name = "gguf",
      .title = "GGUF",
      .extensions = kExtensions,
      .looks_like = looks_like_gguf,
      .open = [](const FileStart& file) -> std::unique_ptr<IndexReader> {
        return std::make_unique<GgufReader>(file.bytes);
      },
      .check_files = check_gguf_files,
      .has_ggml_names = true,
      .carries_config = true,
      .has_sibling_files = false,
  };
  return format;
}

}  // namespace wasmquant
