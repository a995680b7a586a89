// Keys of single architectures, by the words of architectures.def. Types:
//   u  a whole number · f  a number · b  true or false · p  which layers see a window of keys (layer_types)
//   r  the rotary dimensions of a head: its width times a factor · h  a number for each layer with attention, 0 for the others
//   m  the same for layers of experts, or in models without them only of a feed-forward · l  which layers have linear attention
//   y  the same for layers that see all keys, and num_key_value_heads for those that see a window of them
//   z  a width for each layer, twice as wide for those that share the keys of earlier ones
//   w  the width of LFM2's feed-forward, from that of one without a gate · i  the number of a token, whose text is in NAMES' place
//   d  how many dimensions turn with time, height and width: four numbers · a  how many entries an array has · t  text · s  mean or cls, the number of a pooling
//   o  a number, or how many texts "dense" a list begins with · !  no key: the value that the condition names has none in GGUF
//   c  a whole number, or an array of them · q  for an array of shares, the normal distribution's quantiles
//   e  a number for each layer: the scalar of that name in it
//   v  an array of numbers · x  which of the tower's layers are in a list · n  the text of a number, of those between commas behind '~'
// NAMES of numbers are an expression of config_values.h.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "core/decimal.h"
#include "core/message.h"
#include "families/config_reader.h"
#include "families/layer_kinds.h"
#include "families/word_list.h"
#include "gguf_conversion/architectures/config_values.h"
#include "gguf_conversion/architectures/hyperparameters.h"
#include "gguf_conversion/architectures/key_values.h"

namespace wasmquant::conversion {
namespace {

// [CONDITION]KEY=TYPE?:NAMES~DEFAULT
struct KeyWord {
  explicit KeyWord(std::string_view word) {
    if (const size_t end = word.find(']'); word.starts_with('[')) {
      condition = word.substr(1, end - 1);
      word.remove_prefix(end + 1);
    }
    const size_t equals = word.find('='), colon = word.find(':', equals), tilde = word.find('~', colon);
    key = word.substr(0, equals);
    type = word[equals + 1];
    is_optional = word[colon - 1] == '?';
    names = word.substr(colon + 1, tilde == word.npos ? word.npos : tilde - colon - 1);
    if (tilde != word.npos) value = word.substr(tilde + 1);
    is_constant = names.starts_with('=');
    if (is_constant) value = names.substr(1);
  }

  // Whether it needs what the keys of every architecture say.
  bool is_dependent() const noexcept {
    return key.starts_with("tokenizer.") || std::string_view("prhwimlyze").find(type) != std::string_view::npos;
  }

  std::string_view condition, key, names, value;  // value: a number as text
  char type;
  bool is_optional, is_constant;
};

// The word at a place of "a,b,c", counted from 1; the last one behind them.
std::string_view word_at(std::string_view words, int64_t place) noexcept {
  for (; place > 1 && words.find(',') != words.npos; --place) words.remove_prefix(words.find(',') + 1);
  return words.substr(0, words.find(','));
}

Error refuse(const KeyWord& word, const char* why) {
  constexpr std::string_view kProcessor = "processor.";
  std::string_view names = word.names, name = families::first_word(names);
  const bool is_of_images = name.starts_with(kProcessor);
  return error_at(ErrorCode::argument_invalid,
                  text_of("{}config.json: /{}", is_of_images ? "preprocessor_" : "",
                          name.substr(is_of_images ? kProcessor.size() : 0)),
                  "{}", why);
}

class KeyWriter {
 public:
  KeyWriter(const json::Value& config, const Family& family, const Hyperparameters& parameters,
            std::span<const NamedNumber> numbers, gguf::Metadata& metadata)
      : config_(config, family.converts_with(families::kSees) ? "vision_config" : "text_config"),
        values_(config_),
        architecture_(architecture_name(family)),
        parameters_(parameters),
        numbers_(numbers),
        metadata_(metadata) {}

  Status write(const KeyWord& word) {
    if (!word.condition.empty() && !values_.is_true(word.condition)) return {};
    if (word.type == 'i') {
      write_token(word);
      return {};
    }
    const std::string key = word.key.starts_with("tokenizer.") ? std::string(word.key)
                            : word.key.starts_with(".")        ? std::string(word.key.substr(1))
                                                               : text_of("{}.{}", architecture_, word.key);
    if (word.type == '!') return refuse(word, "GGUF has no key for this value");
    if (word.type == 'a' || word.type == 'o') {
      const json::Value* const list = values_.find(word.names);
      if (list != nullptr && list->is_array()) metadata_.set_u32(key, length_of(list->items(), word.type == 'o'));
      if (word.type == 'a' || (list != nullptr && list->is_array())) return {};
    }
    if (word.type == 'd') {
      metadata_.set(sections_of(values_.find(word.names)).finish(key));
      return {};
    }
    if (word.type == 't' || word.type == 's') return write_text(word, key);
    if (std::string_view("vxnq").find(word.type) != std::string_view::npos) return write_list(word, key);
    if (word.type == 'e') {
      const double otherwise = word.value.empty() ? std::nan("") : parse_decimal(word.value);
      TRY(list, numbers_of_layers(numbers_, word.names, parameters_.layers, otherwise));
      metadata_.set(std::move(list).finish(key));
      return {};
    }
    if (const json::Value* const list = word.type == 'c' ? values_.find(word.names) : nullptr;
        list && list->is_array()) {
      metadata_.set(whole_numbers(list->items()).finish(key));
      return {};
    }
    const auto number = word.is_constant ? parse_decimal(word.value) : values_.number(word.names, word.type == 'b');
    if (!number && word.value.empty()) {
      if (word.is_optional) return {};
      return refuse(word, "the model needs this key");
    }
    if (std::string_view("phmlyz").find(word.type) != std::string_view::npos) return write_layers(word, key);
    const double value = number ? *number : parse_decimal(word.value);
    if (!std::isfinite(value)) return refuse(word, word.type == 'b' ? "has to be true or false" : "has to be a number");
    if (word.type == 'f') metadata_.set_f32(key, static_cast<float>(value));
    if (word.type == 'b') metadata_.set_bool(key, value != 0);
    if (word.type == 'r') metadata_.set_u32(key, static_cast<uint32_t>(value * parameters_.head_width));
    if (word.type != 'u' && word.type != 'w' && word.type != 'o' && word.type != 'c') return {};
    if (value < 0 && word.is_optional) return {};
    constexpr double kLimit = 4294967296.0;
    const auto whole = value >= 0 && value < kLimit ? static_cast<uint32_t>(value) : 0;
    if (whole != value) return refuse(word, "has to be a whole number below 2^32");
    metadata_.set_u32(key, word.type == 'w' ? adjusted_width(config_, whole) : whole);
    return {};
  }

