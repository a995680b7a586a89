#include "pipeline/plan/output_format.h"

#include "formats/gguf/gguf.h"
#include "formats/onnx/onnx.h"
#include "formats/safetensors/safetensors.h"

namespace wasmquant {
namespace {

List<OutputFormat> list_output_formats() {
  List<OutputFormat> all;
  for (const CheckpointFormat* const format : checkpoint_formats())
    if (!format->traits().is_read_only)
      all.push_back({.name = format->name(),
                     .container = &safetensors_format(),
                     .checkpoint = format,
                     .plan = make_checkpoint_plan});
  all.push_back({.name = "gguf",
                 .container = &gguf_format(),
                 .takes_recipes = true,
                 .splits_by_size = true,
                 .is_whole_file = true,
                 .has_sibling_files = false,
                 .plan = make_gguf_plan});
  all.push_back({.name = "onnx", .container = &onnx_format(), .is_whole_file = true, .plan = make_onnx_plan});
  return all;
}

}  // namespace

std::span<const OutputFormat> output_formats() {
  static const List<OutputFormat> all = list_output_formats();
  return {all.begin(), all.end()};
}

const OutputFormat* output_format_named(std::string_view name) {
  for (const OutputFormat& format : output_formats())
    if (format.name == name) return &format;
  return nullptr;
}

const OutputFormat& usual_output_format(const Format& model, bool is_recipe, bool has_end_codes) {
  const OutputFormat* first = nullptr;
  for (const OutputFormat& format : output_formats()) {
    if (!format.takes(model)) continue;
    const bool holds_codes =
        !has_end_codes || format.checkpoint == nullptr || format.checkpoint->traits().holds_end_codes;
    if (format.takes_recipes == is_recipe && holds_codes) return format;
    if (first == nullptr) first = &format;
  }
  return *first;
}

std::string output_format_names() {
  std::string names;
  for (const OutputFormat& format : output_formats()) {
    const bool is_last = &format == &output_formats().back();
    names += text_of("{}{}", names.empty() ? "" : is_last ? " and " : ", ", format.name);
  }
  return names;
}

}  // namespace wasmquant
