// The loaders by format, and what all of them cannot read.
#include "families/module_path.h"
#include "runtimes/loaders/loader.h"
#include "runtimes/transformers/conversions.h"
#include "runtimes/transformers/loader_names.h"

namespace wasmquant::runtimes {

const char kExpertsInRows[] =
    "the experts of this family ({}) are the rows of one matrix, from which neither transformers nor vLLM "
    "reads single quantized ones. Remove --include-experts";
const char kQuantizedRouters[] =
    "is the first of {} quantized routers of experts: transformers, vLLM and AMD Quark read them as plain "
    "parameters, and compute with codes in place of values";

const char kNeedsConfig[] =
    "is of the layout of Mistral or Meta (consolidated.safetensors), whose runtimes read no config.json, and "
    "{} needs one. Use the same model in the layout of transformers (config.json, model.safetensors), or write "
    "--format fake-quantized, which keeps params.json";

extern const Loader kCompressedTensors, kQuark, kAwq, kGptq, kMlx;

const Loader& loader_of(const CheckpointFormat& format) noexcept {
  static constexpr Loader kPlain;
  for (const Loader* const loader : {&kCompressedTensors, &kQuark, &kAwq, &kGptq, &kMlx})
    if (loader->format == format.name()) return *loader;
  return kPlain;
}

std::optional<LoaderLimit> single_experts_limit(const CheckpointFormat& format, const ModelFamily& family,
                                                std::string_view layer) {
  const std::string reason = transformers::single_experts_limit(family);
  if (reason.empty() || loader_of(format).needs_single_experts(family)) return std::nullopt;
  return LoaderLimit{std::string(layer), text_of("{}: it would compute with random weights in their place", reason),
                     "start from a checkpoint that holds all experts in one tensor, as save_pretrained writes it, or "
                     "load the file with vLLM where it knows the family"};
}

std::string plain_weight_limit(const CheckpointFormat& format, const LayerPlan& layer, const ModelFamily& family) {
  if (!loader_of(format).packs_weight_tensor(layer) || !transformers::needs_plain_weight(family, layer.layer))
    return {};
  return text_of(
      "transformers cannot load packed weights of this family ({}): its class reads a tensor named \"weight\" "
      "while it loads, and this dtype is stored under other names",
      family.model_type);
}

void add_needs(const CheckpointFormat& format, const List<LayerPlan>& layers, const ModelFamily& family,
               List<Diagnostic>& out) {
  const Loader& loader = loader_of(format);
  if (const std::string_view needed = loader.release(layers, family); !needed.empty())
    out.push_back(
        {Severity::note, "loader-version", "model",
         text_of("needs {}: older releases do not load experts or packed layers like these, or layers that they split",
                 needed),
         needed});
  if (const std::string_view option = loader.option(layers); !option.empty())
    out.push_back({Severity::note, "loader-option", "model",
                   text_of("transformers needs {}: its plain loading refuses packed zero points", option), option});
}

}  // namespace wasmquant::runtimes
