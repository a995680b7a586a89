// A model as the pipeline sees it: the files it consists of, and all their tensors in file order.
// Sans-I/O: the caller says which files there are and feeds their first bytes until the headers are complete.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/diagnostic.h"
#include "core/json.h"
#include "core/list.h"
#include "core/result.h"
#include "formats/gguf/gguf.h"
#include "formats/numpy/npz.h"
#include "formats/safetensors/safetensors_index.h"
#include "formats/tensor_index.h"
#include "pipeline/model_index/inline_tensors.h"
#include "pipeline/model_index/onnx_index.h"

namespace wasmquant {

struct StoredWeight;

struct ModelTensor {
  uint32_t file = 0;
  StoredTensor stored;
  std::shared_ptr<const StoredWeight> quantized;  // of original_model(): codes stand for it, `stored` says what of
  std::string layer;                              // module name
  std::string layer_type;                         // Linear, Embedding, ..., "" when unknown
  // Of a matrix that is part of a tensor of the file (expert_tensors.h): elements from one stored row to the next, and
  // whether those rows are inputs.
  bool is_part = false;
  uint64_t pitch = 0;
  bool is_input_major = false;
};

class ModelIndex {
 public:
  struct File {
    std::string name;
    uint64_t bytes = 0;
    bool is_read = false;
  };

  /// Parses model.safetensors.index.json; the files it names are then to be added in that order.
  Result<List<std::string>> read_shard_map(std::string_view text);
  uint32_t add_file(std::string name, uint64_t bytes);
  /// Bytes from offset 0 that read() needs, judged from `prefix`; 0 = prefix is enough.
  Result<uint64_t> need(uint32_t file, std::span<const uint8_t> prefix) const;
  Status read(uint32_t file, std::span<const uint8_t> prefix);
  /// Whether the file is ONNX, by its first bytes or its name, or a zip archive: then it is fed instead, from byte 0
  /// on.
  bool is_fed(uint32_t file, std::span<const uint8_t> prefix) const noexcept;
  /// The bytes that were asked for, or more from there on; answers which come next, 0 bytes: none. After that, the
  /// files with external data are to be added in the order of onnx()->model().locations, or deflated(), inflated, as
  /// files of their own.
  Result<onnx::Skeleton::Need> feed(uint32_t file, std::span<const uint8_t> bytes);
  /// Arrays of the .npz archive that was fed last.
  const List<npz::Deflated>& deflated() const noexcept { return deflated_; }
  /// Checks that files, shard map and names agree; to be called once. After it, the accessors below are valid.
  Status finish();

  /// The same files, companions and metadata with other tensors.
  ModelIndex with_tensors(List<ModelTensor> tensors) const;

  const List<File>& files() const noexcept { return files_; }
  const List<ModelTensor>& tensors() const noexcept { return tensors_; }
  /// The free metadata of a file's header.
  const List<std::pair<std::string, std::string>>& metadata(uint32_t file) const noexcept {
    return indexes_[file].metadata;
  }
  const ModelTensor* find(std::string_view name) const noexcept;
  bool is_sharded() const noexcept { return is_sharded_ || shard_map_.has_value(); }
  /// Text of model.safetensors.index.json with an empty weight_map; "" where there is none.
  std::string_view shard_map_text() const noexcept { return shard_map_text_; }
  /// Of the files: gguf, onnx, npy or safetensors.
  std::string_view format() const noexcept;
  /// Files are GGUF: the metadata of the first part.
  bool is_gguf() const noexcept { return !parts_.empty(); }
  const gguf::Metadata& gguf_metadata() const noexcept { return parts_.front().metadata; }

  /// Files are NumPy's: arrays, or an archive of them.
  bool is_npy() const noexcept { return is_npy_; }
  /// Null: of another format.
  const OnnxIndex* onnx() const noexcept { return onnx_.get(); }
  /// Parallel to tensors() of an ONNX model.
  const List<OnnxTensor>& onnx_tensors() const noexcept { return onnx_tensors_; }

  /// Tensors whose bytes are to be given once finish() has listed them (inline_tensors.h); indexes into tensors().
  List<uint32_t> inline_tensors() const { return inline_tensors_.wanted(); }
  Status set_inline_bytes(uint32_t tensor, std::string bytes);
  /// Nothing where they were not given, or the tensor is none of these.
  std::optional<std::string_view> inline_bytes(std::string_view name) const noexcept;

  /// Files beside the weights that a conversion reads (config.json, tokenizer.json, ...); may come at any time.
  void set_companion(std::string name, std::string bytes);
  /// Empty when it is not there.
  std::string_view companion(std::string_view name) const noexcept;
  /// {format, tensors: their number, metadata, diagnostics, inlineTensors}
  json::Value to_json() const;
  /// JSON text of the tensors [first, last), TensorInfo[] of web/lib/api/model_types.ts, `file` as a number.
  std::string tensors_json(size_t first, size_t last) const;

 private:
  Status read_gguf(uint32_t file, std::span<const uint8_t> prefix);
  Status read_npy(uint32_t file, std::span<const uint8_t> prefix);
  Result<onnx::Skeleton::Need> feed_npz(uint32_t file, std::span<const uint8_t> bytes);
  Status finish_onnx();
  void mark_input_major();

  List<File> files_;
  List<FileIndex> indexes_;           // parallel to files_; finish() moves their tensors to tensors_
  List<gguf::Index> parts_;           // of GGUF files, in the order of the files; tensors are moved out
  std::unique_ptr<npz::Reader> npz_;  // of the archive that is being fed
  List<npz::Deflated> deflated_;
  bool is_npy_ = false;
  std::unique_ptr<OnnxIndex> onnx_;
  List<OnnxTensor> onnx_tensors_;
  List<std::pair<std::string, std::string>> companions_;
  InlineTensors inline_tensors_;
  std::optional<safetensors::ShardMap> shard_map_;
  std::string shard_map_text_;
  bool is_sharded_ = false;
  List<ModelTensor> tensors_;
  List<uint32_t> by_name_;  // indexes of tensors_, sorted by name
  List<Diagnostic> diagnostics_;
};

}  // namespace wasmquant
