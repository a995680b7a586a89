#include "pipeline/model_index/converted_model.h"

#include "core/message.h"
#include "formats/gguf/gguf_split.h"

namespace wasmquant {

Result<families::SentenceModules> sentence_modules_of(const ModelIndex& model) {
  class Siblings final : public families::SiblingFiles {
   public:
    explicit Siblings(const ModelIndex& model) : model_(model) {}
    std::string_view sibling_file(std::string_view name) const noexcept override { return model_.sibling_file(name); }

   private:
    const ModelIndex& model_;
  };
  return families::sentence_modules(Siblings(model));
}

Result<conversion::ModelFiles> model_files(const ModelIndex& model, std::string_view name) {
  conversion::ModelFiles files;
  files.name = name;
  files.config = &model.config();
  TRY(modules, sentence_modules_of(model));
  files.modules = std::move(modules);
  files.tokenizer.tokenizer = model.sibling_file("tokenizer.json");
  files.tokenizer.tokenizer_config = model.sibling_file("tokenizer_config.json");
  files.tokenizer.chat_template = model.sibling_file("chat_template.jinja");
  const std::string_view pieces = model.sibling_file("tokenizer.model");
  files.tokenizer.sentencepiece = {reinterpret_cast<const uint8_t*>(pieces.data()), pieces.size()};
  return files;
}

ValueTransform change_of(const conversion::ConvertedTensor& tensor) noexcept {
  ValueTransform change;
  if (tensor.rearrangement == conversion::Rearrangement::interleave) change.interleaved_rows = tensor.head_rows;
  change.is_transposed = tensor.rearrangement == conversion::Rearrangement::transpose;
  change.adds_one = tensor.plus_one;
  return change;
}

Result<conversion::GgufConversion> convert_model(const ModelIndex& model, std::string_view name,
                                                 List<Diagnostic>& diagnostics) {
  if (model.format().has_ggml_names) {
    conversion::GgufConversion same;
    same.metadata = model.gguf_metadata();
    gguf::erase_split_keys(same.metadata);
    for (uint32_t i = 0; i < model.tensors().size(); ++i) {
      conversion::ConvertedTensor& tensor = same.tensors.emplace_back();
      tensor.source = i;
      tensor.name = model.tensors()[i].stored.name;
      tensor.shape = model.tensors()[i].stored.shape;
    }
    return same;
  }
  TRY(files, model_files(model, name));
  if (model.sibling_file("config.json").empty())
    return error_at(ErrorCode::format_unsupported, "config.json",
                    "is missing: it says which model this is. Give the folder of the model, with config.json and the "
                    "tokenizer, or a GGUF file");
  std::vector<conversion::SourceTensor> tensors;
  for (const ModelTensor& tensor : model.tensors()) tensors.push_back({tensor.stored.name, tensor.stored.shape});
  DiagnosticList remarks;
  auto converted = conversion::convert(files, tensors, remarks);
  for (Diagnostic& d : remarks.take()) diagnostics.push_back(std::move(d));
  return converted;
}

}  // namespace wasmquant
