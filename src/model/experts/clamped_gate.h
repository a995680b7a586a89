// The feed-forward of gpt-oss's experts: gates g and ups u alternate in the output of one matrix; with the bias added,
//   y = g' sigmoid(slope g') (u' + 1),   g' = min(g, limit),   u' = u limited to [-limit, limit]
// Source: transformers, models/gpt_oss/modeling_gpt_oss.py.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "model/config/architecture.h"

namespace wasmquant::model {

/// x [tokens, 2 * width], y [tokens, width]; `biases` [experts, 2 * width].
void clamped_gate(const Routing& routing, std::span<const float> biases, uint32_t expert, std::span<const float> x,
                  std::vector<float>& y);

}  // namespace wasmquant::model
