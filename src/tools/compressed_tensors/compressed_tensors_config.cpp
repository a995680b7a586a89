// The quantization_config of compressed-tensors: groups of targets with one scheme each (formats B.1). A target is a
// module's name, `re:` and a regular expression, or a class; names go before expressions, and those before classes.

#include "config/dialects/dialects.h"
#include "config/match/name_match.h"
#include "config/reading/key_row.h"
#include "core/message.h"
#include "tools/compressed_tensors/compressed_tensors_arguments.h"

namespace wasmquant::config {
namespace {

// Values of `strategy`.
constexpr char kStrategies[] = "tensor|channel|group|block|token|tensor_group|attn_head";

// Strict, like its own reader.
constexpr Key kArgumentRows[] = {
    {"num_bits", kInteger, nullptr, "8"},
    {"type", kString, nullptr, "\"int\"", "int|float"},
    {"symmetric", kBool, nullptr, "true"},
    {"strategy", kString, nullptr, nullptr, kStrategies},
    {"group_size", kInteger},
    {"block_structure", kArray | kString},
    {"dynamic", kBool | kString, nullptr, "false", "local"},
    {"actorder", kString | kBool},
    {"scale_dtype", kString},
    {"zp_dtype", kString | kNoEffect},
    {"observer", kString},
    {"observer_kwargs", kObject | kNoEffect, nullptr, "{}"},
};
constexpr Keys kArguments{kArgumentRows, "QuantizationArgs"};
constexpr Key kGroupRows[] = {
    {"targets", kArray | kNames, nullptr, "[]"},
    {"weights", kObject, nullptr, nullptr, nullptr, &kArguments},
    {"input_activations", kObject, nullptr, nullptr, nullptr, &kArguments},
    {"output_activations", kObject, nullptr, nullptr, nullptr, &kArguments},
    {"format", kString | kNoEffect},
};
constexpr Keys kGroup{kGroupRows, "QuantizationScheme"};
constexpr Key kBlockRows[] = {
    {"quant_method", kString, nullptr, "\"compressed-tensors\""},
    {"dialect", kString},
    {"format", kString | kNoEffect},
    {"quantization_status", kString | kNoEffect},
    {"config_groups", kObject | kMap, nullptr, "{}", nullptr, &kGroup},
    {"ignore", kArray | kNames, nullptr, "[]"},
    {"kv_cache_scheme", kObject, nullptr, nullptr, nullptr, &kArguments},
    {"global_compression_ratio", kNumber | kNoEffect},
    {"sparsity_config", kObject},
    {"transform_config", kObject},
    {"version", kString | kNoEffect},
    {"indivisible_groups", kString, nullptr, nullptr, "error|fallback"},
#define WASMQUANT_EVERY_DIALECT_KEY WASMQUANT_KEY_ROW
#include "config/dialects/every_dialect_keys.def"
};
constexpr Keys kBlock(kBlockRows, true);

// A PyTorch class begins with a capital letter and has no dots; module names do not look like that.
bool is_class(std::string_view target) noexcept {
  return !is_regex(target) && target.find('.') == std::string_view::npos && !target.empty() && target[0] >= 'A' &&
         target[0] <= 'Z';
}

// QuantizationArgs to a spec, as the library's own reader understands them.
class ArgumentsReader {
 public:
  ArgumentsReader(const json::Value& value, const std::string& where, bool is_weight, DiagnosticList& out)
      : value_(value), where_(where), is_weight_(is_weight), out_(out) {}

