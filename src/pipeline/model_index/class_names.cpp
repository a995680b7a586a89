// Names of other programs, gaps in numbered lists of modules, and layers that lack what the others have.
#include "pipeline/model_index/class_names.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "config/match/layer_type.h"
#include "core/message.h"
#include "families/module_path.h"
#include "families/table/family_traits.h"
#include "families/word_list.h"
#include "pipeline/model_index/model_index.h"
#include "runtimes/llama_cpp/texts.h"
#include "runtimes/transformers/default_exclusions.h"
#include "runtimes/transformers/loader_names.h"

namespace wasmquant {
namespace {

using families::ModelFamily;

// What names of another layout begin with, or have as a component.
struct ForeignName {
  std::string_view begins, parts, whose;
};
constexpr ForeignName kForeignNames[] = {
    {"tok_embeddings. layers.0.attention.wq.", "", "Meta's and Mistral's own layout"},
    {"token_embd. blk.0.", "", llama_cpp::kName},
    {"transformer.resblocks.0.", "", "OpenCLIP"},
    {"", "switch_mlp switch_glu embed_q unembed_out qkvg_proj", "mlx-lm"},
};

Status check_foreign(const ModelIndex& model, const ModelFamily& family) {
  for (const ModelTensor& tensor : model.tensors()) {
    const std::string& name = tensor.stored.name;
    const auto is_of = [&](const ForeignName& row) {
      return families::any_word(row.begins, [&](std::string_view begin) { return name.starts_with(begin); }) ||
             families::any_word(row.parts, [&](std::string_view part) { return families::has_component(name, part); });
    };
    const auto* const row = std::find_if(std::begin(kForeignNames), std::end(kForeignNames), is_of);
    if (row == std::end(kForeignNames) || transformers::loader_name(family, tensor.layer) != tensor.layer) continue;
    return error_at(ErrorCode::format_unsupported, name,
                    "is a name of {}, which the class of config.json ({}) does not have: it would be filled with "
                    "random values. Use the checkpoint that this one was made from, or the config.json of these names",
                    row->whose, family.architecture.empty() ? family.model_type : family.architecture);
  }
  return {};
}

// The name of a tensor in a numbered list of modules: "model.layers." 3 "mlp.up_proj.weight".
struct Place {
  std::string_view list;
  uint32_t number;
  std::string_view rest;
};

// In the first list called one of `words`.
std::optional<Place> place_in(std::string_view name, std::string_view words) {
  std::string_view rest = name;
  while (!rest.empty()) {
    const std::string_view part = families::next_component(rest);
    if (!families::is_word(words, part)) continue;
    const std::string_view list = name.substr(0, name.size() - rest.size());
    std::string_view behind = rest;
    const std::string_view digits = families::next_component(behind);
    Place place{list, 0, behind};
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), place.number);
    if (parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size() && !behind.empty()) return place;
  }
  return std::nullopt;
}

