// What AMD Quark's loader, which transformers calls, cannot read of files in its own format. Tried with AMD Quark 0.13, every
// dtype and scheme that the format stores (`npm run test:seams -- 100 --loaders`).
#include <string>

#include "families/module_path.h"
#include "runtimes/loaders/loader.h"
#include "runtimes/transformers/conversions.h"

namespace wasmquant::runtimes {
namespace {

// How many zero points of channels are packed together, symmetric ones among them; 1 if they are not.
// Source: qparams_per_item of the classes in quark/torch/utils/pack.py.
uint64_t channels_packed_together(Dtype dtype) {
  if (dtype == Dtype::int4 || dtype == Dtype::uint4) return 8;
  return dtype == Dtype::fp4 ? 2 : 1;
}

bool is_of_quark(Dtype dtype) { return dtype != Dtype::fp8_e4m3fnuz && dtype != Dtype::fp8_e5m2fnuz; }

// Whether a second scale stands in weight_scale_2.
bool has_second_scale(const LayerPlan& layer) {
  const QuantizationSpec& spec = layer.weight->front();
  return layer.weight->size() == 2 || (!info_of(spec.dtype).is_integer && spec.scale_format == ScaleFormat::e4m3);
}

// What of the layer it cannot read; empty if it can.
std::string unread_part(const LayerPlan& layer) {
  const QuantizationSpec& spec = layer.weight->front();
  const DtypeInfo& dtype = info_of(spec.dtype);
  const bool is_small_float = !dtype.is_integer && dtype.bits < 8;
  if (dtype.is_block()) return text_of("{}, whose layout is this library's", dtype.name);
  if (!is_of_quark(spec.dtype)) return text_of("{}, which is no dtype of it", dtype.name);
  if (dtype.bits == 3) return std::string(dtype.name);
  if (dtype.is_integer && spec.scale_format == ScaleFormat::e8m0)
    return text_of("{} with e8m0 scales, Quark's dtype mx", dtype.name);
  switch (spec.qscheme) {
    case QScheme::per_tensor:
      if (is_small_float || dtype.bits == 4) return text_of("{} with one scale per tensor", dtype.name);
      return {};
    case QScheme::per_channel:
      if (const uint64_t packed = channels_packed_together(spec.dtype); layer.rows % packed != 0)
        return text_of("{} per channel with {} rows, which is no multiple of {}", dtype.name, layer.rows, packed);
      return {};
    case QScheme::per_group:
      if (!dtype.is_integer && dtype.bits == 8) return text_of("{} in groups", dtype.name);
      return {};
    case QScheme::per_block: {
      const uint64_t high = spec.block_rows, wide = spec.block_columns;
      if (is_small_float) return text_of("{} per block", dtype.name);
      if (layer.rows % high != 0 || layer.columns % wide != 0)
        return text_of("blocks of {} x {} that do not divide a weight of {} x {}", high, wide, layer.rows,
                       layer.columns);
      return {};
    }
  }
  return {};
}

std::optional<LoaderLimit> quark_limit(const List<LayerPlan>& layers, const families::ModelFamily& family) {
  const transformers::Conversions conversions(family);
  const bool merges_experts = conversions.has(transformers::Conversion::Kind::experts);
  const std::string stacked_limit = transformers::stacked_experts_limit(family);
  for (const LayerPlan& layer : layers) {
    // Float ones, too, which a group that does not fit leaves: they have the names of single experts.
    if (layer.is_split_expert && !stacked_limit.empty())
      return LoaderLimit{
          layer.layer, text_of("{}: it would compute with random weights in their place", stacked_limit),
          "load the file with import_model_from_safetensors of AMD Quark, or with vLLM where it knows the family "
          "(--include-experts); or write fake-quantized",
          true, false};
    if (keeps_weight(layer)) continue;
    if (const std::string part = unread_part(layer); !part.empty())
      return LoaderLimit{layer.layer, text_of("AMD Quark's loader, which transformers calls, does not read {}", part),
                         "use int8 or fp8 per tensor or channel, int4 per group of 32, or mxfp4, which it reads; or "
                         "write compressed-tensors or fake-quantized",
                         false, false};
    if (has_second_scale(layer))
      return LoaderLimit{
          layer.layer,
          "transformers leaves out the second scales of Quark's files (weight_scale_2), and computes with "
          "wrong weights without an error",
          "load the file with import_model_from_safetensors of AMD Quark; or write compressed-tensors, "
          "which transformers and vLLM read",
          false, false};
    if ((merges_experts && families::is_single_expert(layer.layer)) || conversions.find(layer.layer) != nullptr)
      return LoaderLimit{
          layer.layer,
          "transformers joins, splits or rearranges such weights of this family while it loads, and its "
          "loader of Quark's files cannot do that with quantized ones",
          "load the file with vLLM, where it has kernels for the scheme, or with "
          "import_model_from_safetensors of AMD Quark; or leave the experts (--exclude-experts), or write "
          "compressed-tensors",
          false, false};
  }
  return std::nullopt;
}

}  // namespace

extern const Loader kQuark;
const Loader kQuark{.format = "quark", .reads_classes = true, .limit = quark_limit};

}  // namespace wasmquant::runtimes
