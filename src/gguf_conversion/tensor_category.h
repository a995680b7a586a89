// The category of a tensor of a GGUF model, from its name as in llama-quantize.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace wasmquant::conversion {

/// llama.cpp's categories of tensors.
enum class TensorCategory : uint8_t {
  token_embedding,
  query,
  value,
  key,
  query_key_value,
  key_value_b,
  attention_output,
  feed_forward_gate,
  feed_forward_up,
  feed_forward_down,
  output,
  other
};

/// The category of a tensor with this GGUF name.
TensorCategory category_of(std::string_view name) noexcept;
/// Whether the tensor contains attention values, with or without others.
constexpr bool is_value(TensorCategory category) noexcept {
  return category == TensorCategory::value || category == TensorCategory::query_key_value ||
         category == TensorCategory::key_value_b;
}

/// The number in "blk.12.attn_q.weight"; -1 for tensors outside layers.
int64_t layer_of(std::string_view name) noexcept;

/// Whether llama-quantize changes the type of such a tensor: matrices called "….weight", except norms, routers,
/// positions, and other small or delicate ones. `shape` in C order; leading dimensions of 1 do not make a matrix.
bool is_quantized(std::string_view name, std::span<const uint64_t> shape) noexcept;

}  // namespace wasmquant::conversion
