// Prints build inputs: {"schemas": {"quark": schema, ...}, "dialects": those that are written, "presets": names, "formats": {"inputs", "outputs"}, "families": {"forward",
// "gguf"}, "codes": {"errors", "diagnostics"}, "keys": by class, "runtimes": {"runtimes", "places"}}. Schemas of the config dialects go into the package, and
// into web/lib's types with what is said of their keys (config_types.mjs); formats are the table
// of web/lib/api/formats.ts; codes are those of web/lib/api, of `wasmquant explain` and of a guide; guides list the
// families, which tests/docs checks.
#include <cstdio>
#include <cstdlib>

#include "config/dialects/dialects.h"
#include "config/presets.h"
#include "config/schema.h"
#include "config/spec/vocabulary.h"
#include "families/word_list.h"
#include "gguf_conversion/architectures/family.h"
#include "key_texts.h"
#include "model/config/architecture.h"
#include "pipeline/plan/onnx_file_name.h"
#include "pipeline/plan/output_format.h"
#include "runtimes/loaders/loader.h"
#include "runtimes/runtime.h"

namespace wasmquant {
namespace {

json::Value texts(std::span<const std::string_view> list) {
  json::Array out;
  for (const std::string_view text : list) out.emplace_back(text);
  return out;
}

json::Value schemas() {
  json::Value out;
  for (size_t i = 0; i < std::size(config::kDialectNames); ++i)
    out.set(std::string(config::kDialectNames[i]), config::schema(static_cast<Dialect>(i)));
  return out;
}

json::Value preset_names() {
  json::Array out;
  for (const config::Preset& preset : config::presets()) out.emplace_back(preset.name);
  return out;
}

json::Value input_formats() {
  json::Value out;
  for (const Format* const format : formats()) {
    json::Value row;
    row.set("title", format->title);
    row.set("extensions", texts(format->extensions));
    row.set("dataExtensions", texts(format->data_extensions));
    row.set("hasGraph", format->has_graph);
    row.set("hasGgmlNames", format->has_ggml_names);
    row.set("carriesConfig", format->carries_config);
    row.set("hasSiblingFiles", format->has_sibling_files);
    row.set("addsWeightSuffix", format->adds_weight_suffix);
    out.set(std::string(format->name), std::move(row));
  }
  return out;
}

json::Value onnx_suffixes() {
  json::Array out;
  for (const OnnxDtype& dtype : onnx_dtypes()) out.emplace_back(dtype.suffix);
  return out;
}

json::Value bfloat16_scales(const CheckpointFormat* format) {
  json::Array out;
  for (size_t i = 0; format != nullptr && i < config::kScaleFormats.size(); ++i) {
    QuantizationSpec spec;
    spec.scale_format = static_cast<ScaleFormat>(i);
    if (runtimes::loader_of(*format).loads_as_bfloat16({spec})) out.emplace_back(config::kScaleFormats[i]);
  }
  return out;
}

json::Value output_format_table() {
  json::Value out;
  for (const OutputFormat& format : output_formats()) {
    json::Array sources;
    for (const Format* const source : formats())
      if (format.takes(*source)) sources.emplace_back(source->name);
    json::Value row;
    const runtimes::FormatText* const text = runtimes::text_named(format.name);
    if (text == nullptr) {
      std::fprintf(stderr, "src/runtimes/runtimes.def has no text for %s\n", std::string(format.name).c_str());
      std::exit(1);
    }
    row.set("title", text->title);
    row.set("description", text->description);
    row.set("packages", text->packages);
    row.set("note", text->note);
    row.set("container", format.container->name);
    row.set("sources", std::move(sources));
    row.set("takesRecipes", format.takes_recipes);
    row.set("splitsBySize", format.splits_by_size);
    row.set("isWholeFile", format.is_whole_file);
    row.set("hasSiblingFiles", format.has_sibling_files);
    row.set("needsConfigBlock", format.checkpoint != nullptr && format.checkpoint->traits().needs_config_block);
    row.set("bfloat16Scales", bfloat16_scales(format.checkpoint));
    out.set(std::string(format.name), std::move(row));
  }
  return out;
}

json::Value words(std::string_view list) {
  json::Array out;
  while (!list.empty()) out.emplace_back(families::next_word(list));
  return json::Value(std::move(out));
}

json::Value runtime_table() {
  json::Value rows, places, out;
  for (const runtimes::Runtime& runtime : runtimes::kRuntimes) {
    json::Value row;
    row.set("title", runtime.title);
    row.set("install", runtime.install);
    row.set("formats", words(runtime.formats));
    row.set("presets", words(runtime.presets));
    rows.set(std::string(runtime.id), std::move(row));
  }
  for (const runtimes::Place& place : runtimes::kPlaces) {
    json::Value row;
    row.set("title", place.title);
    row.set("runtimes", words(place.runtimes));
    row.set("formats", words(place.formats));
    places.set(std::string(place.id), std::move(row));
  }
  out.set("runtimes", std::move(rows));
  out.set("places", std::move(places));
  return out;
}

json::Value code_row(std::string_view name, std::string_view meaning, std::string_view advice) {
  json::Value row;
  row.set("name", name);
  row.set("meaning", meaning);
  row.set("advice", advice);
  return row;
}

json::Value error_codes() {
  json::Array out;
  const auto add = [&](std::string_view name, std::string_view meaning, std::string_view advice,
                       std::string_view reporter) {
    json::Value row = code_row(name, meaning, advice);
    row.set("reporter", reporter);
    out.push_back(std::move(row));
  };
#define WASMQUANT_ERROR(code, name, meaning, advice) add(name, meaning, advice, "core");
#define WASMQUANT_LIBRARY_ERROR(name, meaning, advice) add(name, meaning, advice, "library");
#define WASMQUANT_COMMAND_ERROR(name, meaning, advice) add(name, meaning, advice, "command");
#include "core/codes/error.def"
#undef WASMQUANT_ERROR
  return out;
}

json::Value remark_codes() {
  json::Array out;
  const auto add = [&](std::string_view name, std::string_view severities, std::string_view meaning,
                       std::string_view advice) {
    json::Value row = code_row(name, meaning, advice);
    row.set("severities", severities);
    out.push_back(std::move(row));
  };
#define WASMQUANT_DIAGNOSTIC(name, severities, meaning, advice) add(name, severities, meaning, advice);
#include "core/codes/diagnostics.def"
#undef WASMQUANT_DIAGNOSTIC
  return out;
}

}  // namespace
}  // namespace wasmquant

int main() {
  wasmquant::json::Value formats, families, codes, all;
  formats.set("inputs", wasmquant::input_formats());
  formats.set("outputs", wasmquant::output_format_table());
  formats.set("onnxSuffixes", wasmquant::onnx_suffixes());
  all.set("schemas", wasmquant::schemas());
  all.set("formats", std::move(formats));
  all.set("dialects", wasmquant::texts(wasmquant::config::written_dialects()));
  all.set("presets", wasmquant::preset_names());
  families.set("forward", wasmquant::model::family_names(false));
  families.set("encoders", wasmquant::model::family_names(true));
  families.set("gguf", wasmquant::conversion::family_names());
  all.set("families", std::move(families));
  codes.set("errors", wasmquant::error_codes());
  codes.set("diagnostics", wasmquant::remark_codes());
  all.set("codes", std::move(codes));
  all.set("keys", wasmquant::key_texts());
  all.set("runtimes", wasmquant::runtime_table());
  std::puts(wasmquant::json::write(all).c_str());
  return 0;
}
