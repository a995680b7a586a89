// A model as the pipeline sees it: its files, and all their tensors in file order.
// Sans-I/O: the caller adds files and feeds their first bytes until the headers are complete.
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
#include "formats/format.h"
#include "formats/gguf/gguf.h"
#include "formats/safetensors/safetensors_index.h"
#include "pipeline/model_index/inline_tensors.h"
#include "pipeline/model_index/model_parts.h"
#include "pipeline/model_index/onnx_index.h"

namespace wasmquant {

struct StoredWeight;

/// A tensor of the model, or a matrix that is part of one.
struct ModelTensor {
  uint32_t file = 0;
  StoredTensor stored;
  std::shared_ptr<const StoredWeight> quantized;  // the stored codes, set by original_model()
  std::string layer;                              // module name
  std::string layer_type;                         // Linear, Embedding, ..., "" if unknown
  std::optional<float> value;                     // of a scalar that was read with the headers
  // For a matrix inside a file's tensor (expert_tensors.h): elements between stored rows; whether rows are inputs.
  bool is_part = false;
  uint64_t pitch = 0;
  bool is_input_major = false;
};

/// Metadata key of the library version in files (safetensors __metadata__, GGUF, ONNX metadata_props).
inline constexpr std::string_view kVersionKey = "wasmquant.version";

/// Owns the headers of a model's files; copies share what readers keep (details).
class ModelIndex {
 public:
  struct File {
    std::string name;
    uint64_t bytes = 0;
    bool is_read = false;
  };

  /// Parses model.safetensors.index.json; add the files it names in that order.
  Result<List<std::string>> read_shard_map(std::string_view text);
  /// finish() names tensors without what wrappers added (source_names.h).
  void strip_prefixes() noexcept { strips_prefixes_ = true; }
  uint32_t add_file(std::string name, uint64_t bytes);
  /// Feeds bytes of a file, first from offset 0, then from the requested offset; file after file. Returns the next
  /// request; 0 bytes: done. Then add the file's data_files(), and add and feed its deflated() files.
  Result<Need> feed(uint32_t file, std::span<const uint8_t> bytes);
  /// FileIndex::data_files and ::deflated of a fed file.
  const List<std::string>& data_files(uint32_t file) const noexcept { return indexes_[file].data_files; }
  const List<DeflatedFile>& deflated(uint32_t file) const noexcept { return indexes_[file].deflated; }
  /// Names of the files next to the fed ones that have the missing parts of the model, as far as names tell; to be added
  /// and fed before finish().
  List<std::string> missing_parts() const;
  /// Checks that files, shard map and names agree; call once. The accessors below are valid afterwards. Parts are then
  /// in the model's order, which file_order() tells.
  Status finish();
  /// The number that add_file() gave to each of files().
  const List<uint32_t>& file_order() const noexcept { return file_order_; }

  /// The same files, sibling files and metadata with other tensors.
  ModelIndex with_tensors(List<ModelTensor> tensors) const;
  /// The same with another graph, an onnx::ModelFile, whose tensors are in the same files.
  ModelIndex with_graph(std::shared_ptr<const FileDetails> graph) const;
  /// The file's graph, an onnx::ModelFile; valid if format().has_graph.
  const std::shared_ptr<const FileDetails>& graph_file() const noexcept { return onnx_->file(); }
  /// Gives tensor number `tensor` the codes that it is decoded from.
  void set_codes(uint32_t tensor, std::shared_ptr<const StoredWeight> codes, uint32_t file, uint64_t begin,
                 uint64_t end);

