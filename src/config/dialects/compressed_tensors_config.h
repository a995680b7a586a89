// Shared by the readers of model files' configs.
#pragma once
#include "config/spec/spec.h"
#include "core/json.h"

namespace wasmquant::config {

/// Values of `strategy`.
inline constexpr char kStrategies[] = "tensor|channel|group|block|token|tensor_group|attn_head";

/// Sets [rows, columns] of blocks that share a scale; false if `block` is not such a pair.
bool set_block(QuantizationSpec& spec, const json::Array& block) noexcept;

}  // namespace wasmquant::config
