// The layouts of compressed-tensors by the names that its configs give them, and which one a spec has.
#pragma once
#include <cstdint>
#include <string_view>

#include "checkpoint/checkpoint_format.h"

namespace wasmquant {

/// The value of `format` in a group of config.json.
enum class Compressor : uint8_t {
  pack_quantized,
  int_quantized,
  float_quantized,
  mxfp4_pack_quantized,
  nvfp4_pack_quantized,
  mxfp8_quantized
};

/// The layout of a spec that is no plain cast. `is_unpacked`: WeightDescription::is_unpacked.
Compressor compressor_of(const QuantizationSpec& spec, bool is_unpacked);
/// "pack-quantized"
std::string_view name_of(Compressor compressor) noexcept;

}  // namespace wasmquant
