#include "pipeline/comparison.h"

#include <algorithm>

#include "config/layer_type.h"
#include "pipeline/onnx_comparison.h"
#include "pipeline/session.h"
#include "pipeline/stored_weight.h"

namespace wasmquant {
namespace {

uint64_t stored_bytes(const TensorTask& task) {
  uint64_t bytes = 0;
  for (const Component& component : task.layout.components) bytes += component.bytes;
  return bytes;
}

}  // namespace

Result<Comparison> compare_models(const ModelIndex& reference, std::string_view reference_config,
                                  const ModelIndex& quantized, std::string_view quantized_config,
                                  const TileBytes& tile_bytes) {
  if (reference.onnx() != nullptr && quantized.onnx() != nullptr) return compare_onnx(reference, quantized, tile_bytes);
  if (reference.onnx() != nullptr || quantized.onnx() != nullptr)
    return error_at(ErrorCode::format_unsupported, "model", "an ONNX model is compared with another one alone");
  TRY(reader, StoredWeightReader::create(quantized_config));
  TRY(reference_reader, StoredWeightReader::create(reference_config));
  TRY(plain_reader, StoredWeightReader::create(""));
  Comparison out;
  if (reference_reader.is_quantized()) {
    out.diagnostics.push_back({Severity::warning, "reference-quantized", "",
                               "the reference is a quantized model; only its float tensors are compared",
                               "compare against the model it was made from"});
  }
  for (const ModelTensor& tensor : reference.tensors()) {
    const StoredTensor& stored = tensor.stored;
    if (!is_quantizable(stored.dtype) || stored.begin == stored.end) continue;
    const LayerName name = layer_name_of(stored.name);
    ComparedPair pair;
    pair.name = stored.name;
    if (name.role != TensorRole::weight) {
      // Biases and bare parameters are never packed: the same name on both sides.
      const ModelTensor* other = quantized.find(stored.name);
      if (other == nullptr || other->stored.shape != stored.shape || !is_quantizable(other->stored.dtype)) {
        out.diagnostics.push_back({Severity::warning, "tensor-not-compared", stored.name,
                                   "is not in the quantized model with this shape", ""});
      }
      continue;
    }
    pair.weight = {std::string(name.layer), tensor.layer_type, stored.shape, stored.dtype, reader.pack_method()};
    auto left = plain_reader.find(reference, pair.weight);
    auto right = reader.find(quantized, pair.weight);
    if (!left || !right) {
      const Error& error = left ? right.error() : left.error();
      out.diagnostics.push_back(
          {Severity::warning, "tensor-not-compared", stored.name, text_of("{}: {}", error.where, error.message), ""});
      continue;
    }
    pair.left = std::move(left->task);
    pair.right = std::move(right->task);
    pair.left_format = std::move(left->format);
    pair.right_format = std::move(right->format);
    pair.by_columns = pair.right.layout.column_tiles();
    set_tiles(pair.right, tile_bytes);
    pair.left.tile_lines = pair.right.tile_lines;
    pair.left.tiles = pair.right.tiles;
    pair.bytes_before = stored.end - stored.begin;
    pair.bytes_after = stored_bytes(pair.right);
    out.pairs.push_back(std::move(pair));
  }
  for (const ModelTensor& tensor : quantized.tensors()) {
    const LayerName name = layer_name_of(tensor.stored.name);
    if (name.role == TensorRole::weight && reference.find(tensor.stored.name) == nullptr) {
      out.diagnostics.push_back(
          {Severity::warning, "tensor-not-compared", tensor.stored.name, "is not in the reference model", ""});
    }
  }
  return out;
}

}  // namespace wasmquant
