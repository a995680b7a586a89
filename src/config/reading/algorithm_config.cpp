// The checks of an algorithm config: its values, those between them, and against the weight spec.
#include "config/reading/algorithm_config.h"

#include <algorithm>

#include "config/spec/algorithm_table.h"
#include "config/spec/vocabulary.h"
#include "core/message.h"

namespace wasmquant::config {
namespace {

constexpr int64_t kMostRefinements = 16;

List<std::string_view> names_of_all() {
  List<std::string_view> out;
  for (const AlgorithmInfo& row : kAlgorithms)
    for (auto i = std::count(row.names.begin(), row.names.end(), '|'); i >= 0; --i)
      out.push_back(word_at(row.names, static_cast<size_t>(i)));
  return out;
}

// What a field of this kind takes, if `value` is not of it.
std::string_view expected_kind(char kind, const json::Value& value) noexcept {
  switch (kind) {
    case 'b':
      return value.is_bool() ? "" : "true or false";
    case 'i':
      return value.is_integer() ? "" : "an integer";
    case 'n':
      return value.is_number() ? "" : "a number";
    case 's':
      return value.is_string() ? "" : "a string";
    case 'a':
      return value.is_array() ? "" : "an array";
    default:
      return value.is_object() ? "" : "an object";
  }
}

// Which fields an algorithm has is in its row of algorithms.def.
void check_fields(const json::Value& value, const std::string& where, std::string_view fields, DiagnosticList& out) {
  std::string without_effect;
  for (const auto& [key, member] : value.members()) {
    if (key == "name" || member.is_null()) continue;
    List<std::string_view> names;
    AlgorithmField found;
    if (index_in(key, kIgnoredAlgorithmFields) >= 0) found = {'i', false, key};
    for (std::string_view rest = fields; !rest.empty();) {
      const AlgorithmField field = next_field(rest);
      names.push_back(field.name);
      if (field.name == key) found = field;
    }
    if (found.kind == 0) {
      unknown_key(key, where, std::span(names.data(), names.size()), Severity::error, out);
      continue;
    }
    const std::string_view expected = expected_kind(found.kind, member);
    if (!expected.empty())
      out.error_in("type-invalid", where, key.c_str(), nullptr, "expected {}, found {}", expected,
                   json::describe(member.kind()));
    if (found.has_effect) continue;
    if (!without_effect.empty()) without_effect += ", ";
    without_effect += key;
  }
  if (!without_effect.empty())
    out.add({Severity::note, "no-effect", where,
             text_of("has no effect here, because it follows from the model or the weight's spec: {}", without_effect),
             ""});
}

class Checker {
 public:
  Checker(const json::Value& value, std::string where, const LayerConfig& weights, DiagnosticList& out)
      : value_(value), where_(std::move(where)), weights_(weights), out_(out) {}

  void check(bool cache_before_rope) {
    const json::Value* name = value_.find("name");
    if (name == nullptr || !name->is_string()) {
      const List<std::string_view> names = names_of_all();
      out_.error("key-missing", where_, "an algorithm config is an object with a name",
                 text_of("one of: {}", joined(std::span(names.data(), names.size()))));
      return;
    }
    const AlgorithmInfo* row = nullptr;
    for (const AlgorithmInfo& each : kAlgorithms)
      if (index_in(name->as_string(), each.names) >= 0) row = &each;
    if (row == nullptr) {
      const List<std::string_view> names = names_of_all();
      unknown_word(name->as_string(), pointer_to(where_, "name"), std::span(names.data(), names.size()), out_);
      return;
    }
    check_fields(value_, where_, row->fields, out_);
    const std::string_view first = word_at(row->names, 0);
    if (first == "rotation") check_rotation(name->as_string() == "quarot", cache_before_rope);
    if (const json::Value& size = value_["block_size"]; size.is_integer() && size.as_integer() <= 0)
      problem("block_size", "expected a positive number of columns");
    if (const json::Value& count = value_["equalize_iterations"]; count.is_integer() && count.as_integer() < 0)
      problem("equalize_iterations", "expected a number that is not negative");
    if (const json::Value& loss = value_["compute_scale_loss"];
        loss.is_string() && index_in(loss.as_string(), "MSE|MAE|RMSE") < 0)
      problem("compute_scale_loss", "expected MSE, MAE or RMSE");
    if (const json::Value& choice = value_["on_worse"];
        choice.is_string() && index_in(choice.as_string(), "keep|nearest") < 0)
      problem("on_worse", "expected keep or nearest");
    if (const json::Value& choice = value_["choose"];
        choice.is_string() && index_in(choice.as_string(), "given|best") < 0)
      problem("choose", "expected given or best");
    if (const json::Value& turns = value_["refine"];
        turns.is_integer() && (turns.as_integer() < 0 || turns.as_integer() > kMostRefinements))
      problem("refine", "expected a number of turns from 0 to 16");
    for (const char* key : {"alpha", "damp_percent", "smooth_alpha"})
      if (const json::Value& number = value_[key]; number.is_number() && !(number.as_number() >= 0))
        problem(key, "expected a number that is not negative");
    if (const json::Value& damping = value_["damp_percent"]; damping.is_number() && damping.as_number() > 1)
      problem("damp_percent", "expected a share of the mean of the Hessian's diagonal, from 0 to 1", "0.01 is usual");
    if (row->is_calibrated) check_against_weights();
    if (!row->is_applied)
      out_.error_in("not-implemented", where_, nullptr, "remove the entry, or use gptq or awq", "there is no {q} here",
                    name->as_string());
  }

