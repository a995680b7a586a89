#include "pipeline/plan_output/output_config.h"

#include <vector>

#include "core/json_edit.h"
#include "families/config_blocks.h"
#include "pipeline/plan_output/transformers_js.h"

namespace wasmquant {
namespace {

constexpr const char* kBlock = "quantization_config";
constexpr const char* kSecondBlock = "quantization";

class ConfigText {
 public:
  explicit ConfigText(std::string_view text) : text_(text) {}

  Status set(json::Path path, const json::Value& value) {
    TRY(edited, json::set_member(text_, path, json::write(value, 2)));
    text_ = std::move(edited);
    return {};
  }
  Status remove(json::Path path) {
    TRY(edited, json::remove_member(text_, path));
    text_ = std::move(edited);
    return {};
  }
  std::string& text() noexcept { return text_; }

 private:
  std::string text_;
};

// The dtype of the model and of its parts (text_config, vision_config …), where it is given.
Status set_dtypes(ConfigText& text, const json::Value& config, const json::Value& dtype) {
  for (const auto& [key, value] : config.members()) {
    const std::string_view own[] = {key};
    if ((key == "dtype" || key == "torch_dtype") && value.is_string()) TRY_VOID(text.set(own, dtype));
    if (key == kBlock) continue;
    for (const char* inner : {"dtype", "torch_dtype"}) {
      const std::string_view nested[] = {key, inner};
      if (value.is_object() && value[inner].is_string()) TRY_VOID(text.set(nested, dtype));
    }
  }
  return {};
}

}  // namespace

Result<std::string> output_config(const Plan& plan, std::string_view original, const Result<json::Value>& parsed) {
  const bool has_block = !plan.quantization_config.is_null(), has_changes = !plan.config_changes.is_null();
  if (original.empty() && !has_block && !has_changes) return std::string();
  if (!parsed) return parsed.error();
  const json::Value& config = *parsed;
  ConfigText text(original.empty() ? "{}\n" : original);
  if (!plan.onnx.file.empty() && !original.empty()) {
    TRY(described, describe_onnx_files(std::move(text.text()), config, plan.onnx));
    text = ConfigText(described);
  }
  for (const auto& [key, value] : plan.config_changes.members()) {
    const std::string_view path[] = {"text_config", key};
    TRY_VOID(text.set(json::Path(path).last(1), value));
    if (config[path[0].data()].is_object()) TRY_VOID(text.set(path, value));
  }
  if (!plan.cast_dtype.empty()) TRY_VOID(set_dtypes(text, config, plan.cast_dtype));
  const std::string_view block[] = {kBlock};
  if (has_block)
    TRY_VOID(text.set(block, plan.quantization_config));
  else if (!config[kBlock].is_null())
    TRY_VOID(text.remove(block));
  for (const ConfigBlock& stored : config_blocks(config)) {  // the input's own, of parts of a multimodal model
    const std::vector<std::string_view> path(stored.path.begin(), stored.path.end());
    if (path.size() != 1 || path[0] != kBlock) TRY_VOID(text.remove(path));
  }
  // MLX stores its quantization config twice; those of the input are removed.
  const std::string_view second[] = {kSecondBlock};
  if (plan.config_changes[kSecondBlock].is_null() && config[kSecondBlock].is_object() &&
      !config[kSecondBlock]["group_size"].is_null())
    TRY_VOID(text.remove(second));
  return std::move(text.text());
}

}  // namespace wasmquant
