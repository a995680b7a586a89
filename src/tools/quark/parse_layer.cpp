// One layer config (Quark's QLayerConfig): up to four tensor specs, each null, an object, or a list of stages.
#include "config/reading/key_row.h"
#include "config/spec/vocabulary.h"
#include "core/list.h"
#include "core/message.h"
#include "tools/quark/quark_config.h"
#include "tools/quark/spec_parser.h"

namespace wasmquant::config {
namespace {

constexpr Keys kSpec{kSpecKeys, "QTensorConfig"};
static_assert(QuantizationSpec().scale_sign == ScaleSign::positive && !refits_calibrated(QuantizationSpec()),
              "keys.def names these defaults");
constexpr Key kLayerRows[] = {
#define WASMQUANT_LAYER_KEY WASMQUANT_KEY_ROW
#include "tools/quark/keys.def"
};

Stages parse_stages(const ObjectReader& in, const char* key, TensorSlot use) {
  const json::Value* value = in.find(key);
  if (value == nullptr) return {};
  DiagnosticList& out = in.out();
  const std::string where = in.at(key);

  if (value->is_object()) {
    auto spec = parse_spec(*value, where, use, out);
    if (!spec) return {};
    if (spec->is_scale_quant) {
      out.error("value-invalid", text_of("{}/is_scale_quant", where), "only the second of two stages quantizes scales",
                "give a list of two specs, or set it to false");
      return {};
    }
    return Stages{*spec};
  }
  const json::Array& items = value->items();
  if (items.empty()) {
    out.error("value-invalid", where, "a list of stages must not be empty", "use null for no quantization");
    return {};
  }
  Stages stages;
  for (size_t i = 0; i < items.size(); ++i)
    if (auto spec = parse_spec(items[i], text_of("{}/{}", where, i), use, out)) stages.push_back(*spec);
  if (stages.size() != items.size()) return {};
  if (use != TensorSlot::weight) return stages;
  if (items.size() > 2)
    out.error("not-implemented", where, text_of("a list of {} stages; this version has two at most", items.size()),
              "give one spec, or two");
  const char* problem = stages.size() == 2 ? unfit_stages(stages[0], stages[1]) : nullptr;
  if (problem != nullptr) out.error("value-invalid", where, problem, "");
  return stages;
}

}  // namespace

extern const Keys kLayerKeys;
constexpr Keys kLayerKeys{kLayerRows, "QLayerConfig"};

LayerConfig parse_layer(const json::Value& value, const std::string& where, DiagnosticList& out) {
  const ObjectReader in(value, where, kLayerKeys, out);
  LayerConfig layer;
  layer.weight = parse_stages(in, "weight", TensorSlot::weight);
  layer.bias = parse_stages(in, "bias", TensorSlot::bias);
  layer.input_tensors = parse_stages(in, "input_tensors", TensorSlot::input);
  layer.output_tensors = parse_stages(in, "output_tensors", TensorSlot::output);
  if (!layer.bias.empty())
    out.add({Severity::note, "bias-format", in.at("bias"),
             "fake-quantized files hold quantized biases; in all other formats they stay as they are", ""});
  in.word("target_device", kTargetDevices);
  return layer;
}

}  // namespace wasmquant::config
