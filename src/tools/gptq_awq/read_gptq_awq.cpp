// The quantization_config of GPTQ, AWQ and fp8 models (formats B.2, B.3; quark 6.7): one scheme for every layer, a list
// of unquantized layers, and in GPTQ's `dynamic` other bits for layers matched by regular expressions.
// Many versions of other programs write these blocks: unknown keys are warnings, not errors.
#include "config/dialects/dialects.h"
#include "config/reading/key_row.h"
#include "core/message.h"
#include "tools/gptq_awq/gptq_awq.h"

namespace wasmquant::config {
namespace {

constexpr Key kOverrideRows[] = {
    {"bits", kInteger}, {"group_size", kInteger}, {"sym", kBool}, {"desc_act", kBool}, {"damp_percent", kNumber}};
constexpr Keys kOverride(kOverrideRows, true);
constexpr Key kGptqRows[] = {
    {"quant_method", kString, nullptr, "\"gptq\""},
    {"bits", kInteger, nullptr, "4"},
    {"group_size", kInteger, nullptr, "128"},
    {"desc_act", kBool, nullptr, "false"},
    {"sym", kBool, nullptr, "true"},
    {"lm_head", kBool, nullptr, "false"},
    {"dynamic", kObject | kMap, nullptr, "{}", nullptr, &kOverride},
    {"checkpoint_format", kString | kNoEffect, nullptr, "\"gptq\"", "gptq|gptq_v2|gptq_p|marlin"},
    {"damp_percent", kNumber, nullptr, "0.01"},
    {"static_groups", kBool, nullptr, "false"},
    {"true_sequential", kBool, nullptr, "true"},
    {"pack_dtype", kString | kNoEffect, nullptr, "\"int32\""},
    {"format", kString | kNoEffect},
    {"meta", kObject | kNoEffect},
    {"dataset", kString | kArray | kNoEffect},
    {"tokenizer", kString | kNoEffect},
    {"batch_size", kInteger | kNoEffect},
    {"block_name_to_quantize", kString | kNoEffect},
    {"modules_in_block_to_quantize", kArray | kNoEffect},
    {"model_seqlen", kInteger | kNoEffect},
    {"use_exllama", kBool | kNoEffect},
    {"exllama_config", kObject | kNoEffect},
    {"max_input_length", kInteger | kNoEffect},
    {"backend", kString | kNoEffect},
    {"cache_block_outputs", kBool | kNoEffect},
    {"module_name_preceding_first_block", kArray | kString | kNoEffect},
    {"pad_token_id", kInteger | kNoEffect},
    {"use_cuda_fp16", kBool | kNoEffect},
    {"disable_exllama", kBool | kNoEffect},
    {"model_name_or_path", kString | kNoEffect},
    {"model_file_base_name", kString | kNoEffect},
    {"is_marlin_format", kBool | kNoEffect},
    {"indivisible_groups", kString, nullptr, nullptr, "error|fallback"},
    {"dialect", kString},
#define WASMQUANT_EVERY_DIALECT_KEY WASMQUANT_KEY_ROW
#include "config/dialects/every_dialect_keys.def"
};
constexpr Key kAwqRows[] = {
    {"quant_method", kString, nullptr, "\"awq\""},
    {"bits", kInteger, "w_bit", "4"},
    {"group_size", kInteger, "q_group_size", "128"},
    {"zero_point", kBool, nullptr, "true"},
    {"version", kString | kNoEffect, nullptr, "\"gemm\""},
    {"modules_to_not_convert", kArray | kNames, nullptr, "[]"},
    {"lm_head", kBool, nullptr, "false"},
    {"backend", kString | kNoEffect},
    {"do_fuse", kBool | kNoEffect},
    {"exllama_config", kObject | kNoEffect},
    {"fuse_max_seq_len", kInteger | kNoEffect},
    {"modules_to_fuse", kObject | kNoEffect},
    {"pack_method", kString | kNoEffect},
    {"indivisible_groups", kString, nullptr, nullptr, "error|fallback"},
    {"dialect", kString},
#define WASMQUANT_EVERY_DIALECT_KEY WASMQUANT_KEY_ROW
#include "config/dialects/every_dialect_keys.def"
};
constexpr Key kFp8Rows[] = {
    {"quant_method", kString, nullptr, "\"fp8\""},
    {"activation_scheme", kString, nullptr, nullptr, "static|dynamic"},
    {"weight_block_size", kArray},
    {"modules_to_not_convert", kArray | kNames, "ignored_layers", "[]"},
    {"fmt", kString, nullptr, "\"e4m3\"", "e4m3|float8_e4m3fn"},
    {"scale_fmt", kString, nullptr, nullptr, "ue8m0"},
    {"kv_cache_scheme", kObject | kString},
    {"dialect", kString},
#define WASMQUANT_EVERY_DIALECT_KEY WASMQUANT_KEY_ROW
#include "config/dialects/every_dialect_keys.def"
};

constexpr Keys kGptq(kGptqRows, true), kAwq(kAwqRows, true), kFp8(kFp8Rows, true);

class HfParser {
 public:
  HfParser(Dialect dialect, const std::string& where, DiagnosticList& out) : out_(out) {
    config_.dialect = dialect;
    config_.where = where;
    config_.weight_key = dialect == Dialect::fp8 ? "weight_block_size" : "bits";
    config_.resolution = Resolution::replace;
    config_.global.where = where;
  }

