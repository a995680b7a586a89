// How much of a model a plan quantizes, and why the rest is left.
#pragma once
#include <cstdint>
#include <string>

#include "core/diagnostic.h"
#include "core/list.h"
#include "pipeline/plan/plan.h"

namespace wasmquant {

struct Coverage {
  /// Tensors left for the same reason.
  struct Left {
    std::string_view rule;  // name_of(Reason::rule)
    std::string text;       // the reason
    std::string first;      // name of the first tensor
    uint64_t tensors = 0, parameters = 0, bytes = 0;
  };
  // Source elements and bytes. Casts count as quantized.
  uint64_t parameters = 0, quantized_parameters = 0, bytes = 0, quantized_bytes = 0;
  List<Left> left;  // largest first

  /// Whether less than half of the parameters are quantized.
  bool is_low() const noexcept { return quantized_parameters < parameters - parameters / 2; }
};

/// Whether the output holds codes for it. GGUF block types that are copied count; floats and casts to GGUF's do not.
bool is_quantized(const PlannedTensor& planned);

Coverage coverage_of(const Plan& plan, const ModelIndex& model);

/// "62.5 %"
std::string percent(uint64_t part, uint64_t whole);

/// {parameters, quantizedParameters, bytes, quantizedBytes, left: [{rule, text, tensors, parameters, bytes}]}
json::Value to_json(const Coverage& coverage);

/// The error of a plan that quantizes nothing: the largest part left and why, at its first tensor. `hint`: what
/// quantizes more; empty: nothing is known.
Diagnostic nothing_quantized_error(const Coverage& coverage, std::string_view hint);
/// The warning about low coverage: the share, and the largest part left, at its first tensor. `hint`: likewise.
Diagnostic low_coverage_warning(const Coverage& coverage, std::string_view hint);

}  // namespace wasmquant
