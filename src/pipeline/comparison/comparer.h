// Makes pairs for a Comparison out of what stores a weight on both sides. Containers differ in how that is found, below;
// what becomes of it is the same for all.
#pragma once
#include <string_view>

#include "pipeline/comparison/comparison.h"
#include "pipeline/stored/source_format.h"

namespace wasmquant {

struct StoredPair {
  StoredWeight left, right;
};

class Comparer {
 public:
  explicit Comparer(const TileBytes& tile_bytes) noexcept : tile_bytes_(tile_bytes) {}
  /// The weight of that name, or why it cannot be compared.
  void add(std::string_view name, Result<StoredPair> stored);
  Comparison take() noexcept { return std::move(out_); }

 private:
  Status add_pair(std::string_view name, StoredPair stored);

  const TileBytes& tile_bytes_;
  Comparison out_;
};

/// Of models other than ONNX. Weights of a folder and of a GGUF file go together by the names and the order of rows that
/// converting gives them, and a tensor of several experts goes with the matrices that it is split into. The configs are
/// the texts of the models' config.json, or empty. Answers whether the left model holds codes. Errors: those of
/// StoredWeightReader::create and, for a folder beside a GGUF file, of conversion::convert.
Result<bool> compare_by_name(const ModelIndex& left, std::string_view left_config, const ModelIndex& right,
                             std::string_view right_config, Comparer& out);

/// Of two ONNX models, the right one of which has some weights quantized. What a weight became is told from the names
/// that are given to its parts (checkpoint/onnx_layout.h), by this library and by ONNX Runtime's own tools, and from
/// their shapes.
void compare_onnx(const ModelIndex& left, const ModelIndex& right, Comparer& out);

}  // namespace wasmquant
