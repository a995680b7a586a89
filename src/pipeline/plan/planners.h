// The planners of the output formats. Each takes a parsed config and answers with the plan or its first failure; all
// failures are among the diagnostics.
#pragma once
#include "checkpoint/checkpoint_format.h"
#include "pipeline/plan/plan.h"

namespace wasmquant {

/// Checkpoints: safetensors files whose weights lie as a checkpoint format says (checkpoint/checkpoint_format.h), each
/// tensor in the file that its source is in. The model is neither ONNX nor GGUF. Errors: format-unsupported,
/// group-size-invalid, memory-budget.
Result<Plan> make_checkpoint_plan(const ModelIndex& model, const Config& config, const CheckpointFormat& format,
                                  const PlanOptions& options, List<Diagnostic>& diagnostics);

/// GGUF files: from GGUF, every key copied; from Hugging Face's layout, names, metadata and tokenizer converted.
/// `config.dialect` is gguf. Errors: those of conversion::convert; format-unsupported for types that cannot be
/// dequantized; memory-budget.
Result<Plan> make_gguf_plan(const ModelIndex& model, const Config& config, const PlanOptions& options,
                            List<Diagnostic>& diagnostics);

/// ONNX files, from ONNX: some weights quantized, everything else copied.
///   spec without input_tensors          MatMulNBits or GatherBlockQuantized where they hold it, else DequantizeLinear
///   input_tensors dynamic, int8, uint8  DynamicQuantizeLinear and MatMulInteger or ConvInteger
///   OnnxPlanOptions::qdq                DequantizeLinear throughout
/// A config that asks for what a layer's operator cannot hold is an error naming the layer; a preset leaves such layers
/// as they are. Errors: format-unsupported, group-size-invalid, memory-budget; those of conversion::rewrite_onnx.
Result<Plan> make_onnx_plan(const ModelIndex& model, const Config& config, const PlanOptions& options,
                            List<Diagnostic>& diagnostics);

}  // namespace wasmquant
