#include "tools/compressed_tensors/packed_zero_points.h"

#include "families/conversions.h"
#include "tools/compressed_tensors/compressed_tensors_arguments.h"
#include "tools/compressed_tensors/compressors.h"

namespace wasmquant {
namespace {

// The first layer with packed zero points; null if there is none. Experts do not count: the loader decompresses them in its own way.
const LayerPlan* packed_layer(const List<LayerPlan>& layers) {
  for (const LayerPlan& layer : layers)
    if (!keeps_weight(layer) && !families::is_single_expert(layer.layer) &&
        has_packed_zero_points(layer.weight->front(), layer.is_unpacked))
      return &layer;
  return nullptr;
}

}  // namespace

bool has_packed_zero_points(const QuantizationSpec& spec, bool is_unpacked) {
  return !info_of(spec.dtype).is_plain_cast() && compressor_of(spec, is_unpacked) == Compressor::pack_quantized &&
         config::has_stored_zero_point(spec);
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

}  // namespace wasmquant
