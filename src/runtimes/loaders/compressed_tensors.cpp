// What transformers' loader of compressed-tensors cannot read: zero points in words next to other schemes, and weights that it
// converts while it loads (tools/compressed_tensors/converted_weights.h).
// Zero points of weights in words: from_pretrained replaces each quantized layer and then refuses the file, because the packed
// zero points are not where it looks. With dequantize=True it reads every layer that is no expert by one scheme, the first of
// the config.
// Source: transformers 5.24, quantizers/quantizer_compressed_tensors.py and integrations/compressed_tensors.py
// (get_dense_scheme), compressed-tensors 0.20.
#include "families/module_path.h"
#include "families/word_list.h"
#include "runtimes/loaders/loader.h"
#include "runtimes/transformers/conversions.h"
#include "runtimes/transformers/loader_names.h"
#include "tools/compressed_tensors/compressed_tensors_arguments.h"
#include "tools/compressed_tensors/compressors.h"
#include "tools/compressed_tensors/converted_weights.h"

namespace wasmquant::runtimes {
namespace {

using transformers::Conversion;
using transformers::Conversions;
using Kind = transformers::Conversion::Kind;

bool has_packed_zero_points(const QuantizationSpec& spec, bool is_unpacked) {
  return !info_of(spec.dtype).is_plain_cast() && compressor_of(spec, is_unpacked) == Compressor::pack_quantized &&
         config::has_stored_zero_point(spec);
}

// The first layer with packed zero points; null if there is none. Experts do not count: the loader decompresses them in its own way.
const LayerPlan* packed_layer(const List<LayerPlan>& layers) {
  for (const LayerPlan& layer : layers)
    if (!keeps_weight(layer) && !families::is_single_expert(layer.layer) &&
        has_packed_zero_points(layer.weight->front(), layer.is_unpacked))
      return &layer;
  return nullptr;
}

std::string_view option_for_zero_points(const List<LayerPlan>& layers) {
  return packed_layer(layers) == nullptr ? "" : "quantization_config=CompressedTensorsConfig(dequantize=True)";
}

std::optional<LoaderLimit> zero_point_limit(const List<LayerPlan>& layers) {
  const LayerPlan* const packed = packed_layer(layers);
  if (packed == nullptr) return std::nullopt;
  for (const LayerPlan& layer : layers) {
    if (keeps_weight(layer) || families::is_single_expert(layer.layer)) continue;
    if (layer.weight == packed->weight && layer.is_unpacked == packed->is_unpacked) continue;
    return LoaderLimit{
        layer.layer,
        text_of("transformers reads the zero points of {} only where all layers have one scheme, and this one has "
                "another",
                packed->layer),
        "load the file with vLLM; or give all layers one spec, exclude those that differ, or use int4 and int8, which "
        "have no zero points and may be mixed",
        false, false};
  }
  return std::nullopt;
}

// What of an expert's spec the loader cannot decompress; empty if it can.
std::string_view unreadable_part(const LayerPlan& layer) {
  const QuantizationSpec& spec = layer.weight->front();
  switch (compressor_of(spec, layer.is_unpacked)) {
    case Compressor::pack_quantized:
      return config::has_stored_zero_point(spec) ? "zero points" : "";
    case Compressor::int_quantized:
      return "8-bit integers in bytes, which quantized inputs and scales per tensor need";
    case Compressor::float_quantized:
      return spec.qscheme == QScheme::per_block ? "scales per block" : "";
    case Compressor::mxfp4_pack_quantized:
      return "";
    case Compressor::nvfp4_pack_quantized:
      return "the second scale of nvfp4";
    case Compressor::mxfp8_quantized:
      return "the scales of mxfp8";
  }
  return "";
}

constexpr const char* kExpertHint =
    "quantize all experts with one spec of int8 or int4 per channel or group, mxfp4, or fp8 per channel; or load the "
    "file with vLLM";

std::optional<LoaderLimit> expert_limit(const MergedExperts& experts, const Conversions& conversions) {
  const auto& [quantized, plain, differing] = experts;
  if (quantized == nullptr) return std::nullopt;
  const auto because = [](const LayerPlan& layer, std::string reason) {
    return LoaderLimit{layer.layer, std::move(reason), kExpertHint, true};
  };
  if (differing != nullptr)
    return because(*differing, text_of("transformers decompresses all experts of a model by one scheme, and this one "
                                       "differs from {}",
                                       quantized->layer));
  if (const std::string_view part = unreadable_part(*quantized); !part.empty())
    return because(*quantized, text_of("transformers cannot decompress experts with {}", part));
  if (passes_plain_weights(quantized->weight->front())) return std::nullopt;
  if (plain != nullptr)
    return because(*plain, "transformers cannot load some experts quantized and others not, unless they are fp8");
  if (conversions.has(Kind::joined))
    return because(*quantized,
                   "transformers joins other tensors of this family while it loads, and drops them if experts are "
                   "quantized to anything but fp8");
  return std::nullopt;
}

bool is_bytes_per_row(const LayerPlan& layer) {
  if (keeps_weight(layer) || layer.weight->front().qscheme != QScheme::per_channel) return false;
  const Compressor compressor = compressor_of(layer.weight->front(), layer.is_unpacked);
  return compressor == Compressor::int_quantized || compressor == Compressor::float_quantized;
}

// Of layers that are split: all must be there, as bytes with a scale a row.
std::optional<LoaderLimit> split_limit(const List<LayerPlan>& layers, const Conversions& conversions) {
  for (const Conversion* row : conversions.rows()) {
    if (row->kind != Kind::split) continue;
    const LayerPlan *quantized = nullptr, *other = nullptr;
    for (const LayerPlan& layer : layers)
      if (conversions.find(layer.layer) == row) (is_bytes_per_row(layer) ? quantized : other) = &layer;
    if (quantized != nullptr && other == nullptr) continue;
    std::string_view targets = row->targets;
    return LoaderLimit{
        other == nullptr ? std::string() : other->layer,
        text_of("transformers splits {} of this family into {} and others while it loads, and cannot load a compressed "
                "model where that layer is not quantized to 8 bits with a scale per channel",
                row->sources, families::next_word(targets)),
        other == nullptr ? "write quark, gptq or fake-quantized"
                         : "use int8 or fp8_per_channel for it, or write quark, "
                           "gptq or fake-quantized",
        false};
  }
  return std::nullopt;
}

std::optional<LoaderLimit> conversion_limit(const List<LayerPlan>& layers, const ModelFamily& family) {
  const Conversions conversions(family);
  if (conversions.has(Kind::unreadable))
    return LoaderLimit{
        {},
        "transformers changes tensors of this family while it loads, several at once or in their values, and cannot do "
        "that in a compressed model",
        "load the file with vLLM, or write fake-quantized",
        false};
  if (auto limit = split_limit(layers, conversions)) return limit;
  return expert_limit(MergedExperts(layers, conversions), conversions);
}

std::string_view release_for_conversions(const List<LayerPlan>& layers, const ModelFamily& family) {
  const Conversions conversions(family);
  if (conversions.has(Kind::split)) return "transformers>=5.24";
  const MergedExperts experts(layers, conversions);
  return experts.quantized != nullptr || has_plain_conversions(layers, family) ? "transformers>=5.16" : "";
}

bool needs_single_experts(const ModelFamily& family) {
  // transformers' quantizers/base.py: SequentialLlama4TextExperts, for this format and bitsandbytes.
  return family.has("llama4") || family.has("llama4_text");
}

bool packs_weight_tensor(const LayerPlan& layer) {
  const QuantizationSpec& spec = layer.weight->front();
  if (info_of(spec.dtype).is_plain_cast()) return false;
  const Compressor compressor = compressor_of(spec, layer.is_unpacked);
  return compressor == Compressor::pack_quantized || compressor == Compressor::mxfp4_pack_quantized ||
         compressor == Compressor::nvfp4_pack_quantized;
}

std::string_view needed_release(const List<LayerPlan>& layers, const ModelFamily& family) {
  for (const LayerPlan& layer : layers)
    if (!keeps_weight(layer) && packs_weight_tensor(layer) && transformers::needed_plain_weight(family, layer.layer))
      return "transformers>=5.24";
  return release_for_conversions(layers, family);
}

}  // namespace

extern const Loader kCompressedTensors;
const Loader kCompressedTensors{
    .format = "compressed-tensors",
    .reads_classes = true,
    .joins_blocks = true,
    // Of families whose single experts transformers does not merge, nor builds as single layers (Llama 4).
    .stacked_experts_limit =
        [](const ModelFamily& family) {
          return needs_single_experts(family) ? std::string() : transformers::stacked_experts_limit(family);
        },
    .needs_single_experts = needs_single_experts,
    .limit =
        [](const List<LayerPlan>& layers, const ModelFamily& family) {
          auto limit = conversion_limit(layers, family);
          return limit ? limit : zero_point_limit(layers);
        },
    .release = needed_release,
    .option = option_for_zero_points,
    .needs_one_group_size = [](const QuantizationSpec& spec) { return has_packed_zero_points(spec, false); },
    .loads_as_bfloat16 = [](const Stages& stages) { return stages.front().scale_format != ScaleFormat::float32; },
    .packs_weight_tensor = packs_weight_tensor};

}  // namespace wasmquant::runtimes
