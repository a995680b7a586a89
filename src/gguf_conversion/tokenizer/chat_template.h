// The chat templates of a folder, which lie in several places, as metadata of a GGUF file.
#pragma once
#include <string_view>

#include "core/diagnostic.h"
#include "core/json.h"
#include "core/list.h"
#include "core/result.h"
#include "formats/gguf/gguf_metadata.h"

namespace wasmquant::conversion {

/// additional_chat_templates/NAME.jinja.
struct NamedTemplate {
  std::string_view name, text;
};

/// Texts of the files; empty: missing.
struct ChatTemplateFiles {
  std::string_view jinja;     // chat_template.jinja
  std::string_view json;      // chat_template.json, {"chat_template": text or list}
  List<NamedTemplate> named;  // read next to chat_template.jinja
};

/// tokenizer.chat_template, and those with other names as tokenizer.chat_template.NAME, listed in tokenizer.chat_templates. As in
/// llama.cpp's converter (gguf-py, vocab.py), a chat_template of `settings`, tokenizer_config.json, precedes chat_template.jinja with
/// the named ones, and that precedes chat_template.json. Errors: json-invalid.
Status write_chat_templates(const json::Value& settings, const ChatTemplateFiles& files, gguf::Metadata& metadata,
                            DiagnosticList& diagnostics);

}  // namespace wasmquant::conversion