  const List<File>& files() const noexcept { return files_; }
  /// Bytes of the files where they lie: inflated files count as parts of their archive.
  uint64_t file_bytes() const noexcept;
  const List<ModelTensor>& tensors() const noexcept { return tensors_; }
  const List<std::pair<std::string, std::string>>& metadata(uint32_t file) const noexcept {
    return indexes_[file].metadata;
  }
  const ModelTensor* find(std::string_view name) const noexcept;
  /// The tensors whose names begin so, by name.
  List<const ModelTensor*> named(std::string_view prefix) const;
  bool is_sharded() const noexcept { return is_sharded_ || shard_map_.has_value(); }
  /// Text of model.safetensors.index.json with an empty weight_map; "" if there is none.
  std::string_view shard_map_text() const noexcept { return shard_map_text_; }
  const Format& format() const noexcept { return *format_; }
  /// Metadata of the first file; valid if format().carries_config.
  const gguf::Metadata& gguf_metadata() const noexcept {
    return static_cast<const gguf::FileMetadata&>(*indexes_.front().details).metadata;
  }
  /// Valid if format().has_graph.
  const OnnxIndex& onnx() const noexcept { return *onnx_; }
  /// Parallel to tensors(); valid if format().has_graph.
  const List<OnnxTensor>& onnx_tensors() const noexcept { return onnx_tensors_; }

  /// Tensors whose bytes must be set after finish() (inline_tensors.h); indexes into tensors().
  List<uint32_t> inline_tensors() const { return inline_tensors_.wanted(); }
  Status set_inline_bytes(uint32_t tensor, std::string bytes);
  /// Nullopt if the bytes were not set or the tensor is not inline.
  std::optional<std::string_view> inline_bytes(std::string_view name) const noexcept;

  /// Sets a file that a conversion reads in addition to the weights (config.json, tokenizer.json, ...), at any time.
  void set_sibling_file(std::string name, std::string bytes);
  /// Replaces config.json by that of another class.
  void replace_config(std::string text);
  /// Removes an entry from the metadata of all files.
  void forget_metadata(std::string_view key);
  /// Empty if not set, and config.json of a format without sibling files.
  std::string_view sibling_file(std::string_view name) const noexcept;
  /// All that were set, by path and text.
  const List<std::pair<std::string, std::string>>& sibling_files() const noexcept { return sibling_files_; }
  /// config.json in the folder of the weights, parsed once; null if it is not set. Errors: json-invalid.
  const Result<json::Value>& folder_config() const;
  std::string_view folder_config_text() const noexcept;
  /// The same if the format has sibling files, else null: an ONNX file's folder may be another model's.
  const Result<json::Value>& config() const;
  /// {format, files: file_order(), bytes: file_bytes(), tensors: count, metadata, diagnostics, inlineTensors}
  json::Value to_json() const;
  /// JSON text of tensors [first, last), TensorInfo[] of web/lib/api/model_types.ts with `file` as a number.
  std::string tensors_json(size_t first, size_t last) const;

 private:
  Result<Need> feed_reader(uint32_t file, std::span<const uint8_t> bytes);
  Status finish_graph();
  void list_graph_tensors();
  std::string_view file_beside(std::string_view name) const noexcept;
  List<NamedPart> named_parts() const;
  Status order_files();
  void mark_input_major();
  bool tells_nothing_new(const ModelTensor& tensor) const;

  List<File> files_;
  List<FileIndex> indexes_;  // parallel to files_; finish() moves their tensors to tensors_
  List<uint32_t> file_order_;
  const Format* format_ = formats().front();
  std::unique_ptr<IndexReader> reader_;  // of the file being fed
  uint32_t reading_ = 0;                 // its number
  std::unique_ptr<OnnxIndex> onnx_;
  List<OnnxTensor> onnx_tensors_;
  List<std::pair<std::string, std::string>> sibling_files_;
  mutable std::shared_ptr<const Result<json::Value>> config_;
  InlineTensors inline_tensors_;
  std::optional<safetensors::ShardMap> shard_map_;
  std::string shard_map_text_;
  bool is_sharded_ = false, strips_prefixes_ = false;
  List<ModelTensor> tensors_;
  List<uint32_t> by_name_;  // indexes of tensors_, sorted by name
  List<Diagnostic> diagnostics_;
};

}  // namespace wasmquant
