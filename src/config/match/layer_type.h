// The module class of a tensor, inferred from name and shape: weight files carry no classes.
//   5-D weight -> Conv3d, 4-D -> Conv2d, 3-D -> Conv1d, 2-D -> Embedding when the module is named like one, else
//   Linear, 1-D -> Norm when the module is named like one, 3-D below `experts` -> Experts. Class names are PyTorch's;
//   Experts and Conv1D are those of transformers (families/expert_weights.h, GPT-2).
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace wasmquant {

/// The role of a tensor in its layer.
enum class TensorRole : uint8_t { weight, bias, other };

/// Module and role of a tensor: the name without `.weight` or `.bias`. Any other name is its own layer, role `other`.
struct LayerName {
  std::string_view layer;
  TensorRole role;
};
/// Splits a tensor's name into layer and role.
LayerName layer_name_of(std::string_view tensor_name) noexcept;

/// The weights of several experts in one tensor.
inline constexpr std::string_view kExperts = "Experts";
/// A linear layer whose weight is stored as [in, out]. Recognised by its bias (pipeline/model_index/model_index.h).
inline constexpr std::string_view kConv1D = "Conv1D";

/// "Linear", "Embedding", "Conv1d", "Conv2d", "Conv3d", "Norm", kExperts, or "" when unknown. `shape` is the tensor's.
/// Only norms are recognised from a bias; for other layers pass the weight.
std::string_view layer_type_of(std::string_view tensor_name, std::span<const uint64_t> shape) noexcept;

/// Whether layers of this class, inferred or named by a config, have weights that can be quantized.
bool is_quantizable_type(std::string_view layer_type) noexcept;

}  // namespace wasmquant
