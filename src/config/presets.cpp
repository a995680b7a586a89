#include "config/presets.h"

#include "config/edit_distance.h"
#include "config/object_reader.h"
#include "config/parse.h"
#include "config/vocabulary.h"
#include "core/list.h"
#include "core/message.h"

namespace wasmquant::config {
namespace {

#define WASMQUANT_GROUP(dtype, size, symmetric) \
  R"({"dtype":")" dtype R"(","qscheme":"per_group","ch_axis":-1,"group_size":)" size R"(,"symmetric":)" symmetric "}"
#define WASMQUANT_CHANNEL(dtype, symmetric) \
  R"({"dtype":")" dtype R"(","qscheme":"per_channel","ch_axis":0,"symmetric":)" symmetric "}"
#define WASMQUANT_MX(element) \
  R"({"dtype":")" element R"(","qscheme":"per_group","ch_axis":-1,"group_size":32,"scale_format":"e8m0"})"
#define WASMQUANT_TENSOR(dtype) R"({"dtype":")" dtype R"(","qscheme":"per_tensor","symmetric":true})"

// Names follow Quark's template schemes ("wo" = weights only).
constexpr Preset kPresets[] = {
    {"int8", "8-bit integers, one scale per output channel",
     "A quarter of float32. The safe first choice: the error is small in nearly every model.",
     WASMQUANT_CHANNEL("int8", "true")},
    {"int8_per_tensor", "8-bit integers, one scale per tensor",
     "As small as int8 and simplest to run, but one outlier costs the whole tensor precision.",
     WASMQUANT_TENSOR("int8")},
    {"int4_wo_32", "4-bit integers, groups of 32",
     "The most precise symmetric 4-bit preset; its scales take the most space.", WASMQUANT_GROUP("int4", "32", "true")},
    {"int4_wo_64", "4-bit integers, groups of 64", "Between int4_wo_32 and int4_wo_128 in size and precision.",
     WASMQUANT_GROUP("int4", "64", "true")},
    {"int4_wo_128", "4-bit integers, groups of 128",
     "The usual choice for large language models: about an eighth of float32.", WASMQUANT_GROUP("int4", "128", "true")},
    {"int4_wo_per_channel", "4-bit integers, one scale per output channel",
     "The smallest 4-bit files, with a clearly visible error in most models.", WASMQUANT_CHANNEL("int4", "true")},
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
    {"fp8_per_block", "8-bit floating point (e4m3), one scale per block of 128 x 128",
     "What DeepSeek's checkpoints use; between fp8 and fp8_per_channel in precision.",
     R"({"dtype":"fp8_e4m3","qscheme":"per_block","block_size":[128,128]})"},
    {"mxfp8", "MXFP8 (e4m3), power-of-two scales in groups of 32",
     "The OCP Microscaling format for 8 bits, which new accelerators read directly.", WASMQUANT_MX("fp8_e4m3")},
    {"mxfp6_e2m3", "MXFP6 (e2m3), power-of-two scales in groups of 32",
     "Three quarters of MXFP8, with the same mantissa. The quark format holds it.", WASMQUANT_MX("fp6_e2m3")},
    {"mxfp6_e3m2", "MXFP6 (e3m2), power-of-two scales in groups of 32",
     "Like mxfp6_e2m3 with more range and less precision.", WASMQUANT_MX("fp6_e3m2")},
    {"mxfp4", "MXFP4 (e2m1), power-of-two scales in groups of 32",
     "The OCP Microscaling format for 4 bits: the scales cost a quarter of a bit per weight.", WASMQUANT_MX("fp4")},
    {"nvfp4", "NVFP4 (e2m1), fp8 scales in groups of 16 under one float32 scale",
     "More precise than mxfp4 for a quarter of a bit more per weight.",
     R"({"dtype":"fp4","qscheme":"per_group","ch_axis":-1,"group_size":16,"scale_format":"e4m3"})"},
    {"amdfp4", "AMD FP4 (e2m1), unsigned fp8 (e5m3) scales in groups of 16",
     "Precision like nvfp4 without a second scale. The quark format holds it.",
     R"({"dtype":"fp4","qscheme":"per_group","ch_axis":-1,"group_size":16,"scale_format":"e5m3"})"},
    {"mx9", "MX9: 8-bit integers with shared exponents in blocks of 16", "Nearly lossless at 9 bits per weight.",
     R"({"dtype":"mx9","ch_axis":-1})"},
    {"mx6", "MX6: 5-bit integers with shared exponents in blocks of 16", "Between mxfp6 and mxfp4 in size.",
     R"({"dtype":"mx6","ch_axis":-1})"},
    {"bfp16", "BFP16: 8-bit integers with a shared exponent in blocks of 8", "9 bits per weight, close to bfloat16.",
     R"({"dtype":"bfp16","ch_axis":-1})"},
    {"bfloat16", "bfloat16", "Half of float32, same range, 8 significant bits. No scales.", R"({"dtype":"bfloat16"})"},
    {"float16", "float16", "Half of float32, 11 significant bits; values above 65504 become infinite. No scales.",
     R"({"dtype":"float16"})"},
};

#undef WASMQUANT_GROUP
#undef WASMQUANT_CHANNEL
#undef WASMQUANT_MX
#undef WASMQUANT_TENSOR

}  // namespace

std::string Preset::config_text() const {
  std::string text = R"({"global_quant_config":{"weight":)";
  text += weight;
  text += R"(},"exclude":["lm_head"],"indivisible_groups":"fallback"})";
  return text;
}

std::span<const Preset> presets() noexcept { return kPresets; }

const Preset* preset_named(std::string_view name) noexcept {
  for (const Preset& preset : kPresets)
    if (preset.name == name) return &preset;
  return nullptr;
}

std::optional<Config> parse_preset(std::string_view name, DiagnosticList& out) {
  const Preset* preset = preset_named(name);
  if (preset == nullptr) {
    List<std::string_view> names;
    for (const Preset& row : kPresets) names.push_back(row.name);
    out.error("preset-unknown", "", text_of("there is no preset {q}; presets are {}", name, joined(names)),
              did_you_mean(name, names));
    return std::nullopt;
  }
  auto value = json::parse(preset->config_text());
  if (!value) {
    out.error("json-invalid", value.error().where, value.error().message);
    return std::nullopt;
  }
  auto config = parse(*value, "quark", out);
  if (config) config->preset = name;
  return config;
}

}  // namespace wasmquant::config