 private:
  bool on(const char* key, bool standard = false) const {
    const json::Value& value = value_[key];
    return value.is_bool() ? value.as_bool() : standard;
  }
  bool given(const char* key) const { return !value_[key].is_null(); }
  void problem(const char* key, const char* message, const char* hint = nullptr) {
    out_.error_in("value-invalid", where_, key, hint, message);
  }

  // Name "quarot" stands for all four rotations.
  void check_rotation(bool all, bool cache_before_rope) {
    const json::Value& layers = value_["scaling_layers"];
    if (!layers.is_object())
      out_.error_in("key-missing", where_, nullptr, nullptr, "a rotation needs scaling_layers");
    else
      for (const char* part : {"first_layer", "middle_layers", "last_layer"})
        if (layers.find(part) == nullptr)
          out_.error_in("key-missing", where_, "scaling_layers", nullptr, "{} is missing", part);
    const bool r1 = on("r1", true), r3 = on("r3", all), r4 = on("r4", all);
    if (given("rotation_size") && (on("random") || on("random_r1") || on("random_r2")))
      problem("rotation_size", "random rotations have the size of the model");
    if (given("online_r1_rotation") && !r1) problem("online_r1_rotation", "r1 is off");
    if (given("online_config") && !r1 && !r4) problem("online_config", "only r1 and r4 can be online");
    if (given("optimized_rotation_path"))
      out_.error_in("not-implemented", where_, "optimized_rotation_path", "remove the key",
                    "rotations that were trained elsewhere are not read");
    if (on("trainable") && r3) problem("trainable", "r3 cannot be trained");
    if (on("train_smooth") && !on("trainable")) problem("train_smooth", "needs trainable");
    if (on("train_smooth") && !given("smooth_positions")) problem("train_smooth", "needs smooth_positions");
    if (r3 && cache_before_rope)
      out_.warning_in("rotation-kv-cache", where_, "r3", "set kv_cache_post_rope to true",
                      "r3 rotates keys after the rotary embedding, the kv cache is quantized before it");
  }

  // Older configs repeat bits, group size and symmetry, which now come from the weight spec.
  void check_against_weights() {
    if (weights_.weight.empty()) return;
    const QuantizationSpec& spec = weights_.weight.front();
    const auto contradicts = [&](const char* key, bool differs) {
      if (!value_[key].is_null() && differs)
        out_.error_in("contradiction", where_, key, "leave the key out",
                      "the weight spec differs, and it is the one that counts");
    };
    contradicts("bit", value_["bit"].as_integer() != code_bits_of(spec));
    contradicts("sym", on("sym") != spec.symmetric);
    contradicts("group_size",
                spec.qscheme == QScheme::per_group && value_["group_size"].as_integer() != spec.group_size);
  }

  const json::Value& value_;
  const std::string where_;
  const LayerConfig& weights_;
  DiagnosticList& out_;
};

void use_known_name(json::Value& item) {
  for (auto& [key, name] : item.members())
    if (key == "name" && name.is_string())
      for (const std::string_view known : names_of_all())
        if (is_same_word(name.as_string(), known)) name = known;
}

}  // namespace

json::Value with_known_algorithm_names(json::Value config) {
  for (auto& [key, list] : config.members()) {
    if (key != "algo_config" && key != "pre_quant_opt_config") continue;
    use_known_name(list);
    for (json::Value& item : list.items()) use_known_name(item);
  }
  return config;
}

void check_algorithms(const ObjectReader& in, const char* key, const LayerConfig& weights, bool cache_before_rope) {
  const json::Value* value = in.find(key);
  if (value == nullptr) return;
  const auto check = [&](const json::Value& item, const std::string& where) {
    Checker(item, where, weights, in.out()).check(cache_before_rope);
  };
  if (value->is_object()) check(*value, in.at(key));
  for (size_t i = 0; i < value->items().size(); ++i) check(value->items()[i], text_of("{}/{}", in.at(key), i));
}

}  // namespace wasmquant::config