  Stages read() {
    const size_t errors_before = out_.errors();
    QuantizationSpec spec;
    const int64_t bits = value_["num_bits"].as_integer();
    const bool is_float = value_["type"].as_string() == "float";
    spec.symmetric = value_["symmetric"].as_bool();
    spec.is_dynamic = !is_weight_ && (value_["dynamic"].as_bool() || value_["dynamic"].is_string());
    if (!is_float) {
      if (const auto dtype = integer_dtype(bits, spec.symmetric, pointer_to(where_, "num_bits"), out_))
        spec.dtype = *dtype;
    } else if (bits == 8 || bits == 4) {
      spec.dtype = bits == 8 ? Dtype::fp8_e4m3 : Dtype::fp4;
    } else {
      out_.error_in("not-implemented", where_, "num_bits", "8 is fp8 e4m3, 4 is fp4 e2m1",
                    "floats of {} bits are not supported", bits);
    }
    if (is_float && !spec.symmetric)
      out_.error_in("value-invalid", where_, "symmetric", "set it to true", "floats have no zero point");
    read_strategy(spec);
    read_order();
    if (const std::string& observer = value_["observer"].as_string();
        !observer.empty() && observer.find("minmax") == std::string::npos) {
      if (is_weight_ && observer == "mse" && spec.qscheme == QScheme::per_tensor)
        spec.observer = ObserverId::PerTensorMSEObserver;
      out_.warning_in("not-applied", where_, "observer", "use minmax",
                      "the search of compressed-tensors' observer {q} is not available here", observer);
    }
    if (out_.errors() != errors_before) return {};
    return Stages{spec};
  }

 private:
  // `true` means group.
  void read_order() {
    const json::Value& order = value_["actorder"];
    const std::string& name = order.as_string();
    if (order.is_null() || (order.is_bool() && !order.as_bool()) || (is_weight_ && name == "static")) return;
    out_.warning_in("not-applied", where_, "actorder", "leave the key out",
                    is_weight_ ? "weights are rounded to nearest in their own order"
                               : "it is for weights: activations have no order");
  }

  void read_strategy(QuantizationSpec& spec) {
    const json::Value& group = value_["group_size"];
    std::string_view strategy = value_["strategy"].as_string();
    if (strategy.empty())  // inferred as its reader does
      strategy = group.is_null() ? "tensor" : group.as_integer() == -1 ? "channel" : "group";
    spec.qscheme = QScheme::per_tensor;
    set_rows(spec, strategy == "channel" || strategy == "token");
    if (strategy == "token") spec.ch_axis = 1;  // a row of [tokens, features]: Quark counts the axis that is reduced
    if (strategy == "group" || strategy == "tensor_group") {
      spec.qscheme = QScheme::per_group;
      spec.ch_axis = -1;
      spec.group_size = group.as_integer();
      spec.observer = default_observer_for(spec.qscheme, info_of(spec.dtype).is_integer);
      if (spec.group_size < 1 || spec.group_size > int64_t{1} << 31)
        out_.error_in("value-invalid", where_, "group_size", "commonly 32, 64 or 128", "strategy {} needs a group size",
                      strategy);
      if (spec.dtype == Dtype::fp4 || value_["scale_dtype"].as_string().find("uint8") != std::string::npos) {
        spec.observer = ObserverId::PerBlockMXObserver;
        spec.scale_format = strategy == "tensor_group" ? ScaleFormat::e4m3 : ScaleFormat::e8m0;
      }
    } else if (strategy == "block") {
      const json::Array& block = value_["block_structure"].items();
      spec.qscheme = QScheme::per_block;
      spec.observer = ObserverId::PerBlock2DMinMaxObserver;
      if (!set_block(spec, block))
        out_.error_in("value-invalid", where_, "block_structure", nullptr, "expected two sizes, such as [128, 128]");
    } else if (strategy == "attn_head") {
      out_.add({is_weight_ ? Severity::error : Severity::warning,
                is_weight_ ? DiagnosticCode("not-implemented") : DiagnosticCode("not-applied"),
                pointer_to(where_, "strategy"), "one scale per attention head is not supported here", ""});
    }
    if (strategy != "block" && !value_["block_structure"].is_null())
      out_.warning_in("key-ignored", where_, "block_structure", "leave the key out",
                      "it only applies to strategy block");
    if (!value_["scale_dtype"].is_null() && spec.scale_format == ScaleFormat::float32)
      out_.warning_in("key-ignored", where_, "scale_dtype", "leave the key out",
                      "scales are stored in the dtype of the weight; only groups of uint8 scales are read as e8m0");
    if (is_weight_ && !(value_["dynamic"].is_bool() && !value_["dynamic"].as_bool()))
      out_.warning_in("key-ignored", where_, "dynamic", "leave the key out",
                      "weights are quantized once, with scales that are stored");
    if (spec.qscheme != QScheme::per_group && !group.is_null() && group.as_integer() > 0)
      out_.error_in("value-invalid", where_, "group_size", "set it to null",
                    "group_size has no effect with strategy {}", strategy);
  }

