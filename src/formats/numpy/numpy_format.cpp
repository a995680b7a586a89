#include "formats/format.h"
#include "formats/numpy/npy.h"
#include "formats/numpy/npz.h"

namespace wasmquant {
namespace {

// The array is named after its file; a matrix without a dot gets ".weight", because only such tensors are quantized.
class NpyReader final : public HeaderReader {
 public:
  explicit NpyReader(const FileStart& file)
      : HeaderReader(file.bytes), name_(file.name), is_inflated_(file.is_inflated) {
    if (name_.ends_with(".npy")) name_.resize(name_.size() - 4);
  }

 private:
  Result<uint64_t> wanted(std::span<const uint8_t> prefix) const override { return npy::need(prefix, file_bytes()); }
  Result<FileIndex> read(std::span<const uint8_t> prefix) const override {
    TRY(tensor, npy::read_tensor(prefix, file_bytes()));
    const bool is_weight = !is_inflated_ && tensor.shape.size() > 1 && name_.find('.') == std::string::npos;
    tensor.name = is_weight ? name_ + ".weight" : name_;
    FileIndex file;
    file.tensors.push_back(std::move(tensor));
    return file;
  }

  std::string name_;
  const bool is_inflated_;
};

class NpzReader final : public IndexReader {
 public:
  explicit NpzReader(uint64_t file_bytes) : archive_(file_bytes) {}
  Need need() const override { return archive_.need(); }
  Status feed(std::span<const uint8_t> bytes) override { return archive_.feed(bytes); }
  Result<FileIndex> finish() override {
    FileIndex file;
    file.tensors = std::move(archive_.tensors());
    file.deflated = archive_.deflated();
    return file;
  }
  bool is_whole_model() const noexcept override { return true; }

 private:
  npz::Reader archive_;
};

bool looks_like_numpy(std::span<const uint8_t> prefix) noexcept {
  return npy::looks_like_npy(prefix) || npz::looks_like_zip(prefix);
}

}  // namespace

const Format& numpy_format() noexcept {
  static constexpr std::string_view kExtensions[] = {".npy", ".npz"};
  static constexpr Format format{
      .name = "npy",
      .title = "NumPy",
      .extensions = kExtensions,
      .looks_like = looks_like_numpy,
      .open = [](const FileStart& file) -> std::unique_ptr<IndexReader> {
        if (npz::looks_like_zip(file.prefix)) return std::make_unique<NpzReader>(file.bytes);
        return std::make_unique<NpyReader>(file);
      },
      .has_sibling_files = false,
      .adds_weight_suffix = true,
  };
  return format;
}

}  // namespace wasmquant
