// Plans of ONNX files, from ONNX: some weights quantized, everything else copied.
//   spec without input_tensors          MatMulNBits or GatherBlockQuantized where they hold it, else DequantizeLinear
//   input_tensors dynamic, int8, uint8  DynamicQuantizeLinear and MatMulInteger or ConvInteger
//   OnnxPlanOptions::qdq                DequantizeLinear throughout
// A config that asks for what a layer's operator cannot hold is an error naming the layer; a preset leaves such layers
// as they are.
#pragma once
#include "pipeline/plan/plan.h"

namespace wasmquant {

/// `model.onnx()` is not null. Errors: format-unsupported, group-size-invalid, memory-budget; those of
/// conversion::rewrite_onnx.
Result<Plan> make_onnx_plan(const ModelIndex& model, const Config& config, const PlanOptions& options,
                            List<Diagnostic>& diagnostics);

}  // namespace wasmquant
