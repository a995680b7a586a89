#include "gguf_conversion/projector.h"

#include <utility>

#include "core/decimal.h"
#include "core/message.h"
#include "families/config_reader.h"
#include "gguf_conversion/architectures/family.h"
#include "gguf_conversion/architectures/hyperparameters.h"
#include "gguf_conversion/tensor_mapper.h"

namespace wasmquant::conversion {
namespace {

// config.json with what a processor's file says as "processor"; its object for images counts before the file.
Status add_processor(std::string_view text, json::Value& config) {
  if (text.empty()) return {};  // there is no such file
  TRY(parsed, json::parse(text));
  json::Value& processor = config.member("processor");
  for (const json::Value* from : {&std::as_const(parsed), std::as_const(parsed).find("image_processor")})
    for (const auto& [name, value] : from == nullptr ? json::Object() : from->members())
      processor.set(name, json::Value(value));
  return {};
}

// -1 if the tokenizer has no such token.
int64_t token_named(const TokenizerFiles& files, std::string_view text) {
  const auto config = json::parse(files.tokenizer_config), tokenizer = json::parse(files.tokenizer);
  const json::Value nothing;
  for (const auto& [number, token] : (config ? *config : nothing)["added_tokens_decoder"].members())
    if (token["content"].as_string() == text) return static_cast<int64_t>(parse_decimal(number));
  for (const json::Value& token : (tokenizer ? *tokenizer : nothing)["added_tokens"].items())
    if (token["content"].as_string() == text) return token["id"].as_integer();
  return -1;
}

// Rows of embeddings that stand for places in an image.
Status add_token_rows(const ModelFiles& files, const MappedModel& model, List<ConvertedTensor>& out) {
  for (size_t i = 0; i < model.tensors.size(); ++i) {
    const SourceTensor& from = model.tensors[i];
    TensorMatch match = match_tensor(model.family, from.name, &model.config);
    if (match.kind != TensorKind::token_row) continue;
    const std::string_view text = match.groups.substr(1);
    const int64_t token = token_named(files.tokenizer, text);
    if (token < 0 || from.shape.size() != 2 || static_cast<uint64_t>(token) >= from.shape[0])
      return error_at(ErrorCode::tensor_missing, "tokenizer.json",
                      "has no added token {q}, whose row of {} a file for images has to have", text, from.name);
    ConvertedTensor& to = out.emplace_back();
    to.source = static_cast<uint32_t>(i);
    to.name = std::move(match.name);
    to.shape = {from.shape[1]};
    to.rows.push_back({to.source, static_cast<uint64_t>(token), 1});
  }
  return {};
}

}  // namespace

Result<GgufConversion> convert_projector(const ModelFiles& files, std::span<const SourceTensor> tensors,
                                         DiagnosticList& diagnostics) {
  if (!*files.config) return files.config->error();
  json::Value config = **files.config;
  const std::string type = config["model_type"].as_string();
  const Family* const family = projector_of(config);
  if (family == nullptr)
    return error_at(
        ErrorCode::format_unsupported, "config.json: /model_type",
        "no file for images (mmproj) can be written for models of type {q}; it can for towers and models of "
        "the types {}",
        type, projector_names());
  for (const std::string_view& text : files.processors)
    if (Status added = add_processor(text, config); !added) {
      Error error = added.error();
      error.where =
          text_of("{}: {}", &text == files.processors.begin() ? "preprocessor_config.json" : "processor_config.json",
                  error.where);
      return error;
    }
  GgufConversion made;
  made.metadata.set_text("general.architecture", architecture_name(*family));
  made.metadata.set_text("general.type", "mmproj");
  if (!files.name.empty()) made.metadata.set_text("general.name", files.name);
  TRY_VOID(write_own_keys(config, *family, made.metadata));
  const families::ConfigReader reader(config, "vision_config");
  Hyperparameters parameters;
  parameters.layers = reader.count("num_hidden_layers|depth").value_or(0);
  parameters.heads = reader.count("num_attention_heads|num_heads").value_or(1);
  parameters.key_value_heads = parameters.heads;
  const MappedModel model{*family, config, parameters, tensors};
  TRY_VOID(map_tensors(model, diagnostics, made.tensors));
  if (made.tensors.empty())
    return error_at(ErrorCode::format_unsupported, "", "no tensor of the model is of a tower for images");
  TRY_VOID(add_token_rows(files, model, made.tensors));
  return made;
}

}  // namespace wasmquant::conversion
