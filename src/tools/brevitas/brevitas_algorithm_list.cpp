// The two lists of algorithms of a Brevitas config: their keys, order and requirements (spec 2.3).
#include "config/dialects/dialects.h"
#include "core/message.h"
#include "tools/brevitas/brevitas.h"

namespace wasmquant::config {
namespace {

constexpr Key kPreprocessRows[] = {
    {"name", kString},
    {"trace_model", kBool | kNoEffect, nullptr, "true"},
    {"equalize_iterations", kInteger, nullptr, "20"},
    {"equalize_merge_bias", kBool, nullptr, "true"},
    {"merge_batch_norm", kBool, nullptr, "true"},
    {"channel_splitting_ratio", kNumber, nullptr, "0.0"},
    {"channel_splitting_split_input", kBool | kNoEffect, nullptr, "false"},
};
constexpr Key kEqualizationRows[] = {
    {"name", kString}, {"is_layerwise", kBool, nullptr, "true"}, {"alpha", kNumber, nullptr, "0.5"}};
constexpr Key kGptqOptionRows[] = {{"name", kString}, {"act_order", kBool, nullptr, "false"}};
constexpr Key kGpfqRows[] = {
    {"name", kString},
    {"act_order", kBool, nullptr, "false"},
    {"percentage_of_processed_inputs", kNumber | kNoEffect, nullptr, "1.0"},
};
constexpr Key kGpfa2qRows[] = {
    {"name", kString},
    {"act_order", kBool, nullptr, "false"},
    {"percentage_of_processed_inputs", kNumber | kNoEffect, nullptr, "1.0"},
    {"accumulator_bit_width", kInteger, nullptr, "16"},
};
constexpr Key kPlainRows[] = {{"name", kString}};

constexpr AlgorithmKeys kAlgorithmTable[] = {
    {"Preprocess", true, kPreprocessRows}, {"ActivationEqualization", true, kEqualizationRows},
    {"GPTQ", false, kGptqOptionRows},      {"GPFQ", false, kGpfqRows},
    {"GPFA2Q", false, kGpfa2qRows},        {"CalibrateBatchNorm", false, kPlainRows},
    {"BiasCorrection", false, kPlainRows},
};

// What has no counterpart here (pipeline/calibration/algorithm_list.h).
void refuse_not_implemented(const json::Value& item, const std::string& place, DiagnosticList& out) {
  const std::string& name = item["name"].as_string();
  if (name == "Preprocess" && item["channel_splitting_ratio"].as_number() > 0)
    out.error_in("not-implemented", place, "channel_splitting_ratio", "leave the key out",
                 "channels are not split, because that changes the shapes of the model");
  else if (name == "GPFA2Q")
    out.error_in("not-implemented", place, nullptr, "write GPFQ; Brevitas runs GPFA2Q as GPFQ since 0.12",
                 "the accumulator's bound of GPFA2Q is not applied");
  else if (name == "CalibrateBatchNorm")
    out.error_in("not-implemented", place, nullptr, "remove the entry",
                 "statistics of batch norms are not estimated again");
}

void check_numbers(const json::Value& item, const std::string& where, DiagnosticList& out) {
  for (const char* key : {"alpha", "channel_splitting_ratio", "percentage_of_processed_inputs"}) {
    const json::Value* number = item.find(key);
    if (number != nullptr && !(number->as_number() >= 0 && number->as_number() <= 1))
      out.error_in("value-invalid", where, key, nullptr, "expected a number from 0 to 1");
  }
  for (const char* key : {"equalize_iterations", "accumulator_bit_width"}) {
    const json::Value* number = item.find(key);
    if (number != nullptr && (number->as_integer() < 0 || number->as_integer() > 10'000))
      out.error_in("value-invalid", where, key, nullptr, "expected a number from 0 to 10000");
  }
}

}  // namespace

std::span<const AlgorithmKeys> brevitas_algorithm_keys() noexcept { return kAlgorithmTable; }

void check_brevitas_algorithms(json::Value& list, const std::string& where, bool before, bool has_inputs,
                               DiagnosticList& out) {
  size_t searches = 0, preprocess = SIZE_MAX;
  for (size_t i = 0; i < list.items().size(); ++i) {
    json::Value& item = list.items()[i];
    const std::string place = text_of("{}/{}", where, i);
    const AlgorithmKeys* found = nullptr;
    List<std::string_view> known;
    const std::string name = item["name"].as_string();  // a copy: the item is replaced below
    for (const AlgorithmKeys& row : kAlgorithmTable) {
      if (row.name == name) found = &row;
      if (row.before == before) known.push_back(row.name);
    }
    if (!item.is_object()) {
      out.error_in("type-invalid", place, nullptr, "write {\"name\": \"Preprocess\"}, with the fields that you set",
                   "expected an object with a name, found {} {q}", json::describe(item.kind()), item.as_string());
      continue;
    }
    if (found == nullptr) {
      unknown_word(name, pointer_to(place, "name"), std::span(known.data(), known.size()), out);
      continue;
    }
    item = apply_defaults(item, place, found->keys, out);
    if (found->before != before) {
      out.error_in("value-invalid", place, "name",
                   before ? "it belongs to algo_config" : "it belongs to pre_quant_opt_config",
                   "{} does not belong in this list", name);
    }
    refuse_not_implemented(item, place, out);
    if (name == "Preprocess" && preprocess == SIZE_MAX) preprocess = i;
    const bool is_search = name == "GPTQ" || name == "GPFQ" || name == "GPFA2Q";
    if (is_search && searches++ != 0)
      out.error_in("value-invalid", place, nullptr, nullptr, "only one of GPTQ, GPFQ and GPFA2Q can be applied");
    if (is_search && name != "GPTQ" && !has_inputs)
      out.error_in("key-missing", place, nullptr, "add input_tensors to global_quant_config",
                   "{} needs quantized inputs", name);
    if (name == "ActivationEqualization") {
      if (!item["is_layerwise"].as_bool())
        out.error_in("value-invalid", place, "is_layerwise", nullptr, "the backend is layerwise");
      else
        out.add({Severity::note, "equalization-folded", place,
                 "model files cannot store a multiplication before a layer, so the scales are folded into the layer "
                 "that produces its input; layers that read the same input share them",
                 ""});
    }
    check_numbers(item, place, out);
  }
  if (before && !list.items().empty() && preprocess != 0)
    out.warning_in("preprocess-order", where, nullptr, "the other steps expect a model that it has gone through",
                   preprocess == SIZE_MAX ? "the list has no Preprocess" : "Preprocess is not the first of the list");
}

}  // namespace wasmquant::config