 private:
  Status write_text(const KeyWord& word, const std::string& key) {
    const std::string_view text = word.is_constant ? word.value : config_.text(word.names);
    if (text.empty()) return word.is_optional ? Status() : refuse(word, "the model needs this key");
    if (word.type == 't') {
      metadata_.set_text(key, text);
      return {};
    }
    if (text != "mean" && text != "cls") return refuse(word, "has to be mean or cls");
    metadata_.set_u32(key, text == "mean" ? 1 : 2);  // llama.cpp's enum llama_pooling_type
    return {};
  }

  // Of the key's value, a list or (n) a place in one.
  Status write_list(const KeyWord& word, const std::string& key) {
    const json::Value* const value = values_.find(word.names);
    if (value == nullptr && word.type != 'x')
      return word.is_optional ? Status() : refuse(word, "the model needs this key");
    if (word.type == 'n') {
      metadata_.set_text(key, word_at(word.value, value->as_integer()));
      return {};
    }
    if (word.type == 'q') {
      if (!value->is_array()) return refuse(word, "has to be an array of numbers");
      metadata_.set(quantiles(value->items()).finish(key));
      return {};
    }
    const uint32_t layers = word.type == 'x' ? config_.count("num_hidden_layers|depth").value_or(0) : 0;
    metadata_.set(list_of(value == nullptr ? json::Array() : value->items(), layers).finish(key));
    return {};
  }

  Status write_layers(const KeyWord& word, const std::string& key) {
    const List<std::string_view> kinds = families::layer_kinds(config_, parameters_.layers);
    if (kinds.size() != parameters_.layers)
      return refuse(word, "the model needs layer_types next to this key, with one text for each layer");
    const bool is_flag = word.type == 'p' || word.type == 'l';
    bool is_routed = false;
    for (const std::string_view kind : kinds) is_routed = is_routed || kind == "moe";
    const json::Value* const value = values_.find(word.names);
    const int32_t number = value == nullptr ? 0 : static_cast<int32_t>(value->as_integer());
    const bool is_shared = word.type == 'z';
    const auto windows = static_cast<int32_t>(values_.number("num_key_value_heads", false).value_or(0));
    const double first_sharing = parameters_.layers - values_.number("num_kv_shared_layers", false).value_or(0);
    gguf::ArrayBuilder layers(is_flag ? gguf::ValueType::boolean : gguf::ValueType::i32);
    for (const std::string_view kind : kinds) {
      const bool is_linear = kind == "linear_attention";
      const bool counts = word.type == 'p'   ? kind == "sliding_attention"
                          : word.type == 'l' ? is_linear
                          : word.type == 'm' ? kind == (is_routed ? "moe" : "mlp")
                                             : kind.ends_with("attention") && !is_linear;
      if (is_flag)
        layers.add_u8(counts ? 1 : 0);
      else if (word.type == 'y')
        layers.add_i32(kind == "sliding_attention" ? windows : number);
      else if (is_shared)
        layers.add_i32(static_cast<double>(layers.count()) < first_sharing ? number : 2 * number);
      else
        layers.add_i32(counts ? number : 0);
    }
    metadata_.set(std::move(layers).finish(key));
    return {};
  }

  void write_token(const KeyWord& word) {
    const gguf::KeyValue* const tokens = metadata_.find("tokenizer.ggml.tokens");
    if (tokens == nullptr) return;
    gguf::ArrayView view(tokens);
    for (uint64_t i = 0; i < view.count(); ++i)
      if (view.next_text() == word.names) return metadata_.set_u32(word.key, static_cast<uint32_t>(i));
  }

  const families::ConfigReader config_;
  const ConfigValues values_;
  const std::string_view architecture_;
  const Hyperparameters& parameters_;
  const std::span<const NamedNumber> numbers_;
  gguf::Metadata& metadata_;
};

}  // namespace

Status write_own_keys(const json::Value& config, const Family& family, gguf::Metadata& metadata) {
  const Hyperparameters none;
  KeyWriter writer(config, family, none, {}, metadata);
  for (std::string_view words : keys_of(family))
    while (!words.empty())
      if (const KeyWord word(families::next_word(words)); !word.is_dependent()) TRY_VOID(writer.write(word));
  return {};
}

Status write_dependent_keys(const json::Value& config, const Family& family, const Hyperparameters& parameters,
                            std::span<const NamedNumber> numbers, gguf::Metadata& metadata) {
  KeyWriter writer(config, family, parameters, numbers, metadata);
  for (std::string_view words : keys_of(family))
    while (!words.empty())
      if (const KeyWord word(families::next_word(words)); word.is_dependent()) TRY_VOID(writer.write(word));
  return {};
}

}  // namespace wasmquant::conversion
