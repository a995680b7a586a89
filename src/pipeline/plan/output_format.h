// The formats that are written: a row for every checkpoint format (checkpoint/formats.def) that is not only read, and one
// for each format of whole files.
#pragma once
#include <span>
#include <string>

#include "checkpoint/checkpoint_format.h"
#include "formats/format.h"
#include "pipeline/plan/plan.h"

namespace wasmquant {

struct OutputFormat {
  std::string_view name;
  FormatText text;
  /// Of its files.
  const Format* container;
  /// Null: of whole files.
  const CheckpointFormat* checkpoint = nullptr;
  /// Configs are llama.cpp's recipes; else they never are.
  bool takes_recipes = false;
  /// Files are cut at GgufPlanOptions::shard_bytes.
  bool splits_by_size = false;
  /// A file is a model by itself, and made in one run; else files are shards, each of which is known by its source.
  bool is_whole_file = false;
  /// config.json, tokenizer and the like stand beside the weights.
  bool has_sibling_files = true;
  /// The plan, or its first failure; all failures are among the diagnostics.
  Result<Plan> (*plan)(const ModelIndex& model, const Config& config, const OutputFormat& format,
                       const PlanOptions& options, List<Diagnostic>& diagnostics);

  /// Whether it is made of models of that format: graphs of graphs; GGUF files, whose names and heads are llama.cpp's,
  /// only of what has the same.
  bool takes(const Format& model) const noexcept {
    return model.has_graph == container->has_graph && (container->has_ggml_names || !model.has_ggml_names);
  }
};

/// All of them, in the order in which lists name them.
std::span<const OutputFormat> output_formats();
/// The format of that name, or null.
const OutputFormat* output_format_named(std::string_view name);
/// What a model of that format is written as unless something is asked for: the first that takes it and such a config,
/// else the first that takes it.
const OutputFormat& usual_output_format(const Format& model, bool is_recipe);
/// "compressed-tensors, quark, ... and onnx", for messages.
std::string output_format_names();

// ---- the planners that rows name. Each takes a parsed config.

/// Checkpoints: safetensors files whose weights lie as a checkpoint format says (checkpoint/checkpoint_format.h), each
/// tensor in the file that its source is in. The model is neither ONNX nor GGUF. Errors: format-unsupported,
/// group-size-invalid, memory-budget.
Result<Plan> make_checkpoint_plan(const ModelIndex& model, const Config& config, const OutputFormat& format,
                                  const PlanOptions& options, List<Diagnostic>& diagnostics);

/// GGUF files: from GGUF, every key copied; from Hugging Face's layout, names, metadata and tokenizer converted.
/// `config.dialect` is gguf. Errors: those of conversion::convert; format-unsupported for types that cannot be
/// dequantized; memory-budget.
Result<Plan> make_gguf_plan(const ModelIndex& model, const Config& config, const OutputFormat& format,
                            const PlanOptions& options, List<Diagnostic>& diagnostics);

/// ONNX files, from ONNX: some weights quantized, everything else copied.
///   spec without input_tensors          MatMulNBits or GatherBlockQuantized where they hold it, else DequantizeLinear
///   input_tensors dynamic, int8, uint8  DynamicQuantizeLinear and MatMulInteger or ConvInteger
///   OnnxPlanOptions::qdq                DequantizeLinear throughout
/// A config that asks for what a layer's operator cannot hold is an error naming the layer; a preset leaves such layers
/// as they are. Errors: format-unsupported, group-size-invalid, memory-budget; those of conversion::rewrite_onnx.
Result<Plan> make_onnx_plan(const ModelIndex& model, const Config& config, const OutputFormat& format,
                            const PlanOptions& options, List<Diagnostic>& diagnostics);

}  // namespace wasmquant
