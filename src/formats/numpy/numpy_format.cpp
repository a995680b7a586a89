#include "formats/format.h"
#include "formats/numpy/npy.h"
#include "formats/numpy/npz.h"

namespace wasmquant {
namespace {

// A matrix gets ".weight" behind its name, because only such tensors are quantized; a name that says what it is stays.
void add_suffix(StoredTensor& tensor) {
  constexpr std::string_view kKnown[] = {"weight", "bias", "input", "output"};
  const size_t dot = tensor.name.rfind('.');
  const std::string_view last =
      dot == std::string::npos ? std::string_view() : std::string_view(tensor.name).substr(dot + 1);
  for (const std::string_view known : kKnown)
    if (last == known) return;
  if (tensor.shape.size() > 1) tensor.name += ".weight";
}

// The array is named after its file.
class NpyReader final : public HeaderReader {
 public:
  explicit NpyReader(const FileStart& file) : HeaderReader(file.bytes), name_(file.name) {
    if (name_.ends_with(".npy")) name_.resize(name_.size() - 4);
  }

 private:
  Result<uint64_t> wanted(std::span<const uint8_t> prefix) const override { return npy::need(prefix, file_bytes()); }
  Result<FileIndex> read(std::span<const uint8_t> prefix) const override {
    TRY(tensor, npy::read_tensor(prefix, file_bytes()));
    tensor.name = name_;
    add_suffix(tensor);
    FileIndex file;
    file.tensors.push_back(std::move(tensor));
    return file;
  }

  std::string name_;
};

class NpzReader final : public IndexReader {
 public:
  explicit NpzReader(uint64_t file_bytes) : archive_(file_bytes) {}
  Need need() const override { return archive_.need(); }
  Status feed(std::span<const uint8_t> bytes) override { return archive_.feed(bytes); }
  Result<FileIndex> finish() override {
    FileIndex file;
    file.tensors = std::move(archive_.tensors());
    for (StoredTensor& tensor : file.tensors) add_suffix(tensor);
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
