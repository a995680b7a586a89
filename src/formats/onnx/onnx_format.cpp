#include "formats/format.h"
#include "formats/onnx/onnx.h"

namespace wasmquant {
namespace {

class OnnxReader final : public IndexReader {
 public:
  explicit OnnxReader(uint64_t file_bytes) : skeleton_(std::make_unique<onnx::Skeleton>(file_bytes)) {}

  Need need() const override { return skeleton_->need(); }
  Status feed(std::span<const uint8_t> bytes) override { return skeleton_->feed(bytes); }
  Result<FileIndex> finish() override {
    auto details = std::make_shared<onnx::ModelFile>();
    TRY(model, onnx::read_model(std::move(skeleton_)));
    details->model = std::move(model);
    FileIndex file;
    for (const std::string_view name : details->model.locations) file.data_files.emplace_back(name);
    file.details = std::move(details);
    return file;
  }
  bool is_whole_model() const noexcept override { return true; }

 private:
  std::unique_ptr<onnx::Skeleton> skeleton_;
};

// A ModelProto starts with field 1, ir_version; a safetensors header has zeros in the upper half of its length.
bool looks_like_onnx(std::span<const uint8_t> prefix) noexcept {
  constexpr uint8_t kIrVersion = 0x08;  // field 1, varint
  return prefix.size() >= 8 && prefix[0] == kIrVersion && (prefix[4] | prefix[5] | prefix[6] | prefix[7]) != 0;
}

}  // namespace

const Format& onnx_format() noexcept {
  static constexpr std::string_view kExtensions[] = {".onnx"}, kDataExtensions[] = {".onnx_data", ".data"};
  static constexpr Format format{
      .name = "onnx",
      .title = "ONNX",
      .extensions = kExtensions,
      .data_extensions = kDataExtensions,
      .looks_like = looks_like_onnx,
      .open = [](const FileStart& file) -> std::unique_ptr<IndexReader> {
        return std::make_unique<OnnxReader>(file.bytes);
      },
      .has_graph = true,
      .has_sibling_files = false,
  };
  return format;
}

}  // namespace wasmquant
