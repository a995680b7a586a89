// The classes of the extension's algorithms (spec aihwkit-brevitas 3) in the words of tables/algorithms.def:
//   Preprocess              merge_batch_norm and cle, by its own switches
//   ActivationEqualization  activationequalization, folded into the layer before, because files cannot store the
//                           multiplication that Brevitas inserts before a layer
//   GPTQ, GPFQ, GPFA2Q, BiasCorrection   gptq, gpfq (which GPFA2Q falls back to since 0.12), biascorrection
#include "tools/brevitas/brevitas.h"

namespace wasmquant::config {
namespace {

json::Value named(std::string_view name) {
  json::Value out;
  out.set("name", name);
  return out;
}

}  // namespace

void translate_brevitas(const json::Value& value, List<TranslatedAlgorithm>& out) {
  const std::string& name = value["name"].as_string();
  if (name == "Preprocess") {
    if (value["merge_batch_norm"].as_bool()) out.push_back({named("merge_batch_norm"), true});
    if (value["equalize_iterations"].as_integer() == 0) return;
    json::Value equalization = named("cle");
    for (const char* key : {"equalize_iterations", "equalize_merge_bias"}) equalization.set(key, value[key]);
    out.push_back({std::move(equalization), true});
  } else if (name == "ActivationEqualization") {
    json::Value smooth = named("activationequalization");
    smooth.set("is_layerwise", false);
    smooth.set("alpha", value["alpha"]);
    out.push_back({std::move(smooth)});
  } else if (name == "GPTQ") {
    json::Value gptq = named("gptq");
    gptq.set("desc_act", value["act_order"]);
    out.push_back({std::move(gptq)});
  } else if (name == "GPFQ" || name == "GPFA2Q") {
    json::Value gpfq = named("gpfq");
    gpfq.set("act_order", value["act_order"]);
    out.push_back({std::move(gpfq)});
  } else if (name == "BiasCorrection") {
    out.push_back({named("biascorrection")});
  }
}

}  // namespace wasmquant::config
