// The rows of all presets, and the texts of their configs.
#include "config/presets.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "config/dialects/dialects.h"
#include "config/match/edit_distance.h"
#include "config/parse.h"
#include "config/reading/object_reader.h"
#include "config/spec/vocabulary.h"
#include "core/list.h"
#include "core/message.h"

namespace wasmquant::config {
namespace {

#define WASMQUANT_GROUP(dtype, size, symmetric) \
  R"({"dtype":")" dtype R"(","qscheme":"per_group","ch_axis":-1,"group_size":)" size R"(,"symmetric":)" symmetric "}"
// Symmetric integers of at most 4 bits, where the extreme of each scale is worth a code (ScaleSign). With 8 bits it is
// worth half of 1/255, and runtimes that multiply integers keep the positive scales that they were written for.
#define WASMQUANT_SIGNED_GROUP(dtype, size, refit)                                   \
  R"({"dtype":")" dtype R"(","qscheme":"per_group","ch_axis":-1,"group_size":)" size \
  R"(,"symmetric":true,"scale_sign":"signed")" refit "}"
// With 3 bits a fit of the scale to its codes is worth nearly half of what rounding costs; with 2 it is worth nothing (groups of
// 32 of tests/files/tiny-llama: 1.6387 to 1.5796 bits per byte, and 1.7413 to 1.7519; with gptq 1.4743 and 1.4925).
#define WASMQUANT_REFIT R"(,"scale_refit":"always")"
// With 4 bits it is worth a fifth of gptq's loss, and nothing without data (groups of 64 of SmolLM2-135M, KLD: 0.154 to 0.124, and
// 0.365 to 0.372), and MX as much (0.170 to 0.150).
#define WASMQUANT_CALIBRATED_REFIT R"(,"scale_refit":"calibrated")"
#define WASMQUANT_SIGNED_CHANNEL(dtype) \
  R"({"dtype":")" dtype                 \
  R"(","qscheme":"per_channel","ch_axis":0,"symmetric":true,"scale_sign":"signed")" WASMQUANT_CALIBRATED_REFIT "}"
#define WASMQUANT_CHANNEL(dtype, symmetric) \
  R"({"dtype":")" dtype R"(","qscheme":"per_channel","ch_axis":0,"symmetric":)" symmetric "}"
#define WASMQUANT_MX(element) \
  R"({"dtype":")" element     \
  R"(","qscheme":"per_group","ch_axis":-1,"group_size":32,"scale_format":"e8m0")" WASMQUANT_CALIBRATED_REFIT "}"
// As mlx_lm.convert: embeddings and the head, too; codes count from the larger end of each group (ScaleSign).
#define WASMQUANT_MLX_SPEC(bits)                                                                                  \
  R"({"weight":{"dtype":"uint)" bits R"(","qscheme":"per_group","ch_axis":-1,"group_size":64,"symmetric":false,)" \
  R"("scale_sign":"signed"}})"
#define WASMQUANT_MLX(bits)                                                                                               \
  R"({"global_quant_config":)" WASMQUANT_MLX_SPEC(bits) R"(,"layer_type_quant_config":{"Embedding":)" WASMQUANT_MLX_SPEC( \
      bits) R"(},"layer_quant_config":{"lm_head":)" WASMQUANT_MLX_SPEC(bits) R"(},"indivisible_groups":"fallback","default_exclusions":true})"
// One scale per token, computed by the runtime.
#define WASMQUANT_TOKEN(dtype) \
  R"({"dtype":")" dtype R"(","qscheme":"per_channel","ch_axis":1,"symmetric":true,"is_dynamic":true})"
#define WASMQUANT_MX_INPUT(element)                                                                        \
  R"({"dtype":")" element R"(","qscheme":"per_group","ch_axis":-1,"group_size":32,"scale_format":"e8m0",)" \
  R"("is_dynamic":true})"
#define WASMQUANT_BLOCK R"({"dtype":"fp8_e4m3","qscheme":"per_block","block_size":[128,128]})"
#define WASMQUANT_TENSOR(dtype) R"({"dtype":")" dtype R"(","qscheme":"per_tensor","symmetric":true})"

#define WASMQUANT_AIHWKIT(bits)                                                                                \
  R"({"dialect":"aihwkit","module_qconfig_map":{"Linear":{"quantized_module":"QuantLinear","module_qconfig":)" \
  R"({"weight_quant":{"n_bits":)" bits                                                                         \
  R"(,"symmetric":true,"per_channel":true,"range_estimator":"current_minmax"}}}},)"                            \
  R"("excluded_modules":["lm_head"],"default_exclusions":true})"
#define WASMQUANT_BREVITAS(bits, param)                                                                     \
  R"({"dialect":"brevitas","brevitas_version":"0.12.1","global_quant_config":{"weight":{"bit_width":)" bits \
  R"(,"qscheme":"per_channel","symmetric":true,"param_type":")" param                                       \
  R"("}},"pre_quant_opt_config":[],"algo_config":[],"exclude":["lm_head"],"default_exclusions":true})"

constexpr std::string_view kBfloat16 = R"({"dtype":"bfloat16"})", kFloat16 = R"({"dtype":"float16"})";

// Names follow Quark's template schemes ("wo" = weights only).
constexpr Preset kPresets[] = {
    {"int8", "8-bit integers, one scale per output channel",
     "A quarter of float32. The safe first choice: the error is small in nearly every model.",
     WASMQUANT_CHANNEL("int8", "true")},
    {"int8_per_tensor", "8-bit integers, one scale per tensor",
     "As small as int8 and simplest to run, but one outlier costs the whole tensor precision.",
     WASMQUANT_TENSOR("int8")},
    {"int8_dynamic", "8-bit weights and activations (W8A8)",
     "Weights as int8; the runtime rounds each token's activations to 8 bits.", WASMQUANT_CHANNEL("int8", "true"),
     WASMQUANT_TOKEN("int8")},
    {"int4_wo_32", "4-bit integers, groups of 32",
     "The most precise symmetric 4-bit preset; its scales need the most space.",
     WASMQUANT_SIGNED_GROUP("int4", "32", WASMQUANT_CALIBRATED_REFIT)},
    {"int4_wo_64", "4-bit integers, groups of 64", "Between int4_wo_32 and int4_wo_128 in size and precision.",
     WASMQUANT_SIGNED_GROUP("int4", "64", WASMQUANT_CALIBRATED_REFIT)},
    {"int4_wo_128", "4-bit integers, groups of 128",
     "The usual choice for large language models: about an eighth of float32.",
     WASMQUANT_SIGNED_GROUP("int4", "128", WASMQUANT_CALIBRATED_REFIT)},
    {"int4_wo_per_channel", "4-bit integers, one scale per output channel",
     "The smallest 4-bit files, with a clearly visible error in most models.", WASMQUANT_SIGNED_CHANNEL("int4")},
    {"int4_wa_64", "4-bit weights and activations, groups of 64",
     "Weights as int4_wo_64; the runtime rounds activations to 4 bits. The quark format says so.",
     WASMQUANT_SIGNED_GROUP("int4", "64", WASMQUANT_CALIBRATED_REFIT),
     R"({"dtype":"int4","qscheme":"per_group","ch_axis":-1,"group_size":64,"symmetric":true,"is_dynamic":true})"},
    {"int3_wo_32", "3-bit integers, groups of 32",
     "The most precise 3-bit preset: 3.5 bits per weight with float16 scales.",
     WASMQUANT_SIGNED_GROUP("int3", "32", WASMQUANT_REFIT)},
    {"int3_wo_64", "3-bit integers, groups of 64", "Between int3_wo_32 and int3_wo_128 in size and precision.",
     WASMQUANT_SIGNED_GROUP("int3", "64", WASMQUANT_REFIT)},
    {"int3_wo_128", "3-bit integers, groups of 128",
     "Three quarters of int4_wo_128. With gptq, or awq and gptq, most models stay usable.",
     WASMQUANT_SIGNED_GROUP("int3", "128", WASMQUANT_REFIT)},
    {"int2_wo_32", "2-bit integers, groups of 32",
     "The smallest integers, with a large error: for use with gptq, and on large models.",
     WASMQUANT_SIGNED_GROUP("int2", "32", "")},
    {"int2_wo_64", "2-bit integers, groups of 64", "int2_wo_32 with half as many scales and a larger error.",
     WASMQUANT_SIGNED_GROUP("int2", "64", "")},
    {"uint4_wo_32", "4-bit unsigned integers with zero points, groups of 32",
     "Follows lopsided weights; the most precise 4-bit preset.", WASMQUANT_GROUP("uint4", "32", "false")},
    {"uint4_wo_64", "4-bit unsigned integers with zero points, groups of 64",
     "Between uint4_wo_32 and uint4_wo_128 in size and precision.", WASMQUANT_GROUP("uint4", "64", "false")},
    {"uint4_wo_128", "4-bit unsigned integers with zero points, groups of 128",
     "The arrangement that AWQ files use, without AWQ's search.", WASMQUANT_GROUP("uint4", "128", "false")},
    {"uint4_wo_per_channel", "4-bit unsigned integers with zero points, one scale per output channel",
     "Like int4_wo_per_channel, with zero points for lopsided rows.", WASMQUANT_CHANNEL("uint4", "false")},
    {"fp8", "8-bit floating point (e4m3), one scale per tensor",
     "A quarter of float32. Coarser than int8 near the maximum, finer near zero.", WASMQUANT_TENSOR("fp8_e4m3")},
    {"fp8_per_channel", "8-bit floating point (e4m3), one scale per output channel",
     "Like fp8, and an outlier costs only its own channel precision.", WASMQUANT_CHANNEL("fp8_e4m3", "true")},
    {"ptpc_fp8", "8-bit floating point weights and activations",
     "Weights as fp8_per_channel; the runtime casts each token's activations to fp8 with its own scale.",
     WASMQUANT_CHANNEL("fp8_e4m3", "true"), WASMQUANT_TOKEN("fp8_e4m3")},
    {"int4_fp8", "4-bit integers on fp8 weights",
     "Weights quantized to fp8 with one scale, then to int4 per channel. For the quark format.",
     R"([{"dtype":"fp8_e4m3","qscheme":"per_tensor"},{"dtype":"int4","qscheme":"per_channel","ch_axis":0}])",
     R"({"dtype":"fp8_e4m3","qscheme":"per_tensor","is_dynamic":true})"},
    {"fp8_per_block", "8-bit floating point (e4m3), one scale per block of 128 x 128",
     "What DeepSeek's checkpoints use; between fp8 and fp8_per_channel in precision.", WASMQUANT_BLOCK},
    {"fp8_per_block_dynamic", "8-bit floating point weights in blocks, activations in groups of 128",
     "As DeepSeek and Qwen publish: weights as fp8_per_block; the runtime casts each 128 activations of a token to "
     "fp8.",
     WASMQUANT_BLOCK,
     R"({"dtype":"fp8_e4m3","qscheme":"per_group","ch_axis":-1,"group_size":128,"symmetric":true,"is_dynamic":true})"},
    {"mxfp8", "MXFP8 (e4m3), power-of-two scales in groups of 32",
     "The OCP Microscaling format for 8 bits, which new accelerators read directly.", WASMQUANT_MX("fp8_e4m3")},
    {"mxfp6_e2m3", "MXFP6 (e2m3), power-of-two scales in groups of 32",
     "Three quarters of MXFP8, with the same mantissa. For the quark format.", WASMQUANT_MX("fp6_e2m3")},
    {"mxfp6_e3m2", "MXFP6 (e3m2), power-of-two scales in groups of 32",
     "Like mxfp6_e2m3 with more range and less precision.", WASMQUANT_MX("fp6_e3m2")},
    {"mxfp4", "MXFP4 (e2m1), power-of-two scales in groups of 32",
     "The OCP Microscaling format for 4 bits: the scales cost a quarter of a bit per weight.", WASMQUANT_MX("fp4")},
    {"mxfp4_weight_only", "MXFP4 (e2m1), weights only", "mxfp4 under AMD Quark's name.", WASMQUANT_MX("fp4")},
    {"mxfp4_fp8", "MXFP4 weights, fp8 activations",
     "Weights as mxfp4; the runtime casts activations to fp8 with one scale. The quark format says so.",
     WASMQUANT_MX("fp4"), R"({"dtype":"fp8_e4m3","qscheme":"per_tensor","is_dynamic":true})"},
    {"mxfp4_mxfp6_e2m3", "MXFP4 weights, MXFP6 activations",
     "Weights as mxfp4; the runtime casts activations to MXFP6. The quark format says so.", WASMQUANT_MX("fp4"),
     WASMQUANT_MX_INPUT("fp6_e2m3")},
    {"nvfp4", "NVFP4 (e2m1), fp8 scales in groups of 16 under one float32 scale",
     "More precise than mxfp4 for a quarter of a bit more per weight.",
     R"({"dtype":"fp4","qscheme":"per_group","ch_axis":-1,"group_size":16,"scale_format":"e4m3"})"},
    {"amdfp4", "AMD FP4 (e2m1), unsigned fp8 (e5m3) scales in groups of 16",
     "Precision like nvfp4 without a second scale. For the quark format.",
     R"({"dtype":"fp4","qscheme":"per_group","ch_axis":-1,"group_size":16,"scale_format":"e5m3"})"},
    {"amdfp4_g32", "AMD FP4 (e2m1), unsigned fp8 (e5m3) scales in groups of 32",
     "amdfp4 with half as many scales. For the quark format.",
     R"({"dtype":"fp4","qscheme":"per_group","ch_axis":-1,"group_size":32,"scale_format":"e5m3"})"},
    {"mx9", "MX9: 8-bit integers with shared exponents in blocks of 16", "Nearly lossless at 9 bits per weight.",
     R"({"dtype":"mx9","ch_axis":-1})"},
    {"mx6", "MX6: 5-bit integers with shared exponents in blocks of 16", "Between mxfp6 and mxfp4 in size.",
     R"({"dtype":"mx6","ch_axis":-1})"},
    {"bfp16", "BFP16: 8-bit integers with a shared exponent in blocks of 8", "9 bits per weight, close to bfloat16.",
     R"({"dtype":"bfp16","ch_axis":-1})"},
    {"bfloat16", "bfloat16", "Half of float32, same range, 8 significant bits. No scales.", kBfloat16},
    {"float16", "float16", "Half of float32, 11 significant bits; values above 65504 become infinite. No scales.",
     kFloat16},
    {"aihwkit_int8",
     "aihwkit: 8-bit weights, one scale per output channel",
     "As IBM aihwkit computes them: each range is that of the weights as they are. Simulated values.",
     {},
     {},
     WASMQUANT_AIHWKIT("8")},
    {"aihwkit_int4",
     "aihwkit: 4-bit weights, one scale per output channel",
     "IBM aihwkit's settings for 4 bits. For simulated values, or any format with int4 per channel.",
     {},
     {},
     WASMQUANT_AIHWKIT("4")},
    {"brevitas_int8",
     "Brevitas: 8-bit weights, one scale per output channel",
     "As Brevitas computes them: a narrow range of codes, scales from the largest magnitude.",
     {},
     {},
     WASMQUANT_BREVITAS("8", "stats")},
    {"brevitas_int4_mse",
     "Brevitas: 4-bit weights, scales with the least squared error",
     "Brevitas' search for the scale of each output channel.",
     {},
     {},
     WASMQUANT_BREVITAS("4", "mse")},
    {"mlx_8bit",
     "MLX: 8-bit integers with a scale and a bias in groups of 64",
     "Nearly lossless; as mlx_lm.convert with 8 bits.",
     {},
     {},
     WASMQUANT_MLX("8")},
    {"mlx_6bit",
     "MLX: 6-bit integers with a scale and a bias in groups of 64",
     "Between mlx_8bit and mlx_4bit; hard to tell from the original.",
     {},
     {},
     WASMQUANT_MLX("6")},
    {"mlx_5bit",
     "MLX: 5-bit integers with a scale and a bias in groups of 64",
     "A little larger and more precise than mlx_4bit.",
     {},
     {},
     WASMQUANT_MLX("5")},
    {"mlx_4bit",
     "MLX: 4-bit integers with a scale and a bias in groups of 64",
     "The usual choice for MLX, and that of mlx_lm.convert.",
     {},
     {},
     WASMQUANT_MLX("4")},
    {"mlx_3bit",
     "MLX: 3-bit integers with a scale and a bias in groups of 64",
     "Three quarters of mlx_4bit, with a visible loss in small models.",
     {},
     {},
     WASMQUANT_MLX("3")},
    {"mlx_2bit",
     "MLX: 2-bit integers with a scale and a bias in groups of 64",
     "The smallest, with a large error: for large models only.",
     {},
     {},
     WASMQUANT_MLX("2")},
};

#undef WASMQUANT_GROUP
#undef WASMQUANT_CHANNEL
#undef WASMQUANT_SIGNED_GROUP
#undef WASMQUANT_REFIT
#undef WASMQUANT_CALIBRATED_REFIT
#undef WASMQUANT_SIGNED_CHANNEL
#undef WASMQUANT_MX
#undef WASMQUANT_TOKEN
#undef WASMQUANT_MX_INPUT
#undef WASMQUANT_BLOCK
#undef WASMQUANT_TENSOR
#undef WASMQUANT_AIHWKIT
#undef WASMQUANT_BREVITAS
#undef WASMQUANT_MLX
#undef WASMQUANT_MLX_SPEC

// llama.cpp's recipes. If a name also occurs above, the output's format decides.
#define WASMQUANT_RECIPE_TEXT(name) R"({"dialect":"gguf","recipe":")" name R"("})"
constexpr Preset kRecipes[] = {
#define WASMQUANT_RECIPE(name, file_type, type, pure, use) \
  {#name, "GGUF " #name, use, {}, {}, WASMQUANT_RECIPE_TEXT(#name)},
#include "tables/recipes.def"
#undef WASMQUANT_RECIPE
};
#undef WASMQUANT_RECIPE_TEXT

constexpr const Preset* find(std::span<const Preset> rows, std::string_view name) noexcept {
  for (const Preset& row : rows)
    if (is_same_word(row.name, name)) return &row;
  return nullptr;
}

// Names that people try first, and what they usually mean.
struct UsualChoice {
  std::string_view name, presets;
};
constexpr UsualChoice kUsualChoices[] = {
    {"int4", "int4_wo_128 is the usual choice, int4_wo_32 the more precise one"},
    {"4bit", "int4_wo_128 is the usual choice, int4_wo_32 the more precise one"},
    {"int4_wo", "int4_wo_128 is the usual choice, int4_wo_32 the more precise one"},
    {"w4a16", "int4_wo_128 is the usual choice, int4_wo_32 the more precise one"},
    {"uint4", "uint4_wo_128 is the usual choice, uint4_wo_32 the more precise one"},
    {"8bit", "int8 is the usual choice"},
    {"w8a16", "int8 is the usual choice"},
    {"uint8", "int8 is the usual choice; a config can ask for uint8"},
    {"w8a8", "int8_dynamic, or ptpc_fp8 in floating point"},
    {"fp4", "mxfp4 or nvfp4"},
    {"nf4", "NF4 can be read but not written; mxfp4, nvfp4 and int4_wo_32 are similar"},
    {"e4m3", "fp8_per_channel is the usual choice"},
    {"q4", "q4_k_m is the usual choice"},
    {"q4_k", "q4_k_m is the usual choice"},
    {"q5", "q5_k_m is the usual choice"},
    {"q5_k", "q5_k_m is the usual choice"},
    {"q3_k", "q3_k_m is the usual choice"},
    {"q8", "q8_0 is the usual choice"},
    {"gguf", "q4_k_m is the usual choice, q8_0 nearly lossless"},
};

constexpr bool is_preset_name(const Preset& recipe) noexcept { return find(kPresets, recipe.name) != nullptr; }
constexpr size_t kShared = std::count_if(std::begin(kRecipes), std::end(kRecipes), is_preset_name);

constexpr auto kAll = [] {
  std::array<Preset, std::size(kPresets) + std::size(kRecipes) - kShared> rows;
  const auto end = std::copy(std::begin(kPresets), std::end(kPresets), rows.begin());
  std::remove_copy_if(std::begin(kRecipes), std::end(kRecipes), end, is_preset_name);
  return rows;
}();

}  // namespace

std::string Preset::config_text() const {
  if (!whole.empty()) return std::string(whole);
  std::string text = R"({"global_quant_config":{"weight":)";
  text += weight;
  if (!inputs.empty()) {
    text += R"(,"input_tensors":)";
    text += inputs;
  }
  const bool is_cast = weight == kBfloat16 || weight == kFloat16;  // of the whole model
  text += is_cast ? "}" : R"(},"exclude":["lm_head"],"indivisible_groups":"fallback")";
  text += R"(,"default_exclusions":true})";
  return text;
}

std::span<const Preset> presets() noexcept { return kAll; }

const Preset* preset_named(std::string_view name, std::string_view dialect) noexcept {
  if (dialect == name_of(Dialect::gguf)) return find(kRecipes, name);
  return find(kAll, name);
}

std::optional<Config> parse_preset(std::string_view name, std::string_view dialect, DiagnosticList& out) {
  const Preset* row = preset_named(name, dialect);
  if (row == nullptr) row = preset_named(name);
  if (row == nullptr) {
    List<std::string_view> names;
    for (const Preset& known : kAll) names.push_back(known.name);
    std::string hint;
    for (const UsualChoice& usual : kUsualChoices)
      if (is_same_word(usual.name, name)) hint = usual.presets;
    if (hint.empty()) hint = did_you_mean(name, names);
    if (hint.empty()) hint = "int8, int4_wo_128 and q4_k_m (GGUF) are usual choices";
    out.error("preset-unknown", "", text_of("{q} is not one of the {} presets", name, names.size()), std::move(hint));
    return std::nullopt;
  }
  auto value = json::parse(row->config_text());
  if (!value) {
    out.error("json-invalid", value.error().where, value.error().message);
    return std::nullopt;
  }
  auto config = parse(*value, "auto", out);
  if (config && dialect != "auto" && dialect != name_of(config->dialect)) {
    out.error_in("dialect-mismatch", "", nullptr, "leave out the dialect: it is recognized from the keys",
                 "the preset {q} is in dialect {}, but {} was requested", name, name_of(config->dialect), dialect);
    return std::nullopt;
  }
  if (config) config->preset = row->name;
  return config;
}

}  // namespace wasmquant::config
