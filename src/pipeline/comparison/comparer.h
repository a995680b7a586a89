// Collects pairs of stored weights for a Comparison. Each kind of container has its own way to find them, below.
#pragma once
#include <string_view>

#include "pipeline/comparison/comparison.h"
#include "pipeline/stored/source_format.h"

namespace wasmquant {

/// One weight as both models store it.
struct StoredPair {
  StoredWeight left, right;
};

/// Plans the decoding of each pair, and keeps a diagnostic for those that cannot be compared.
class Comparer {
 public:
  explicit Comparer(const TileBytes& tile_bytes) noexcept : tile_bytes_(tile_bytes) {}
  /// Adds the weight of that name, or the reason it cannot be compared.
  void add(std::string_view name, Result<StoredPair> stored);
  Comparison take() noexcept { return std::move(out_); }

 private:
  Status add_pair(std::string_view name, StoredPair stored);

  const TileBytes& tile_bytes_;
  Comparison out_;
};

/// For models other than ONNX: matches a folder and a GGUF file by the names and row order of conversion, and stacked
/// experts with single matrices. The configs are texts of config.json, or empty. Returns whether the left model stores
/// codes. Errors: those of StoredWeightReader::create and of conversion::convert.
Result<bool> compare_by_name(const ModelIndex& left, const json::Value& left_config, const ModelIndex& right,
                             const json::Value& right_config, Comparer& out);

/// For two ONNX models: matches weights by name, also those that are decoded from codes, and by shape. Errors: those of
/// dequantized().
Status compare_onnx(const ModelIndex& left, const ModelIndex& right, Comparer& out);

}  // namespace wasmquant
