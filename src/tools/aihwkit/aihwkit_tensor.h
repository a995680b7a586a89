// One WeightQuantConfig or ActivationQuantConfig of aihwkit.
#pragma once
#include <span>
#include <string>

#include "config/reading/object_reader.h"
#include "tools/aihwkit/aihwkit.h"

namespace wasmquant::config {

/// Its spec, empty without n_bits; range_estimator_params are completed in place. `is_convolution`: of a Conv2d.
Stages read_aihwkit_tensor(json::Value& value, const std::string& where, bool is_weight, bool is_convolution,
                           DiagnosticList& out);

/// Keys of range_estimator_params, by estimator.
std::span<const Keys> aihwkit_parameters() noexcept;

}  // namespace wasmquant::config