  Config parse(const json::Value& value) {
    config_.source = apply_defaults(value, config_.where, info_of(config_.dialect).keys(), out_);
    const json::Value& source = config_.source;
    if (config_.dialect == Dialect::fp8)
      read_fp8(source);
    else
      config_.global.weight = integers(source, source, config_.where);
    if (config_.dialect == Dialect::gptq) read_gptq(source);
    const json::Array& kept = source["modules_to_not_convert"].items();
    for (size_t i = 0; i < kept.size(); ++i) {
      check_pattern(kept[i].as_string(), text_of("{}/{}", at("modules_to_not_convert"), i), out_);
      // AutoAWQ searches the text anywhere in the name; the others match a module of that name at any depth.
      exclude(text_of(config_.dialect == Dialect::awq ? "*{}*" : "{}", as_glob(kept[i].as_string())),
              text_of("{}/{}", at("modules_to_not_convert"), i));
      if (config_.dialect == Dialect::fp8)
        exclude(text_of("*.{}", as_glob(kept[i].as_string())), text_of("{}/{}", at("modules_to_not_convert"), i));
    }
    if (config_.dialect != Dialect::gptq) exclude_head(source);
    return std::move(config_);
  }

 private:
  std::string at(const char* key) const { return pointer_to(config_.where, key); }

  static std::string as_glob(std::string_view name) {
    std::string text;
    for (const char c : name) {
      if (c == '*' || c == '?' || c == '[') {
        text += text_of("[{}]", std::string_view(&c, 1));
      } else {
        text += c;
      }
    }
    return text;
  }

  void exclude(std::string pattern, std::string where) {
    config_.exclude.push_back(std::move(pattern));
    config_.exclude_where.push_back(std::move(where));
  }

  // No loader of these blocks quantizes the head unless the block says so, which fp8's cannot. Source: transformers,
  // get_keys_to_not_convert; vLLM, AutoAWQConfig and Fp8Config.get_quant_method.
  void exclude_head(const json::Value& source) {
    if (source["lm_head"].as_bool()) return;
    const std::string where = at(config_.dialect == Dialect::awq ? "lm_head" : "modules_to_not_convert");
    for (const char* pattern : {"lm_head", "*.lm_head"}) exclude(pattern, where);
  }

  // Symmetric: a scale of amax / ((2^b - 1) / 2) around the middle code, like Quark's signed integers.
  Stages integers(const json::Value& own, const json::Value& base, const std::string& where) {
    const size_t errors_before = out_.errors();
    const auto choice = [&](const char* key) -> const json::Value& {
      return own[key].is_null() ? base[key] : own[key];
    };
    const bool is_awq = config_.dialect == Dialect::awq;
    QuantizationSpec spec;
    spec.symmetric = is_awq ? !base["zero_point"].as_bool() : choice("sym").as_bool();
    const int64_t bits = choice("bits").as_integer(), group = choice("group_size").as_integer();
    if (bits < 2 || bits > 8 || (is_awq && bits != 4))
      out_.error_in("value-invalid", where, "bits", is_awq ? "4" : "2, 3, 4 or 8", "{} has no codes of {} bits",
                    name_of(config_.dialect), bits);
    else if (const auto dtype = integer_dtype(bits, spec.symmetric, pointer_to(where, "bits"), out_))
      spec.dtype = *dtype;
    set_rows(spec, true);
    if (group != -1) {
      spec.qscheme = QScheme::per_group;
      spec.observer = ObserverId::PerGroupMinMaxObserver;
      spec.ch_axis = -1;
      spec.group_size = group;
      if (group < 1 || group > int64_t{1} << 31)
        out_.error_in("value-invalid", where, "group_size", "a positive number, or -1 for whole rows",
                      "group_size {} is not a valid group size", group);
    }
    if (out_.errors() != errors_before) return {};
    return Stages{spec};
  }

