#include "pipeline/plan_output/output_config.h"

#include "core/json_edit.h"

namespace wasmquant {
namespace {

constexpr const char* kBlock = "quantization_config";
constexpr const char* kMlxBlock = "quantization";
// Per weight file, the number of external files or a flag. Source: transformers.js, utils/hub.js.
constexpr const char* kTransformersJs = "transformers.js_config";
constexpr const char* kExternalData = "use_external_data_format";

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

// `config`: the original content.
Status set_external_data(ConfigText& text, const json::Value& config, std::string_view file) {
  const std::string_view path[] = {kTransformersJs, kExternalData, file.substr(file.rfind('/') + 1)};
  const json::Value& own = config[kTransformersJs];
  const json::Value& formats = own[kExternalData];
  if (formats.is_object()) return text.set(path, 1);
  if (formats.as_bool() || formats.as_integer() > 0) return {};  // applies to every file
  json::Value counts;
  counts.set(std::string(path[2]), 1);
  if (own.is_object() || own.is_null()) return text.set(json::Path(path).first(2), counts);
  json::Value outer;
  outer.set(kExternalData, std::move(counts));
  return text.set(json::Path(path).first(1), outer);
}

}  // namespace

Result<std::string> output_config(const Plan& plan, std::string_view original, const Result<json::Value>& parsed) {
  const bool has_block = !plan.quantization_config.is_null(), has_changes = !plan.config_changes.is_null();
  if (original.empty() && !has_block && !has_changes) return std::string();
  if (!parsed) return parsed.error();
  const json::Value& config = *parsed;
  ConfigText text(original.empty() ? "{}\n" : original);
  if (!plan.external_data_of.empty() && !original.empty())
    TRY_VOID(set_external_data(text, config, plan.external_data_of));
  for (const auto& [key, value] : plan.config_changes.members()) {
    const std::string_view path[] = {"text_config", key};
    TRY_VOID(text.set(json::Path(path).last(1), value));
    if (config[path[0].data()].is_object()) TRY_VOID(text.set(path, value));
  }
  const std::string_view block[] = {kBlock};
  if (has_block)
    TRY_VOID(text.set(block, plan.quantization_config));
  else if (!config[kBlock].is_null())
    TRY_VOID(text.remove(block));
  const std::string_view nested[] = {"text_config", kBlock};  // the input's own, of a multimodal model
  if (config[nested[0].data()][kBlock].is_object()) TRY_VOID(text.remove(nested));
  // MLX stores its quantization config twice; both are removed.
  const std::string_view mlx[] = {kMlxBlock};
  if (config[kMlxBlock].is_object() && !config[kMlxBlock]["group_size"].is_null()) TRY_VOID(text.remove(mlx));
  return std::move(text.text());
}

}  // namespace wasmquant
