// What loads the checkpoints of a format: what it reads of layers that the format can hold, and what it needs for them.
// transformers for all of them, with the library of the format; vLLM joins layers (fused_layer_schemes.h).
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "checkpoint/checkpoint_format.h"
#include "core/diagnostic.h"
#include "core/list.h"
#include "families/model_family.h"

namespace wasmquant::runtimes {

using families::ModelFamily;

/// Why transformers cannot load a file, although each of its weights fits the format.
struct LoaderLimit {
  std::string layer;          // the first that it is about
  std::string reason, hint;   // a sentence each
  bool is_of_experts;         // the file loads with the experts unquantized
  bool stops_presets = true;  // else they warn, because another runtime of the format loads the file
};

/// The place of a layer in a tensor that a loader has for several of them.
struct StackPlace {
  std::string layer;   // of the tensor
  uint64_t index = 0;  // along its first axis
};

/// The loader of one format. A format that is not listed in loaders.cpp loads like plain weights: these are the defaults.
struct Loader {
  std::string_view format;
  /// Whether classes of transformers, vLLM or AMD Quark read the weights by the config block: they join layers, and have
  /// classes of their own for routers.
  bool reads_classes = false;
  /// Whether layers that vLLM joins need 2-D blocks that their rows fill.
  bool joins_blocks = false;
  /// Why it cannot read experts that the model stores in one tensor; empty if it can.
  std::string (*stacked_experts_limit)(const ModelFamily&) = [](const ModelFamily&) { return std::string(); };
  /// Whether it has a class of single experts for a family that stores all in one tensor, also where none is quantized.
  bool (*needs_single_experts)(const ModelFamily&) = [](const ModelFamily&) { return false; };
  /// Where it has the weight of a layer, if it reads those of several layers as one tensor.
  std::optional<StackPlace> (*stack_of)(const ModelFamily&, std::string_view layer) =
      [](const ModelFamily&, std::string_view) { return std::optional<StackPlace>(); };
  /// Why it cannot load these layers together. Nullopt if it can, or if that is not known.
  std::optional<LoaderLimit> (*limit)(const List<LayerPlan>&, const ModelFamily&) =
      [](const List<LayerPlan>&, const ModelFamily&) { return std::optional<LoaderLimit>(); };
  /// The release of transformers from which on it loads these layers, as pip spells it; empty: any that knows the family.
  std::string_view (*release)(const List<LayerPlan>&, const ModelFamily&) =
      [](const List<LayerPlan>&, const ModelFamily&) { return std::string_view(); };
  /// The argument that from_pretrained needs to load these layers; empty if it needs none.
  std::string_view (*option)(const List<LayerPlan>&) = [](const List<LayerPlan>&) { return std::string_view(); };
  /// Whether all layers with such a weight need one group size, for the config block or the loader knows a single one.
  bool (*needs_one_group_size)(const QuantizationSpec&) = [](const QuantizationSpec&) { return false; };
  /// Members of config.json that it reads in addition to the block, made from the model's own; null if there are none.
  json::Value (*config_members)(const json::Value& config, const json::Value& block) =
      [](const json::Value&, const json::Value&) { return json::Value(); };
  /// Whether it converts weights with these stages to bfloat16, regardless of the model's dtype.
  bool (*loads_as_bfloat16)(const Stages&) = [](const Stages&) { return false; };
  /// Whether a quantized layer has no tensor called `weight`, which some classes read while they are loaded.
  bool (*packs_weight_tensor)(const LayerPlan&) = [](const LayerPlan&) { return false; };
};

/// The loader of a format's files.
const Loader& loader_of(const CheckpointFormat& format) noexcept;

/// Whether loaders that join layers read their schemes from the config block (fused_layer_schemes.h).
inline bool joins_layers(const CheckpointFormat& format) { return loader_of(format).reads_classes; }
/// Whether the routers of experts are read as plain parameters, regardless of the config block.
inline bool leaves_routers(const CheckpointFormat& format) { return loader_of(format).reads_classes; }

// ---- limits that do not depend on the format

/// Of experts that are the rows of one matrix, of a family {}; of quantized routers, the first of {}; of folders with
/// params.json, for a format {}.
extern const char kExpertsInRows[], kQuantizedRouters[], kNeedsConfig[];

/// A family whose class has one tensor for all experts, of a source with a tensor for each, such as `layer`. Nullopt if
/// the class reads those.
std::optional<LoaderLimit> single_experts_limit(const CheckpointFormat& format, const ModelFamily& family,
                                                std::string_view layer);
/// Why the class of this family reads no packed weight for the layer; empty if it does.
std::string plain_weight_limit(const CheckpointFormat& format, const LayerPlan& layer, const ModelFamily& family);
/// What the loader needs for these layers: a release, an option.
void add_needs(const CheckpointFormat& format, const List<LayerPlan>& layers, const ModelFamily& family,
               List<Diagnostic>& out);

}  // namespace wasmquant::runtimes
