// Experts that the loader merges, and what the config block says of them.
#include "tools/compressed_tensors/converted_weights.h"

#include "families/module_path.h"
#include "families/word_list.h"

namespace wasmquant {

using transformers::Conversion;
using transformers::Conversions;
using Kind = transformers::Conversion::Kind;

bool passes_plain_weights(const QuantizationSpec& spec) {
  const DtypeInfo& dtype = info_of(spec.dtype);
  return !dtype.is_integer && dtype.bits == 8;
}

MergedExperts::MergedExperts(const List<LayerPlan>& layers, const Conversions& conversions) {
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
