// Experts that the loader merges and layers that it splits: what it cannot load, and the release that can.
#include "tools/compressed_tensors/converted_weights.h"

#include "families/word_list.h"
#include "tools/compressed_tensors/compressed_tensors_arguments.h"
#include "tools/compressed_tensors/compressors.h"

namespace wasmquant {
namespace {

using families::Conversion;
using families::Conversions;
using Kind = families::Conversion::Kind;

// The loader passes plain weights on where the scheme is of 8-bit floats.
bool passes_plain_weights(const QuantizationSpec& spec) {
  const DtypeInfo& dtype = info_of(spec.dtype);
  return !dtype.is_integer && dtype.bits == 8;
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

// The experts that the loader merges.
struct MergedExperts {
  const LayerPlan *quantized = nullptr, *plain = nullptr, *differing = nullptr;  // the first of each

  MergedExperts(const List<LayerPlan>& layers, const Conversions& conversions) {
    if (!conversions.has(Kind::experts)) return;
    for (const LayerPlan& layer : layers) {
      if (!families::is_single_expert(layer.layer)) continue;
      if (keeps_weight(layer)) {
        if (plain == nullptr) plain = &layer;
      } else if (quantized == nullptr) {
        quantized = &layer;
      } else if (differing == nullptr &&
                 (layer.weight != quantized->weight || layer.is_unpacked != quantized->is_unpacked)) {
        differing = &layer;
      }
    }
  }

  std::optional<LoaderLimit> limit(const Conversions& conversions) const {
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
};

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

}  // namespace

std::optional<LoaderLimit> conversion_limit(const List<LayerPlan>& layers, const families::ModelFamily& family) {
  const Conversions conversions(family);
  if (conversions.has(Kind::unreadable))
    return LoaderLimit{
        {},
        "transformers changes tensors of this family while it loads, several at once or in their values, and cannot do "
        "that in a compressed model",
        "load the file with vLLM, or write fake-quantized",
        false};
  if (auto limit = split_limit(layers, conversions)) return limit;
  return MergedExperts(layers, conversions).limit(conversions);
}

std::string_view release_for_conversions(const List<LayerPlan>& layers, const families::ModelFamily& family) {
  const Conversions conversions(family);
  if (conversions.has(Kind::split)) return "transformers>=5.24";
  const MergedExperts experts(layers, conversions);
  return experts.quantized != nullptr || has_plain_conversions(layers, family) ? "transformers>=5.16" : "";
}

bool has_plain_conversions(const List<LayerPlan>& layers, const families::ModelFamily& family) {
  for (const LayerPlan& layer : layers)
    if (!keeps_weight(layer) && passes_plain_weights(layer.weight->front())) return false;
  const Conversions conversions(family);
  const MergedExperts experts(layers, conversions);
  return experts.quantized == nullptr && (experts.plain != nullptr || conversions.has(Kind::joined));
}

bool have_experts_one_spec(const List<LayerPlan>& layers, const families::ModelFamily& family) {
  return MergedExperts(layers, Conversions(family)).differing == nullptr;
}

List<std::string> target_patterns(const Conversion& row) {
  List<std::string> patterns;
  for (std::string_view rest = row.targets; !rest.empty();) {
    std::string pattern = "re:(.*\\.)?";
    for (const char c : families::next_word(rest)) {
      if (c == '.') pattern += '\\';
      pattern += c;
    }
    patterns.push_back(pattern + "$");
  }
  return patterns;
}

}  // namespace wasmquant