  void read_gptq(const json::Value& source) {
    if (!source["lm_head"].as_bool()) exclude("lm_head", at("lm_head"));
    for (const auto& [key, value] : source["dynamic"].members()) {
      const std::string where = pointer_to(at("dynamic"), key);
      const bool skips = key.starts_with("-:");
      const std::string pattern =
          text_of("re:{}", std::string_view(key).substr(skips || key.starts_with("+:") ? 2 : 0));
      check_pattern(pattern, where, out_);
      if (skips) {
        exclude(pattern, where);
        continue;
      }
      LayerConfig layer;
      layer.where = where;
      layer.weight = integers(value, source, where);
      config_.layer.emplace_back(pattern, std::move(layer));
    }
    out_.warning_in("not-applied", config_.where, nullptr,
                    "for error feedback write the config in Quark's keys (wasmquant config convert --to quark) and add "
                    "\"algo_config\": [{\"name\": \"gptq\"}] and calibration",
                    "weights are rounded to nearest: GPTQ's error feedback is not applied, and damp_percent, desc_act, "
                    "static_groups and true_sequential have no effect");
  }

  void read_fp8(const json::Value& source) {
    QuantizationSpec spec;
    spec.dtype = Dtype::fp8_e4m3;
    const json::Value& block = source["weight_block_size"];
    if (!block.is_null()) {
      spec.qscheme = QScheme::per_block;
      spec.observer = ObserverId::PerBlock2DMinMaxObserver;
      if (!set_block(spec, block.items()))
        out_.error_in("value-invalid", config_.where, "weight_block_size", nullptr,
                      "expected two sizes, such as [128, 128]");
    }
    config_.global.weight = Stages{spec};
    if (!source["activation_scheme"].is_null()) {
      QuantizationSpec input;
      input.dtype = Dtype::fp8_e4m3;
      input.is_dynamic = source["activation_scheme"].as_string() == "dynamic";
      if (input.is_dynamic && spec.block_columns > 0) {
        input.qscheme = QScheme::per_group;
        input.observer = default_observer_for(input.qscheme, false);
        input.ch_axis = -1;
        input.group_size = spec.block_columns;
      }
      config_.global.input_tensors = Stages{input};
    }
    const json::Value& cache = source["kv_cache_scheme"];
    if (cache["type"].as_string() == "float" && cache["num_bits"].as_integer() == 8 && !cache["dynamic"].as_bool()) {
      QuantizationSpec keys;
      keys.dtype = Dtype::fp8_e4m3;
      config_.cache = Stages{keys};
    }
    if (!source["scale_fmt"].is_null())
      out_.warning_in("not-applied", config_.where, "scale_fmt", nullptr, "scales are float32, not powers of two");
  }

  DiagnosticList& out_;
  Config config_;
};

template <Dialect dialect>
Config read(const json::Value& value, const std::string& where, DiagnosticList& out) {
  return HfParser(dialect, where, out).parse(value);
}

}  // namespace

constinit const DialectInfo gptq_dialect{
    .keys = []() noexcept -> const Keys& { return kGptq; },
    .read = read<Dialect::gptq>,
    .write = write_gptq,
    .own_keys = "desc_act|checkpoint_format",
    .leaves_head = true,
};
constinit const DialectInfo awq_dialect{
    .keys = []() noexcept -> const Keys& { return kAwq; },
    .read = read<Dialect::awq>,
    .write = write_awq,
    .own_keys = "zero_point",
    .leaves_head = true,
};
constinit const DialectInfo fp8_dialect{
    .keys = []() noexcept -> const Keys& { return kFp8; },
    .read = read<Dialect::fp8>,
    .own_keys = "weight_block_size|activation_scheme",
    .leaves_head = true,
};

}  // namespace wasmquant::config
