// Whole models: index, plan, sessions and decoders that JavaScript holds. Contracts: web/lib/engine/module.ts.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/list.h"
#include "marshal.h"
#include "pipeline/model_index/model_index.h"
#include "pipeline/plan/plan.h"
#include "pipeline/task/decoder.h"
#include "pipeline/task/session.h"

namespace wasmquant::bindings {

/// TileRead[] of web/lib/engine/module.ts.
json::Value reads_json(const List<TileRead>& reads);
/// {"writes": TileWrite[], "sums", "units"} of web/lib/engine/module.ts; `numbers` holds the sums meanwhile.
json::Value writes_json(std::span<const TileWrite> writes, std::span<const kernels::ErrorSums> sums,
                        List<double>& numbers);
/// {"tileBytes", "columnTileBytes"}; what is missing keeps its default.
TileBytes tile_bytes_of(const json::Value& options);

class BoundModelIndex : Counted {
 public:
  uint32_t add_file(std::string name, double bytes) {
    return index_.add_file(std::move(name), static_cast<uint64_t>(bytes));
  }
  std::string need(uint32_t file, Address bytes, uint32_t length);
  std::string read(uint32_t file, Address bytes, uint32_t length);
  std::string feed(uint32_t file, Address bytes, uint32_t length);
  std::string read_shard_map(std::string text);
  std::string finish();
  std::string layer_values() const;
  std::string added_outputs(std::string names);
  std::string set_inline_bytes(uint32_t tensor, Address bytes, uint32_t length) {
    return reply(index_.set_inline_bytes(tensor, std::string(pointer<const char>(bytes), length)));
  }
  void set_companion(std::string name, Address bytes, uint32_t length) {
    index_.set_companion(std::move(name), std::string(pointer<const char>(bytes), length));
  }
  const ModelIndex& index() const noexcept { return index_; }

 private:
  ModelIndex index_;
  std::string outputs_;
};

class BoundPlan : Counted {
 public:
  BoundPlan(const BoundModelIndex& model, const std::string& config, const std::string& options);
  std::string error() const;
  std::string to_json() const;
  std::string task(uint32_t index) const;
  std::string file_literals(uint32_t file) const;
  std::string activation_requests() const;
  std::string constants() const;
  std::string importance_matrix(std::string options);
  std::string shard_map() const;
  std::string output_config(std::string original) const;

 private:
  Result<std::unique_ptr<ModelIndex>> original_;  // of a quantized checkpoint
  const ModelIndex* model_;
  List<Diagnostic> diagnostics_;
  Result<Plan> plan_;
  std::string imatrix_;
};

class BoundTensorSession : Counted {
 public:
  explicit BoundTensorSession(std::string task);
  std::string info() const;
  std::string reads(uint32_t tile);
  std::string observe(uint32_t tile);
  std::string state();
  std::string next_pass();
  std::string take_state(Address state, uint32_t bytes);
  std::string run(uint32_t tile);

 private:
  std::optional<TensorSession> session_;
  Error error_;
  List<double> sums_;
};

class BoundTensorDecoder : Counted {
 public:
  explicit BoundTensorDecoder(std::string task);
  std::string info() const;
  std::string reads(uint32_t tile);
  std::string decode(uint32_t tile);

 private:
  std::optional<TensorDecoder> decoder_;
  Error error_;
};

/// The pairs of two models, as tasks for decoders.
std::string comparison(const BoundModelIndex& reference, std::string reference_config, const BoundModelIndex& quantized,
                       std::string quantized_config, std::string options);
/// Error between two decoded tiles of `count` float32 values.
std::string error_between(Address x, Address y, double count);

}  // namespace wasmquant::bindings
