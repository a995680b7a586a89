// The rows of default_exclusions.def, and how a layer's name and family match them.
#include "runtimes/transformers/default_exclusions.h"

#include <iterator>
#include <unordered_map>

#include "families/module_path.h"
#include "families/word_list.h"
#include "runtimes/transformers/loader_names.h"

namespace wasmquant::transformers {

using namespace families;

namespace {

using Match = DefaultExclusion::Match;

constexpr DefaultExclusion kRows[] = {
#define WASMQUANT_DEFAULT_EXCLUSION(id, match, words, text) {#id, Match::match, words, text},
#include "runtimes/transformers/default_exclusions.def"
};
constexpr std::string_view kTower = "tower", kExpert = "expert", kInputMajor = "input_major", kHead = "head",
                           kSplit = "split_on_loading";
// Parallel to Conversion::Kind.
constexpr std::string_view kConversionKinds[] = {"experts", "joined", "split", "rearranged", "unreadable"};

bool has_ending(std::string_view words, std::string_view layer) {
  return any_word(words, [&](std::string_view word) { return ends_with_components(layer, word); });
}

// PART of FAMILY:PART.
std::string_view part_of(std::string_view word) { return word.substr(word.find(':') + 1); }
bool is_of_family(std::string_view word, const ModelFamily& family, std::string_view layer) {
  const std::string_view part = part_of(word);
  return family.is(word.substr(0, word.size() - part.size() - 1)) && (part == "*" || has_component(layer, part));
}

/// The rows that list each part of a name, a bit each: names have six parts, the table 80 words.
using RowsOfParts = std::unordered_map<std::string_view, uint32_t>;
static_assert(std::size(kRows) <= 32);

RowsOfParts index_parts() {
  RowsOfParts rows;
  for (size_t i = 0; i < std::size(kRows); ++i)
    if (kRows[i].match == Match::part || kRows[i].match == Match::layers)
      any_word(kRows[i].words, [&](std::string_view word) {
        rows[word] |= 1u << i;
        return false;
      });
  return rows;
}

uint32_t rows_of_part(std::string_view part) {
  static const RowsOfParts rows = index_parts();
  const auto found = rows.find(part);
  return found == rows.end() ? 0 : found->second;
}

}  // namespace

DefaultExclusions::DefaultExclusions(const ModelFamily& family, Rows rows)
    : family_(family), rows_(rows), conversions_(family) {
  rows_.tower &= family.generates();
  for (const DefaultExclusion& row : kRows)
    if (row.id == kExpert) expert_ = row;
  expert_.text = rows.expert;
  for (const Conversion* conversion : conversions_.rows()) {
    DefaultExclusion& copy = converted_.emplace_back();
    for (const DefaultExclusion& row : kRows)
      if (row.match == Match::converted && is_word(row.words, kConversionKinds[static_cast<size_t>(conversion->kind)]))
        copy = row;
    copy.words = conversion->sources;
  }
}

// The row for layers that the loader converts as it does this one; null if presets do not exclude them.
const DefaultExclusion* DefaultExclusions::row_of_conversion(std::string_view layer) const {
  const Conversion* const conversion = conversions_.find(layer);
  for (size_t i = 0; conversion != nullptr && i < converted_.size(); ++i)
    if (conversions_.rows()[i] == conversion && !converted_[i].id.empty()) return &converted_[i];
  return nullptr;
}

bool DefaultExclusions::applies(const DefaultExclusion& row) const noexcept {
  if (row.id == kTower) return rows_.tower;
  if (row.id == kExpert) return !rows_.expert.empty();
  if (row.id == kSplit && !rows_.split) return false;
  if (row.match == Match::family || row.match == Match::converted || row.id == kInputMajor) return rows_.input_major;
  return true;
}

// DeepSeek and GLM number the multi-token prediction layer as one more decoder layer. Encoder-decoder models count
// their two stacks separately, and so do towers.
bool DefaultExclusions::is_behind_last(std::string_view layer) const noexcept {
  return family_.hidden_layers > 0 && family_.architecture.ends_with("ForCausalLM") &&
         tower_end(layer) == std::string_view::npos && !has_component(layer, "encoder") &&
         !has_component(layer, "decoder") && layer_index_of(layer) >= family_.hidden_layers;
}

bool names_row(const DefaultExclusion& row, std::string_view pattern) noexcept {
  if (row.match == Match::type) return pattern.find("conv") != std::string_view::npos;
  return any_word(row.words, [&](std::string_view word) {
    const std::string_view part = row.match == Match::converted ? last_component(word) : part_of(word);
    return pattern.find(part) != std::string_view::npos;
  });
}

const DefaultExclusion* DefaultExclusions::find(std::string_view layer, std::string_view type) const {
  uint32_t listed = 0;
  const DefaultExclusion* const converted = row_of_conversion(layer);
  // Config blocks name the rows' words, which loaders compare with their own names.
  const std::string loaded = loader_name(family_, layer);
  for (const std::string_view name : {layer, std::string_view(loaded)})
    for (std::string_view rest = name; !rest.empty();) listed |= rows_of_part(next_component(rest));
  for (const DefaultExclusion& row : kRows) {
    const bool is_listed = listed >> (&row - kRows) & 1;
    bool matches = false;
    switch (row.match) {
      case Match::part:
        matches = is_listed;
        break;
      case Match::ending:
        matches = has_ending(row.words, layer) || (row.id == kHead && has_ending(row.words, loaded));
        break;
      case Match::type:
        matches = is_word(row.words, type);
        break;
      case Match::experts:
        matches = type == "Experts" || has_component(layer, "experts");
        break;
      case Match::family:
        matches = any_word(row.words, [&](std::string_view word) { return is_of_family(word, family_, layer); });
        break;
      case Match::converted:
        matches = converted != nullptr && converted->id == row.id;
        break;
      case Match::layers:
        matches = is_listed || is_behind_last(layer);
        break;
    }
    if (!matches || !applies(row)) continue;
    return row.id == kExpert ? &expert_ : row.match == Match::converted ? converted : &row;
  }
  return nullptr;
}

size_t tower_end(std::string_view layer) noexcept {
  std::string_view rest = layer;
  while (!rest.empty()) {
    const uint32_t rows = rows_of_part(next_component(rest));
    for (size_t i = 0; i < std::size(kRows); ++i)
      if (rows >> i & 1 && kRows[i].id == kTower) return layer.size() - rest.size() - (rest.empty() ? 0 : 1);
  }
  return std::string_view::npos;
}

}  // namespace wasmquant::transformers
