// Weights that a model stores as codes: the layouts that the shapes and types of their parts tell.
#pragma once
#include <optional>
#include <string>

#include "checkpoint/onnx_layout.h"
#include "formats/onnx/onnx.h"
#include "pipeline/task/task.h"

namespace wasmquant::conversion {

/// Constants that a weight is stored in, as indexes of the model's tensors.
struct StoredParts {
  uint32_t codes = onnx::kNone, scale = onnx::kNone, zero_point = onnx::kNone;

  uint32_t of(Role role) const noexcept {
    return role == Role::codes ? codes : role == Role::scale ? scale : zero_point;
  }
  friend bool operator==(const StoredParts&, const StoredParts&) = default;
};

/// A weight as codes.
struct StoredOnnxWeight {
  std::string name;             // of the float tensor
  std::vector<uint64_t> shape;  // of its values
  StorageDtype type = StorageDtype::F32;
  OnnxForm form{};
  WeightLayout layout;
  StoredParts parts;
};

/// Codes in the shape of the weight, as DequantizeLinear, MatMulInteger and QLinearConv read them. `axis`: of scales per
/// channel, or of blocks of `block_size`; below 0 from the end. Nullopt, here and below: the layout has no decoder.
std::optional<StoredOnnxWeight> find_linear(const onnx::Model& model, const StoredParts& parts, int64_t axis,
                                            int64_t block_size = 0);
/// Codes [..., K, N] of DynamicQuantizeLSTM, whose values are the weight [..., N, K] of LSTM; scales [...] or [..., N].
std::optional<StoredOnnxWeight> find_transposed(const onnx::Model& model, const StoredParts& parts);
/// The size of codes [rows, columns] in blocks along a row.
struct StoredBlocks {
  uint64_t rows = 0, columns = 0, bits = 0, block = 0;
};
/// Bytes of whole blocks, as MatMulNBits and GatherBlockQuantized read them, and those that are written for Gather.
std::optional<StoredOnnxWeight> find_blocks(const onnx::Model& model, const StoredParts& parts,
                                            const StoredBlocks& blocks);

/// The weight for a decoder.
std::shared_ptr<const StoredWeight> stored_weight(const onnx::Model& model, const StoredOnnxWeight& weight);

}  // namespace wasmquant::conversion
