// What the readers of model files' configs share.
#pragma once
#include "config/spec/spec.h"
#include "core/json.h"

namespace wasmquant::config {

inline constexpr char kStrategies[] = "tensor|channel|group|block|token|tensor_group|attn_head";

/// [rows, columns] of blocks that share a scale; false: it is no such pair.
bool set_block(QuantizationSpec& spec, const json::Array& block) noexcept;

}  // namespace wasmquant::config
