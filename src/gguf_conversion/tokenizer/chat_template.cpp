// One value, a text or a list of {"name", "template"}, whichever file it is from.
#include "gguf_conversion/tokenizer/chat_template.h"

#include <string>
#include <utility>

#include "core/message.h"
#include "runtimes/llama_cpp/texts.h"

namespace wasmquant::conversion {
namespace {

constexpr std::string_view kKey = "tokenizer.chat_template";
constexpr const char* kConfigFile = "tokenizer_config.json: /chat_template";
constexpr const char* kJsonFile = "chat_template.json";

// Letters and digits of ASCII, and _ for any other character, as gguf-py names keys.
std::string key_name(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const bool is_kept = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    const bool continues_character = (c & 0xC0) == 0x80;
    if (is_kept || !continues_character) out += is_kept ? c : '_';
  }
  return out;
}

class TemplateWriter {
 public:
  explicit TemplateWriter(gguf::Metadata& metadata) : metadata_(metadata) {}

  void add(std::string_view name, std::string_view text) {
    const std::string key = key_name(name);
    if (key.empty()) return;
    if (key == "default") return metadata_.set_text(kKey, text);
    const std::string own = text_of("{}.{}", kKey, key);
    if (metadata_.find(own) == nullptr) names_.add_text(key);
    metadata_.set_text(own, text);
  }
  void add(const json::Value& value) {
    if (value.is_string()) metadata_.set_text(kKey, value.as_string());
    for (const json::Value& each : value.items())
      if (each["template"].is_string()) add(each["name"].as_string(), each["template"].as_string());
  }
  void finish() && {
    if (names_.count() > 0) metadata_.set(std::move(names_).finish("tokenizer.chat_templates"));
  }

 private:
  gguf::Metadata& metadata_;
  gguf::ArrayBuilder names_{gguf::ValueType::text};
};

}  // namespace

Status write_chat_templates(const json::Value& settings, const ChatTemplateFiles& files, gguf::Metadata& metadata,
                            DiagnosticList& diagnostics) {
  TemplateWriter writer(metadata);
  const auto leave = [&](std::string_view where, std::string_view why) {
    diagnostics.add({Severity::note, "files-left", std::string(where),
                     text_of("the GGUF file has no chat template from here: {}", why), ""});
  };
  const auto add = [&](std::string_view where, const json::Value& value) {
    if (!value.is_string() && !value.is_array()) leave(where, llama_cpp::kIgnoresTemplate);
    writer.add(value);
  };
  if (const json::Value* own = settings.find("chat_template")) {
    add(kConfigFile, *own);
  } else if (!files.jinja.empty()) {
    writer.add("default", files.jinja);
    for (const NamedTemplate& each : files.named) writer.add(each.name, each.text);
  } else {
    if (!files.json.empty()) {
      auto parsed = json::parse(files.json, json::kPython);
      if (!parsed) {
        parsed.error().where = text_of("{}: {}", kJsonFile, parsed.error().where);
        return std::move(parsed.error());
      }
      add(kJsonFile, (*parsed)["chat_template"]);
    }
    if (!files.named.empty()) leave("additional_chat_templates", llama_cpp::kTemplatesWithJinjaOnly);
  }
  std::move(writer).finish();
  return {};
}

}  // namespace wasmquant::conversion
