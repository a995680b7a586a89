// What a preset does where its groups do not divide an axis.
#pragma once
#include <string>

#include "config/resolve.h"
#include "core/diagnostic.h"
#include "core/list.h"

namespace wasmquant {

/// The spec with the largest of 128, 64, 32 below the asked size that divides the axis, else with one scale per
/// channel. `reason` and `diagnostics` say so.
QuantizationSpec fall_back(const QuantizationSpec& spec, uint64_t axis_length, const std::string& tensor,
                           Reason& reason, List<Diagnostic>& diagnostics);

}  // namespace wasmquant
