// The rows of architectures.def, and the search for the row of a tensor's name.
#include <algorithm>
#include <array>
#include <optional>

#include "core/message.h"
#include "families/config_reader.h"
#include "families/layer_kinds.h"
#include "families/near_names.h"
#include "families/word_list.h"
#include "gguf_conversion/architectures/config_values.h"
#include "gguf_conversion/architectures/family.h"

namespace wasmquant::conversion {
namespace {

struct Part {
  std::string_view name, rows;
};
constexpr Part kTensorParts[] = {
#define WASMQUANT_TENSORS(name, rows) {name, rows},
#define WASMQUANT_ARCHITECTURE(name, prefixes, layers, rows, keys)
#define WASMQUANT_FAMILY_TENSORS(model_type, rows, keys)
#include "families/table/architectures.def"
#define WASMQUANT_TENSORS(name, rows) {name, rows},
#define WASMQUANT_PROJECTOR(type, gguf, rows, keys)
#include "families/table/projectors.def"
};

struct Architecture {
  std::string_view name, prefixes, layers, rows, keys;
};
constexpr Architecture kArchitectures[] = {
#define WASMQUANT_TENSORS(name, rows)
#define WASMQUANT_ARCHITECTURE(name, prefixes, layers, rows, keys) {name, prefixes, layers, rows, keys},
#define WASMQUANT_FAMILY_TENSORS(model_type, rows, keys)
#include "families/table/architectures.def"
#define WASMQUANT_TENSORS(name, rows)
#define WASMQUANT_PROJECTOR(type, gguf, rows, keys) {"clip/" type, PROJECTOR_PREFIXES, PROJECTOR_LAYERS, rows, keys},
#include "families/table/projectors.def"
};

struct FamilyTensors {
  std::string_view model_type, rows, keys;
};
constexpr FamilyTensors kFamilyTensors[] = {
#define WASMQUANT_TENSORS(name, rows)
#define WASMQUANT_ARCHITECTURE(name, prefixes, layers, rows, keys)
#define WASMQUANT_FAMILY_TENSORS(model_type, rows, keys) {model_type, rows, keys},
#include "families/table/architectures.def"
};

// Of one family; empty for most.
FamilyTensors own_of(const Family& family) noexcept {
  for (const FamilyTensors& row : kFamilyTensors)
    if (row.model_type == family.model_type) return row;
  return {};
}

// Of a family with an architecture.
const Architecture& architecture_of(const Family& family) noexcept {
  const Architecture* row = kArchitectures;
  while (row->name != family.architecture) ++row;
  return *row;
}

constexpr bool all_have_rows() {
  for (const Family& family : families::kFamilyRows) {
    bool found = false;
    for (const Architecture& row : kArchitectures) found = found || row.name == family.architecture;
    if (!found) return false;
  }
  return true;
}
static_assert(all_have_rows(), "an architecture of families.def has no row in architectures.def");

constexpr std::string_view kBlock = "blk.";

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

// Consumes the leading digits of `text`. Returns -1 if there are none, or more than six.
int64_t take_number(std::string_view& text) noexcept {
  constexpr size_t kMaxDigits = 6;
  size_t digits = 0;
  int64_t number = 0;
  for (; digits < text.size() && digits <= kMaxDigits && is_digit(text[digits]); ++digits)
    number = 10 * number + (text[digits] - '0');
  text.remove_prefix(digits);
  return digits == 0 || digits > kMaxDigits ? -1 : number;
}

// Whether `pattern` is all of `name`, or all up to its '*'. `number`: the one at its '%'.
bool matches(std::string_view pattern, std::string_view name, int64_t& number) noexcept {
  for (const char c : pattern) {
    if (c == '*') return true;
    if (c == '%') {
      number = take_number(name);
      if (number < 0) return false;
      continue;
    }
    if (name.empty() || name.front() != c) return false;
    name.remove_prefix(1);
  }
  return name.empty();
}

TensorKind kind_named(std::string_view letter, bool is_left_out) noexcept {
  switch (letter.empty() ? ' ' : letter.front()) {
    case 'n':
      return TensorKind::norm;
    case 'q':
      return TensorKind::query;
    case 'k':
      return TensorKind::key;
    case 't':
      return TensorKind::conv1d;
    case 'c':
      return TensorKind::short_conv;
    case 'e':
      return TensorKind::decay;
    case 'm':
      return TensorKind::input_major;
    case 'x':
      return TensorKind::columns;
    case 'p':
      return TensorKind::paired;
    case 'g':
      return TensorKind::grouped;
    case 'l':
      return TensorKind::predictor;
    case 's':
      return TensorKind::times;
    case 'i':
      return TensorKind::pixels;
    case 'r':
      return TensorKind::token_row;
    case 'v':
      return TensorKind::all_tokens;
    case 'o':
      return TensorKind::other_modality;
    default:
      return is_left_out ? TensorKind::left_out : TensorKind::plain;
  }
}

std::string_view rows_of_part(std::string_view name) noexcept {
  for (const Part& part : kTensorParts)
    if (part.name == name) return part.rows;
  return {};
}

struct Found {
  std::string_view target, kind, groups, factors;
  int64_t number = -1;
};

bool is_true(const json::Value* config, std::string_view name) noexcept {
  if (config == nullptr) return true;
  const json::Value* const value = families::ConfigReader(*config).find(name);
  return value != nullptr && (value->as_bool() || value->as_integer() != 0);
}

// The row of a module or parameter; in a layer, `name` is what follows the layer's number.
std::optional<Found> find_row(std::string_view rows, std::string_view name, bool in_layer, const json::Value* config) {
  while (!rows.empty()) {
    std::string_view row = families::next_word(rows);
    if (row.starts_with('@')) {
      if (auto found = find_row(rows_of_part(row.substr(1)), name, in_layer, config)) return found;
      continue;
    }
    if (row.starts_with('#') != in_layer) continue;
    if (in_layer) row.remove_prefix(1);
    if (row.starts_with('[')) {
      const size_t end = row.find(']');
      if (!is_true(config, row.substr(1, end - 1))) continue;
      row.remove_prefix(end + 1);
    }
    const size_t equals = row.find('='), colon = row.find(':', equals);
    Found found;
    if (!matches(row.substr(0, equals), name, found.number)) continue;
    found.target = row.substr(equals + 1, colon == row.npos ? row.npos : colon - equals - 1);
    if (colon != row.npos) found.kind = row.substr(colon + 1);
    if (const size_t slash = found.kind.find('/'); slash != found.kind.npos) {
      found.groups = found.kind.substr(slash);
      found.kind = found.kind.substr(0, slash);
    }
    if (const size_t times = found.kind.find('*'); times != found.kind.npos) {
      found.factors = found.kind.substr(times);
      found.kind = found.kind.substr(0, times);
    }
    return found;
  }
  return std::nullopt;
}

// The number at a place of a list in config.json; -1 if there is none.
int64_t number_at(const json::Value* config, std::string_view list, int64_t place) noexcept {
  const json::Value* const numbers =
      config == nullptr ? nullptr : ConfigValues(families::ConfigReader(*config)).find(list);
  const auto index = static_cast<size_t>(place);
  return numbers == nullptr || index >= numbers->items().size() ? -1 : numbers->items()[index].as_integer();
}

// The number in "<layers>12.rest", and the rest; -1 if the module is not in a layer. `stack`: what the table has behind '='.
int64_t take_layer(std::string_view& module, std::string_view layers, std::string_view& stack,
                   const json::Value* config) {
  while (!layers.empty()) {
    const std::string_view word = families::first_word(layers);
    const size_t equals = word.find('='), at = word.find('@');
    const std::string_view before = word.substr(0, std::min(at, equals));
    if (!module.starts_with(before)) continue;
    std::string_view rest = module.substr(before.size());
    int64_t layer = take_number(rest);
    if (layer < 0 || !rest.starts_with('.')) continue;
    if (at != word.npos) layer = number_at(config, word.substr(at + 1, equals - at - 1), layer);
    if (equals != word.npos) stack = word.substr(equals + 1);
    module = rest.substr(1);
    return layer;
  }
  return -1;
}

// Removes a wrapper's name from the front.
std::string_view without_prefix(std::string_view module, std::string_view prefixes) {
  while (!prefixes.empty()) {
    const std::string_view prefix = families::first_word(prefixes);
    if (module.starts_with(prefix)) return module.substr(prefix.size());
  }
  return module;
}

std::string full_name(std::string_view stack, int64_t layer, std::string_view target, std::string_view parameter) {
  std::string name = layer < 0 ? std::string() : text_of("{}{}.", stack, layer);
  name += target;
  if (name.ends_with('.')) name.pop_back();
  if (target.ends_with('.') || (parameter.empty() && target.find('.') != target.npos)) return name;
  return name += text_of(".{}", parameter.empty() ? "weight" : parameter);
}

// Each once, in the order of the table.
List<std::string_view> model_types() {
  List<std::string_view> types;
  for (const Family& family : families::kFamilyRows)
    if (types.empty() || types.back() != family.model_type) types.push_back(family.model_type);
  return types;
}

// Whether a row's condition holds for a model.
bool holds(const Family& family, const json::Value& config) noexcept {
  const families::ConfigReader reader(config);
  if (family.converts_with(families::kIfRouted) && !reader.count("num_experts_per_tok|num_experts_per_token"))
    return false;
  if (family.converts_with(families::kIfSlopes)) return reader.text("position_embedding_type") == "alibi";
  const json::Array& classes = config["architectures"].items();
  if (family.converts_with(families::kIfHeadless))
    return !classes.empty() && std::string_view(classes.front().as_string()).ends_with("Model");
  if (!family.converts_with(families::kIfHybrid)) return true;
  for (const std::string_view kind : families::layer_kinds(reader, reader.count("num_hidden_layers").value_or(0)))
    if (!kind.ends_with("attention")) return true;
  return false;
}

}  // namespace

const Family* family_of(const json::Value& config) noexcept {
  // A wrapper's own row precedes that of its language model.
  for (const std::string_view type :
       {std::string_view(config["model_type"].as_string()), families::ConfigReader(config).text("model_type")})
    for (const Family& family : families::kFamilyRows)
      if (type == family.model_type && holds(family, config)) return &family;
  return nullptr;
}

const Family* projector_of(const json::Value& config) noexcept {
  for (const std::string& type : {config["vision_config"]["model_type"].as_string(), config["model_type"].as_string()})
    for (const Family& family : families::kProjectorRows)
      if (type == family.model_type) return &family;
  return nullptr;
}

std::string projector_names() {
  std::string names;
  for (const Family& family : families::kProjectorRows)
    names += text_of("{}{}", names.empty() ? "" : ", ", family.model_type);
  return names;
}

std::string_view architecture_name(const Family& family) noexcept {
  const std::string_view name = family.architecture;
  return name.substr(0, name.find('/'));
}

const Family* family_of_architecture(std::string_view architecture) noexcept {
  const Family* found = nullptr;
  for (const Family& family : families::kFamilyRows) {
    if (architecture != family.architecture) continue;
    if (found == nullptr || !found->converts_with(families::kTellsPass)) found = &family;
  }
  return found;
}

std::string family_names() {
  std::string names;
  for (const std::string_view type : model_types()) {
    if (!names.empty()) names += ", ";
    names += type;
  }
  return names;
}

std::string families_near(std::string_view model_type) {
  const List<std::string_view> types = model_types();
  return families::names_near({types.data(), types.size()}, model_type, "the guide to formats, under GGUF");
}

std::array<std::string_view, 2> keys_of(const Family& family) noexcept {
  return {architecture_of(family).keys, own_of(family).keys};
}

TensorMatch match_tensor(const Family& family, std::string_view name, const json::Value* config) {
  TensorMatch match;
  const Architecture& architecture = architecture_of(family);
  std::string_view parameter = name.substr(name.rfind('.') + 1);
  if (parameter == "gamma") parameter = "weight";  // norms of TensorFlow's BERT
  if (parameter == "beta") parameter = "bias";
  std::string_view whole = without_prefix(name, architecture.prefixes);
  std::string_view stack = kBlock;
  match.layer = take_layer(whole, architecture.layers, stack, config);
  const bool in_layer = match.layer >= 0;
  const std::string_view of_rows = stack.substr(0, stack.size() - (stack.ends_with(kBlock) ? kBlock.size() : 0));
  const std::string of_stack = text_of("{}{}", in_layer ? of_rows : std::string_view(), whole);
  whole = of_stack;
  const bool is_of_module = parameter == "weight" || parameter == "bias";
  std::optional<Found> found;
  for (const std::string_view rows : {own_of(family).rows, architecture.rows}) {
    if (found) break;
    found = find_row(rows, whole.substr(0, whole.rfind('.')), in_layer, config);
    if (found && (is_of_module || found->target.empty())) continue;
    found = find_row(rows, whole, in_layer, config);
    if (found) parameter = {};
  }
  if (!found) return match;
  match.is_known = true;
  match.kind = kind_named(found->kind, found->target.empty());
  match.expert = found->number;
  if (found->target.empty()) return match;
  match.groups = found->groups;
  match.factors = found->factors;
  match.adds_axis = found->kind.ends_with('u');
  if (found->kind.ends_with('h')) match.half = HalfPrecision::where_asked;
  if (found->kind.ends_with('b')) match.half = HalfPrecision::as_asked;
  if (found->kind.ends_with('H')) match.half = HalfPrecision::for_floats;
  const auto name_of = [&](std::string_view target) {
    return target.empty() ? std::string() : full_name(stack, match.layer, target, parameter);
  };
  std::string_view targets = found->target;
  match.name = name_of(families::first_word(targets));
  while (!targets.empty()) match.more.push_back(name_of(families::first_word(targets)));
  return match;
}

}  // namespace wasmquant::conversion
