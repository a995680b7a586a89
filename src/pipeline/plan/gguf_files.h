// The files of a GGUF plan: their names, headers, and where each tensor goes.
#pragma once
#include <string_view>

#include "gguf_conversion/conversion.h"
#include "pipeline/plan/plan.h"

namespace wasmquant {

/// Fills files and component places of a plan whose tensors are laid out. Tensors without a source come first: their
/// bytes are known and go into the prefix. Errors: those of gguf::write_header.
Status place_gguf_files(const conversion::GgufConversion& converted, std::string_view recipe,
                        const PlanOptions& options, Plan& plan);

}  // namespace wasmquant