  const json::Value& value_;
  const std::string& where_;
  const bool is_weight_;
  DiagnosticList& out_;
};

class CompressedTensorsParser {
 public:
  explicit CompressedTensorsParser(DiagnosticList& out) : out_(out) {}

  Config parse(const json::Value& value, const std::string& where) {
    config_.source = apply_defaults(value, where, kBlock, out_);
    config_.dialect = Dialect::compressed_tensors;
    config_.where = where;
    config_.weight_key = "weights";
    config_.resolution = Resolution::replace;
    const json::Value& source = config_.source;

    const std::string groups = pointer_to(where, "config_groups");
    for (const auto& [name, group] : source["config_groups"].members()) read_group(group, pointer_to(groups, name));
    if (value.is_object() && source["config_groups"].members().empty())
      out_.error_in("key-missing", where, nullptr,
                    "add {\"group_0\": {\"targets\": [\"Linear\"], \"weights\": {\"num_bits\": 8}}}",
                    "config_groups is missing or empty");

    const json::Array& ignore = source["ignore"].items();
    for (size_t i = 0; i < ignore.size(); ++i) {
      const std::string& entry = ignore[i].as_string();
      const std::string place = text_of("{}/ignore/{}", where, i);
      check_pattern(entry, place, out_);
      if (is_class(entry)) {
        ignored_classes_.push_back(entry);
        continue;
      }
      config_.exclude.push_back(entry);
      config_.exclude_where.push_back(place);
    }
    for (const std::string& type : ignored_classes_) {
      List<std::pair<std::string, LayerConfig>> kept;
      for (auto& entry : config_.layer_type)
        if (entry.first != type) kept.push_back(std::move(entry));
      config_.layer_type = std::move(kept);
    }
    config_.cache = arguments(source["kv_cache_scheme"], pointer_to(where, "kv_cache_scheme"), false);
    for (const char* key : {"sparsity_config", "transform_config"})
      if (!source[key].members().empty())
        warn_not_applied(out_, pointer_to(where, key), "weights are neither pruned nor transformed here");
    return std::move(config_);
  }

 private:
  void read_group(const json::Value& group, const std::string& where) {
    LayerConfig layer;
    layer.where = where;
    layer.weight = arguments(group["weights"], pointer_to(where, "weights"), true);
    layer.input_tensors = arguments(group["input_activations"], pointer_to(where, "input_activations"), false);
    layer.output_tensors = arguments(group["output_activations"], pointer_to(where, "output_activations"), false);
    const json::Array& targets = group["targets"].items();
    if (targets.empty())
      out_.error_in("key-missing", where, nullptr, "[\"Linear\"] for every linear layer", "a group needs targets");
    for (size_t i = 0; i < targets.size(); ++i) {
      const std::string& target = targets[i].as_string();
      check_pattern(target, text_of("{}/targets/{}", where, i), out_);
      (is_class(target) ? config_.layer_type : config_.layer).emplace_back(target, layer);
    }
  }

  Stages arguments(const json::Value& value, const std::string& where, bool is_weight) const {
    return value.is_null() ? Stages() : ArgumentsReader(value, where, is_weight, out_).read();
  }

  DiagnosticList& out_;
  Config config_;
  List<std::string> ignored_classes_;
};

}  // namespace

constinit const DialectInfo compressed_tensors_dialect{
    .keys = []() noexcept -> const Keys& { return kBlock; },
    .read = [](const json::Value& value, const std::string& where,
               DiagnosticList& out) { return CompressedTensorsParser(out).parse(value, where); },
    .write = write_compressed_tensors,
    .own_keys = "config_groups",
    .has_scale_formats = true,
};

}  // namespace wasmquant::config
