// The output formats: one row per writable checkpoint format (tools/tools.def) and one per whole-file format.
#pragma once
#include <span>
#include <string>

#include "checkpoint/checkpoint_format.h"
#include "formats/format.h"
#include "pipeline/plan/plan.h"

namespace wasmquant {

struct OutputFormat {
  std::string_view name;
  /// File format.
  const Format* container;
  /// Null for whole-file formats.
  const CheckpointFormat* checkpoint = nullptr;
  /// Configs are llama.cpp recipes; other formats never take them.
  bool takes_recipes = false;
  /// Files are cut as GgufPlanOptions says, so that several machines can share a run.
  bool splits_by_size = false;
  /// Each file is a complete model, unless it is cut; else files are shards that follow from their sources.
  bool is_whole_file = false;
  /// config.json, tokenizer and the like are written next to the weights.
  bool has_sibling_files = true;
  /// The plan, or its first failure; the diagnostics contain all failures.
  Result<Plan> (*plan)(const ModelIndex& model, const Config& config, const OutputFormat& format,
                       const PlanOptions& options, List<Diagnostic>& diagnostics);

  /// Whether models of that format can be the source: graphs only for graphs, GGUF only for GGUF. A graph is built for others.
  bool takes(const Format& model) const noexcept {
    return (container->has_graph || !model.has_graph) && (container->has_ggml_names || !model.has_ggml_names);
  }
};

/// All formats, in listing order.
std::span<const OutputFormat> output_formats();
/// The format of that name, or null.
const OutputFormat* output_format_named(std::string_view name);
/// The default output for a model: the first format that takes it and this kind of config, else just the model.
const OutputFormat& usual_output_format(const Format& model, bool is_recipe, bool has_end_codes = false);
/// "compressed-tensors, quark, ... and onnx", for messages.
std::string output_format_names();

// ---- the planners of the rows; each takes a parsed config

/// Checkpoints: safetensors files in a checkpoint format's layout (checkpoint/checkpoint_format.h), each tensor in its
/// source's file. The model is neither ONNX nor GGUF. Errors: format-unsupported, group-size-invalid, not-implemented.
Result<Plan> make_checkpoint_plan(const ModelIndex& model, const Config& config, const OutputFormat& format,
                                  const PlanOptions& options, List<Diagnostic>& diagnostics);

/// GGUF files: GGUF input keeps every key; Hugging Face input is converted (names, metadata, tokenizer).
/// `config.dialect` is gguf. Errors: those of conversion::convert; format-unsupported (type cannot be dequantized);
/// not-implemented.
Result<Plan> make_gguf_plan(const ModelIndex& model, const Config& config, const OutputFormat& format,
                            const PlanOptions& options, List<Diagnostic>& diagnostics);

/// ONNX files, from ONNX or with a graph that is built (pipeline/onnx_plan/built_graph.h): some weights quantized, everything else copied.
///   spec without input_tensors          MatMulNBits, Gather of codes, or Cast and Mul if they support it, else
///                                       DequantizeLinear
///   input_tensors dynamic, int8, uint8  DynamicQuantizeLinear and MatMulInteger or ConvInteger
///   OnnxPlanOptions::qdq                DequantizeLinear throughout
/// If a layer's operator does not support the spec, a config fails naming the layer; a preset leaves it unquantized.
/// Errors: format-unsupported, group-size-invalid, not-implemented; those of conversion::rewrite_onnx.
Result<Plan> make_onnx_plan(const ModelIndex& model, const Config& config, const OutputFormat& format,
                            const PlanOptions& options, List<Diagnostic>& diagnostics);

}  // namespace wasmquant
