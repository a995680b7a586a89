// The files a conversion reads, and the tensors of the model that its tensors are made of.
#include "pipeline/model_index/converted_model.h"

#include <numeric>
#include <optional>

#include "core/message.h"
#include "formats/gguf/gguf_split.h"
#include "gguf_conversion/projector.h"
#include "pipeline/model_index/assembled_tensor.h"
#include "pipeline/model_index/expert_tensors.h"

namespace wasmquant {
namespace {

// "mlp.experts.gate_proj.weight" for "mlp.experts.0.gate_proj.weight".
std::string stack_name(std::string name) {
  constexpr std::string_view kFirst = ".experts.0.";
  if (const size_t at = name.find(kFirst); at != name.npos) name.erase(at + kFirst.size() - 2, 2);
  return name;
}

}  // namespace

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
  files.tokenizer.templates.jinja = model.sibling_file("chat_template.jinja");
  files.tokenizer.templates.json = model.sibling_file("chat_template.json");
  for (const auto& [path, text] : model.sibling_files()) {
    constexpr std::string_view kFolder = "additional_chat_templates/", kEnding = ".jinja";
    std::string_view stem = path;
    if (!stem.starts_with(kFolder) || !stem.ends_with(kEnding)) continue;
    stem = stem.substr(kFolder.size(), stem.size() - kFolder.size() - kEnding.size());
    files.tokenizer.templates.named.push_back({stem, text});
  }
  std::string_view pieces = model.sibling_file("tokenizer.model");
  if (pieces.empty()) pieces = model.sibling_file("spiece.model");  // T5's
  files.processors = {model.sibling_file("preprocessor_config.json"), model.sibling_file("processor_config.json")};
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

namespace {

// Of rows that can be read by themselves; nullopt if they cannot.
Result<std::optional<ModelTensor>> joined_rows(const ModelIndex& model, const conversion::ConvertedTensor& tensor) {
  const ModelTensor& first = model.tensors()[tensor.source];
  const bool is_transposed = !tensor.rows.empty() && tensor.rows.front().is_transposed;
  const bool can_join = !tensor.rows.empty() && first.stored.shape.size() > 1 && !tensor.is_logarithm;
  List<ModelTensor> parts;
  List<const ModelTensor*> places;
  for (size_t i = 0; can_join && i < tensor.rows.size(); ++i) {
    const conversion::SourceRows& rows = tensor.rows[i];
    auto part = rows_of(model.tensors()[rows.source], rows.first, rows.count);
    if (!part || rows.is_transposed != is_transposed) return std::optional<ModelTensor>();
    parts.push_back(std::move(*part));
  }
  if (parts.empty()) return std::optional<ModelTensor>();
  if (parts.size() == 1 && !is_transposed) {
    parts.front().stored.shape = tensor.shape;
    return std::optional<ModelTensor>(std::move(parts.front()));
  }
  for (const ModelTensor& part : parts) places.push_back(&part);
  Assembly stacked;
  stacked.rounds = parts.size();
  stacked.takes_turns = true;
  stacked.columns = is_transposed ? first.stored.shape.back() : tensor.shape.back();
  stacked.is_transposed = is_transposed;
  TRY(made, assembled_tensor(stack_name(first.stored.name), tensor.shape, std::move(stacked), places));
  return std::optional<ModelTensor>(std::move(made));
}

// With zeros behind its rows: runs of as many rows, of which those behind the last are empty.
Result<std::optional<ModelTensor>> filled_rows(const ModelIndex& model, const conversion::ConvertedTensor& tensor) {
  const ModelTensor& first = model.tensors()[tensor.source];
  const uint64_t rows = tensor.shape[0] - tensor.empty_rows, run = std::gcd(rows, tensor.empty_rows);
  List<ModelTensor> parts;
  List<const ModelTensor*> places;
  for (uint64_t at = 0; at < rows; at += run) {
    auto part = rows_of(first, at, run);
    if (!part) return std::optional<ModelTensor>();
    parts.push_back(std::move(*part));
  }
  for (const ModelTensor& part : parts) places.push_back(&part);
  Assembly filled;
  filled.rounds = tensor.shape[0] / run;
  filled.takes_turns = true;
  filled.columns = tensor.shape.back();
  TRY(made, assembled_tensor(first.stored.name, tensor.shape, std::move(filled), places));
  return std::optional<ModelTensor>(std::move(made));
}

}  // namespace

Result<ModelTensor> source_of(const ModelIndex& model, const conversion::ConvertedTensor& tensor) {
  const ModelTensor& first = model.tensors()[tensor.source];
  if (!tensor.is_arranged()) return first;
  TRY(joined, tensor.empty_rows != 0 ? filled_rows(model, tensor) : joined_rows(model, tensor));
  if (joined) return std::move(*joined);
  Assembly viewed;
  if (!tensor.factors.empty()) {
    viewed.rounds = tensor.shape.front();
    viewed.columns = tensor.shape.back();
    for (const std::vector<float>& factors : tensor.factors) viewed.scales.push_back({false, factors});
    return assembled_tensor(first.stored.name, tensor.shape, std::move(viewed), {&first});
  }
  viewed.rounds = tensor.rounds;
  viewed.columns = 1;
  viewed.is_logarithm = tensor.is_logarithm;
  viewed.views = tensor.views;
  const uint64_t columns = first.stored.shape.size() < 2 ? 1 : first.stored.shape.back();
  const auto refuse = [&] {
    return error_at(ErrorCode::format_unsupported, first.stored.name,
                    "is quantized, and GGUF has its rows in another tensor or order; start from the unquantized model");
  };
  if (tensor.empty_rows != 0) return refuse();
  for (const conversion::SourceRows& rows : tensor.rows) {
    if (rows.source != tensor.source) return refuse();
    StridedView& view = viewed.views.emplace_back();
    view.offset = rows.first * columns;
    view.sizes = {1, rows.is_transposed ? columns : rows.count, rows.is_transposed ? rows.count : columns};
    view.strides = {0, rows.is_transposed ? 1 : columns, rows.is_transposed ? columns : 1};
  }
  return assembled_tensor(first.stored.name, tensor.shape, std::move(viewed), {&first});
}

Result<conversion::GgufConversion> convert_model(const ModelIndex& model, std::string_view name, bool is_projector,
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
  for (const ModelTensor& tensor : model.tensors())
    tensors.push_back({tensor.stored.name, tensor.stored.shape, tensor.value});
  DiagnosticList remarks;
  auto converted = is_projector ? conversion::convert_projector(files, tensors, remarks)
                                : conversion::convert(files, tensors, remarks);
  for (Diagnostic& d : remarks.take()) diagnostics.push_back(std::move(d));
  return converted;
}

}  // namespace wasmquant
