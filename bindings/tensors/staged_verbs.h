// The verbs for specs of two stages. Contracts: tensor_verbs.h.
#pragma once
#include "quantize/stages.h"
#include "tensors/tensor_input.h"
#include "tensors/tensor_verbs.h"

namespace wasmquant::bindings {

Result<Parts> quantize_stages(const GivenTensor& tensor, const List<QuantizationSpec>& specs);
Result<std::span<const float>> fake_quantize_stages(const GivenTensor& tensor, const List<QuantizationSpec>& specs);
Result<std::span<const float>> dequantize_stages(const GivenCodes& codes, const List<QuantizationSpec>& specs);

}  // namespace wasmquant::bindings