std::vector<uint32_t> numbers_of(const List<Place>& places) {
  std::vector<uint32_t> numbers;
  for (const Place& place : places) numbers.push_back(place.number);
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

// Places by list, and in a list by `rest`.
List<List<Place>> grouped(List<Place> places, bool by_rest) {
  std::sort(places.begin(), places.end(), [&](const Place& a, const Place& b) {
    if (a.list != b.list) return a.list < b.list;
    if (by_rest && a.rest != b.rest) return a.rest < b.rest;
    return a.number < b.number;
  });
  List<List<Place>> groups;
  for (const Place& place : places) {
    if (groups.empty() || groups.back().front().list != place.list ||
        (by_rest && groups.back().front().rest != place.rest))
      groups.emplace_back();
    groups.back().push_back(place);
  }
  return groups;
}

constexpr const char* kFilled = "the class of config.json would fill it with random values";

Status check_experts(const ModelIndex& model) {
  List<Place> places;
  for (const ModelTensor& tensor : model.tensors())
    if (const auto place = place_in(tensor.stored.name, "experts")) places.push_back(*place);
  for (const List<Place>& experts : grouped(std::move(places), false)) {
    const std::vector<uint32_t> numbers = numbers_of(experts);
    for (uint32_t e = 0; e < numbers.size(); ++e)
      if (numbers[e] != e)
        return error_at(ErrorCode::tensor_missing, text_of("{}{}", experts.front().list, e),
                        "is not in the model, which has expert {}: {}. Get the file that has it", numbers.back(),
                        std::string_view(kFilled));
  }
  return {};
}

Status check_count(const List<Place>& layers, const ModelFamily& family) {
  const std::vector<uint32_t> numbers = numbers_of(layers);
  for (uint32_t i = 0; i < family.hidden_layers; ++i)
    if (i >= numbers.size() || numbers[i] != i)
      return error_at(ErrorCode::tensor_missing, text_of("{}{}", layers.front().list, i),
                      "is not in the model, and config.json counts {} layers: {}. Get the file that has it, or correct "
                      "num_hidden_layers",
                      family.hidden_layers, std::string_view(kFilled));
  return {};
}

bool has_like_layers(const ModelFamily& family) {
  return std::any_of(std::begin(families::kFamilyRows), std::end(families::kFamilyRows),
                     [&](const families::FamilyRow& row) {
                       return family.model_type == row.model_type && !row.converts_with(families::kMixedLayers);
                     });
}

// The layers of one list that lack what the others have.
Status check_alike(const List<Place>& layers, const ModelFamily& family, List<Diagnostic>& diagnostics) {
  const std::vector<uint32_t> numbers = numbers_of(layers);
  if (numbers.size() < 3) return {};
  const bool are_alike = has_like_layers(family);
  const List<List<Place>> parts = grouped(layers, true);
  const auto is_alone = [&](uint32_t number) {  // it has what no other layer has: a kind of its own
    return std::any_of(parts.begin(), parts.end(),
                       [&](const List<Place>& part) { return part.size() == 1 && part.front().number == number; });
  };
  for (const List<Place>& part : parts) {
    const size_t lacking = numbers.size() - part.size();
    if (lacking == 0 || !part.front().rest.ends_with(".weight")) continue;
    if (are_alike ? 2 * part.size() <= numbers.size() : lacking != 1 || numbers.size() < 4) continue;
    size_t at = 0;
    while (at < part.size() && part[at].number == numbers[at]) ++at;
    const std::string name = text_of("{}{}.{}", part.front().list, numbers[at], part.front().rest);
    if (are_alike)
      return error_at(ErrorCode::tensor_missing, name, "is not in the model, and other layers have it: {}",
                      std::string_view(kFilled));
    if (at == 0 || at + 1 == numbers.size() || is_alone(numbers[at])) continue;
    diagnostics.push_back(
        {Severity::warning, ErrorCode::tensor_missing, name,
         text_of("is not in the model, and all other layers have it: perhaps {}", std::string_view(kFilled)),
         "compare the names with those of the original checkpoint"});
    return {};
  }
  return {};
}

}  // namespace

Status check_class_names(const ModelIndex& model, List<Diagnostic>& diagnostics) {
  const Result<json::Value>& config = model.config();
  if (model.format().has_graph || model.format().carries_config || !config) return {};
  const auto family = ModelFamily::read(*config);
  if (family.model_type.empty() || !(*config)["auto_map"].is_null()) return {};
  TRY_VOID(check_foreign(model, family));
  TRY_VOID(check_experts(model));
  List<Place> places;
  for (const ModelTensor& tensor : model.tensors())
    if (!family.generates() || transformers::tower_end(tensor.layer) == std::string_view::npos)
      if (const auto place = place_in(tensor.stored.name, "layers layer blocks block h")) places.push_back(*place);
  const List<List<Place>> lists = grouped(std::move(places), false);
  if (lists.size() == 1) TRY_VOID(check_count(lists.front(), family));
  for (const List<Place>& layers : lists) TRY_VOID(check_alike(layers, family, diagnostics));
  return {};
}

}  // namespace wasmquant
