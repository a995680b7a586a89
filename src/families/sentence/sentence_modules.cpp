// Reads modules.json first, then the config.json of each module that needs one.
#include "families/sentence/sentence_modules.h"

#include <algorithm>

#include "core/message.h"

namespace wasmquant::families {
namespace {

constexpr std::string_view kUsualPooling = "1_Pooling";
constexpr std::string_view kModes[] = {"cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"};

/// Reads one file; its errors name it.
class File {
 public:
  explicit File(std::string name) : name_(std::move(name)) {}

  Result<json::Value> parse(std::string_view text) const {
    auto value = json::parse(text, json::kPython);
    if (!value) value.error().where = text_of("{}: {}", name_, value.error().where);
    return value;
  }

  Error wrong(std::string_view where, const char* expected, const json::Value& found) const {
    return error_at(
        ErrorCode::file_invalid, text_of("{}: {}", name_, where),
        "expected {}, found {}; sentence-transformers cannot load this either: correct the file, or remove it",
        expected, json::describe(found.kind()));
  }

  /// `out`: the member; null if it is missing.
  Status find(const json::Value& object, const char* key, const char* expected, json::Kind kind,
              const json::Value*& out) const {
    out = object.find(key);
    if (out == nullptr || out->kind() == kind) return {};
    return wrong(text_of("/{}", key), expected, *out);
  }

 private:
  std::string name_;
};

std::string last_part(const std::string& dotted) { return dotted.substr(dotted.rfind('.') + 1); }

Status read_mode(const File& file, std::string_view where, const json::Value& mode, SentenceModules& out) {
  if (!mode.is_string()) return file.wrong(where, "the name of a pooling", mode);
  if (std::find(std::begin(kModes), std::end(kModes), mode.as_string()) == std::end(kModes))
    return error_at(ErrorCode::file_invalid, text_of("{}: {}", out.pooling_file, where),
                    "{q} is no pooling of sentence-transformers: {}", mode.as_string(),
                    "cls, max, mean, mean_sqrt_len_tokens, weightedmean, lasttoken");
  out.pooling.push_back(mode.as_string());
  return {};
}

// Releases before 5.4 write a flag for each mode; later ones "pooling_mode", a name or a list of names.
Status read_pooling(std::string_view text, SentenceModules& out) {
  const File file(out.pooling_file);
  TRY(config, file.parse(text));
  if (!config.is_object()) return file.wrong("/", "an object", config);
  if (const json::Value* mode = config.find("pooling_mode")) {
    if (!mode->is_array()) return read_mode(file, "/pooling_mode", *mode, out);
    for (const json::Value& each : mode->items()) TRY_VOID(read_mode(file, "/pooling_mode", each, out));
    return {};
  }
  for (const std::string_view mode : kModes) {
    const bool is_short = mode.ends_with("token") || mode.ends_with("_tokens");
    const std::string key = text_of("pooling_mode_{}{}", mode, is_short ? "" : mode == "cls" ? "_token" : "_tokens");
    const json::Value* flag = nullptr;
    TRY_VOID(file.find(config, key.c_str(), "true or false", json::Kind::boolean, flag));
    if (flag != nullptr && flag->as_bool()) out.pooling.push_back(std::string(mode));
  }
  return {};
}

Status read_dense(const SiblingFiles& files, SentenceModule& module) {
  const std::string name = text_of("{}/config.json", module.path);
  const std::string_view text = files.sibling_file(name);
  if (text.empty())
    return error_at(ErrorCode::file_invalid, name, "is missing; modules.json names this module of the model");
  const File file(name);
  TRY(config, file.parse(text));
  if (!config.is_object()) return file.wrong("/", "an object", config);
  module.has_bias = true;  // defaults of its class
  module.activation = "Tanh";
  for (const auto& [key, target] : {std::pair{"in_features", &module.inputs}, {"out_features", &module.outputs}}) {
    const json::Value& count = config[key];
    if (!count.is_integer() || count.as_integer() < 1 || count.as_integer() > int64_t{1} << 24)
      return file.wrong(text_of("/{}", key), "a number of features", count);
    *target = static_cast<uint32_t>(count.as_integer());
  }
  const json::Value* value = nullptr;
  TRY_VOID(file.find(config, "bias", "true or false", json::Kind::boolean, value));
  if (value != nullptr) module.has_bias = value->as_bool();
  TRY_VOID(file.find(config, "activation_function", "the name of a class", json::Kind::string, value));
  if (value != nullptr)
    module.activation = value->as_string().starts_with("torch.") ? last_part(value->as_string()) : value->as_string();
  TRY_VOID(file.find(config, "use_residual", "true or false", json::Kind::boolean, value));
  if (value != nullptr && value->as_bool()) module.unusual = "use_residual";
  for (const char* key : {"module_input_name", "module_output_name"}) {
    if (config[key].is_null()) continue;
    TRY_VOID(file.find(config, key, "a name", json::Kind::string, value));
    if (value->as_string() != "sentence_embedding") module.unusual = key;
  }
  return {};
}

Status read_modules(const SiblingFiles& files, std::string_view text, SentenceModules& out) {
  const File file("modules.json");
  TRY(modules, file.parse(text));
  if (!modules.is_array()) return file.wrong("/", "a list of modules", modules);
  for (size_t i = 0; i < modules.items().size(); ++i) {
    const json::Value& row = modules.items()[i];
    if (!row.is_object()) return file.wrong(text_of("/{}", i), "an object", row);
    SentenceModule module;
    for (const auto& [key, target] : {std::pair{"type", &module.type}, {"path", &module.path}}) {
      if (!row[key].is_string()) return file.wrong(text_of("/{}/{}", i, key), "a string", row[key]);
      *target = row[key].as_string();
    }
    module.type = last_part(module.type);
    if (module.type == "Dropout" || (i == 0 && module.type.ends_with("Transformer"))) continue;
    if (module.type == "Pooling" && out.pooling_file.empty()) out.pooling_file = text_of("{}/config.json", module.path);
    if (module.type == "Dense") TRY_VOID(read_dense(files, module));
    out.list.push_back(std::move(module));
  }
  return {};
}

}  // namespace

Result<SentenceModules> sentence_modules(const SiblingFiles& files) {
  SentenceModules out;
  if (const std::string_view text = files.sibling_file("modules.json"); !text.empty())
    TRY_VOID(read_modules(files, text, out));
  if (out.pooling_file.empty()) out.pooling_file = text_of("{}/config.json", kUsualPooling);
  if (const std::string_view text = files.sibling_file(out.pooling_file); !text.empty())
    TRY_VOID(read_pooling(text, out));
  return out;
}

json::Value to_json(const SentenceModules& modules) {
  json::Array pooling, list;
  for (const std::string& mode : modules.pooling) pooling.push_back(mode);
  for (const SentenceModule& module : modules.list) {
    json::Value row;
    row.set("path", module.path);
    row.set("type", module.type);
    if (module.type == "Dense") {
      row.set("inputs", uint64_t{module.inputs});
      row.set("outputs", uint64_t{module.outputs});
      row.set("hasBias", module.has_bias);
      row.set("activation", module.activation);
      row.set("unusual", module.unusual);
    }
    list.push_back(std::move(row));
  }
  json::Value out;
  out.set("pooling", json::Value(std::move(pooling)));
  out.set("poolingFile", modules.pooling_file);
  out.set("modules", json::Value(std::move(list)));
  return out;
}

}  // namespace wasmquant::families
