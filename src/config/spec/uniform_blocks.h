// The quantization_config blocks of GPTQ and AWQ: the only place that spells them, for files and for converted configs.
#pragma once
#include <cstdint>

#include "config/spec/spec.h"
#include "core/json.h"

namespace wasmquant::config {

/// What both say of all layers, or GPTQ of some.
struct UniformScheme {
  uint32_t bits = 4;
  int64_t group_size = -1;  // columns that share a scale; -1: a whole row
  bool symmetric = true;

  friend bool operator==(const UniformScheme&, const UniformScheme&) = default;
};

/// Of a weight in integers, per group or per channel.
UniformScheme uniform_scheme(const QuantizationSpec& spec) noexcept;

/// {"bits", "group_size", "sym"}: members of GPTQ's block, and of an entry of its `dynamic`.
json::Value gptq_scheme(const UniformScheme& scheme);

/// `dynamic`: an object of "-:REGEX" or "+:REGEX", the first that matches a layer decides; left out if empty. The block
/// says version 2 (gptq_v2) for zero points: version 1 stores them minus one, which 0 does not fit.
/// Source: GPTQModel's quantization/config.py.
json::Value gptq_block(const UniformScheme& scheme, bool orders_columns, bool quantizes_head, json::Value dynamic);

/// `kept`: parts of names of layers that stay as they are. Source: AutoAWQ's models/_config.py.
json::Value awq_block(const UniformScheme& scheme, bool quantizes_head, json::Array kept);

}  // namespace wasmquant::config
