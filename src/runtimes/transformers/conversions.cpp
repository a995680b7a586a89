#include "runtimes/transformers/conversions.h"

#include <algorithm>

#include "core/message.h"
#include "families/module_path.h"
#include "families/word_list.h"
#include "runtimes/transformers/loader_names.h"

namespace wasmquant::transformers {

using namespace families;

namespace {

using Kind = Conversion::Kind;

constexpr Conversion kConversions[] = {
#define WASMQUANT_CONVERSION(kind, types, sources, targets) {Kind::kind, types, sources, targets},
#define WASMQUANT_STACKED_EXPERTS(types)
#include "runtimes/transformers/conversions.def"
};

// Types whose classes have one parameter for all experts.
constexpr std::string_view kStackedExperts =
#define WASMQUANT_CONVERSION(kind, types, sources, targets)
#define WASMQUANT_STACKED_EXPERTS(types) types
#include "runtimes/transformers/conversions.def"
    ;

bool is_source(const Conversion& row, std::string_view layer) {
  if (row.kind == Kind::experts) return is_single_expert(layer) && is_word(row.sources, last_component(layer));
  return any_word(row.sources, [&](std::string_view source) { return ends_with_components(layer, source); });
}

}  // namespace

Conversions::Conversions(const ModelFamily& family) : family_(family) {
  for (const Conversion& row : kConversions)
    if (any_word(row.types, [&](std::string_view type) { return family.has(type); })) rows_.push_back(&row);
}

bool Conversions::has(Kind kind) const noexcept {
  return std::any_of(rows_.begin(), rows_.end(), [&](const Conversion* row) { return row->kind == kind; });
}

const Conversion* Conversions::find(std::string_view layer) const {
  if (rows_.empty()) return nullptr;
  const std::string loaded = loader_name(family_, layer);
  for (const Conversion* row : rows_)
    if (is_source(*row, layer) || is_source(*row, loaded)) return row;
  return nullptr;
}

const Conversion* Conversions::merged_experts(std::string_view fused) const noexcept {
  for (const Conversion* row : rows_)
    if (row->kind == Kind::experts && row->targets == fused) return row;
  return nullptr;
}

std::string single_experts_limit(const ModelFamily& family) {
  const bool is_listed = any_word(kStackedExperts, [&](std::string_view type) { return family.has(type); });
  return is_listed ? stacked_experts_limit(family) : std::string();
}

std::string_view Conversions::expert_matrix(std::string_view part) const noexcept {
  const bool is_gate = part == "gate_proj", is_down = part == "down_proj" || part == "fc2";
  const Conversion* row = merged_experts(is_down ? "down_proj" : "gate_up_proj");
  if (row == nullptr) row = merged_experts("up_proj");
  if (row == nullptr) return part;
  std::string_view names = row->sources;
  const std::string_view first = families::next_word(names);
  return is_gate || is_down || names.empty() ? first : names;
}

std::string stacked_experts_limit(const ModelFamily& family) {
  if (family.model_type.empty() || Conversions(family).has(Conversion::Kind::experts)) return {};
  return text_of("transformers builds the experts of this family ({}) as one parameter and reads no single ones",
                 family.model_type);
}

}  // namespace wasmquant::transformers
