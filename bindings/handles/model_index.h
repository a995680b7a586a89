// The index of a model's files, fed header by header. Contract: BoundModelIndex of web/lib/engine/module.ts.
#pragma once
#include "border/marshal.h"
#include "pipeline/model_index/model_index.h"

namespace wasmquant::bindings {

class BoundModelIndex : Counted {
 public:
  uint32_t add_file(std::string name, double bytes) {
    return index_.add_file(std::move(name), static_cast<uint64_t>(bytes));
  }
  /// Errors: those of ModelIndex::feed.
  Result<json::Value> feed(uint32_t file, Address bytes, uint32_t length);
  /// Errors: those of ModelIndex::read_shard_map.
  Result<json::Value> read_shard_map(const std::string& text);
  json::Value missing_parts() const;
  /// Errors: those of ModelIndex::finish.
  Result<json::Value> finish();
  JsonText tensors(uint32_t first, uint32_t last) const { return {index_.tensors_json(first, last)}; }
  /// Error: format-unsupported if it is no ONNX model.
  Result<json::Value> layer_values() const;
  /// Error: json-invalid.
  Result<Region> added_outputs(const std::string& names);
  /// Errors: those of ModelIndex::set_inline_bytes.
  Status set_inline_bytes(uint32_t tensor, Address bytes, uint32_t length) {
    return index_.set_inline_bytes(tensor, std::string(pointer<const char>(bytes), length));
  }
  JsonText metadata_array(const std::string& key) const;
  JsonText pretokenizer(const std::string& name) const;
  /// Of the files that set_sibling_file set. Errors: those of families::sentence_modules.
  Result<json::Value> sentence_modules() const;
  void strip_prefixes() { index_.strip_prefixes(); }
  void set_sibling_file(std::string name, Address bytes, uint32_t length) {
    index_.set_sibling_file(std::move(name), std::string(pointer<const char>(bytes), length));
  }
  /// Keeps config.json, parsed once for all that needs it: {"config": object, "constants": [{"path", "value"}]}. `constants`
  /// are the numbers JSON cannot express ("Infinity", "-Infinity", "NaN"), null in `config`; a path has names and indexes.
  /// Error: json-invalid.
  Result<json::Value> read_config(std::string text);
  const ModelIndex& index() const noexcept { return index_; }

 private:
  ModelIndex index_;
  std::string outputs_;
};

}  // namespace wasmquant::bindings
