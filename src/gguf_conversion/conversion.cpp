// The steps of a conversion: the family, metadata, tensors, tokenizer.
#include "gguf_conversion/conversion.h"

#include <utility>

#include "core/message.h"
#include "families/table/forward_row.h"
#include "gguf_conversion/architectures/family.h"
#include "gguf_conversion/architectures/hyperparameters.h"
#include "gguf_conversion/tensor_mapper.h"
#include "runtimes/llama_cpp/limits.h"

namespace wasmquant::conversion {
namespace {

class Converter {
 public:
  Converter(const ModelFiles& files, std::span<const SourceTensor> tensors, DiagnosticList& diagnostics)
      : files_(files), tensors_(tensors), diagnostics_(diagnostics) {}

  Result<GgufConversion> run() {
    if (!*files_.config) {
      Error error = files_.config->error();
      error.where = text_of("config.json: {}", error.where);
      return error;
    }
    const json::Value& config = **files_.config;
    TRY_VOID(find_family(config));
    gguf::Metadata& metadata = out_.metadata;
    metadata.set_text("general.architecture", family_->architecture);
    metadata.set_text("general.type", "model");
    if (!files_.name.empty()) metadata.set_text("general.name", files_.name);
    TRY_VOID(write_own_keys(config, *family_, metadata));
    TRY(parameters, write_hyperparameters(config, *family_, metadata));
    parameters_ = parameters;
    llama_cpp::warn_of_config(config, *family_, parameters_, diagnostics_);
    llama_cpp::warn_of_modules(files_.modules, diagnostics_);
    if (const uint32_t pooling = llama_cpp::pooling_type(files_.modules, diagnostics_); pooling != 0)
      metadata.set_u32(text_of("{}.pooling_type", family_->architecture), pooling);
    TRY_VOID(map_tensors({*family_, config, parameters_, tensors_}, diagnostics_, out_.tensors));
    uint64_t vocabulary = 0;
    for (const ConvertedTensor& tensor : out_.tensors)
      if (tensor.name == kTokenEmbedding) vocabulary = tensor.shape[0];
    if (vocabulary == 0)
      return error_at(ErrorCode::tensor_missing, kTokenEmbedding, "no tensor of the model is its token embedding");
    metadata.set_u32(text_of("{}.vocab_size", family_->architecture), static_cast<uint32_t>(vocabulary));
    TokenizerFiles tokenizer = files_.tokenizer;
    tokenizer.has_byte_merges = family_->converts_with(families::kByteMerges);
    TRY_VOID(write_tokenizer(tokenizer, config, vocabulary, metadata, diagnostics_));
    List<NamedNumber> numbers;
    for (const SourceTensor& tensor : tensors_)
      if (tensor.value) numbers.push_back({tensor.name, *tensor.value});
    TRY_VOID(write_dependent_keys(config, *family_, parameters_, {numbers.data(), numbers.size()}, metadata));
    if (family_->converts_with(families::kBidirectional)) write_bert();
    if (family_->converts_with(families::kFactors)) add_rope_factors(config);
    return std::move(out_);
  }

 private:
  Status find_family(const json::Value& config) {
    family_ = family_of(config);
    if (family_ != nullptr) return {};
    const std::string_view type = config["model_type"].as_string();
    return error_at(ErrorCode::format_unsupported, "config.json: /model_type",
                    "models of type {q} cannot be written to GGUF; {}. Every checkpoint format takes them, such as "
                    "compressed-tensors, quark and fake-quantized{}",
                    type, families_near(type),
                    is_run(type) ? "" : "; evaluate, generate, imatrix and configs that calibrate do not run them");
  }

  static bool is_run(std::string_view type) noexcept {
    for (const families::forward::Row& row : families::forward::kRows)
      if (type == row.model_type) return true;
    return false;
  }

  void write_bert() {
    for (const ConvertedTensor& tensor : out_.tensors)
      if (tensor.name == "token_types.weight" && tensor.shape.size() == 2)
        out_.metadata.set_u32("tokenizer.ggml.token_type_count", static_cast<uint32_t>(tensor.shape[0]));
  }

  void add_rope_factors(const json::Value& config) {
    std::string data = rope_factors(config, parameters_.head_width);
    if (data.empty()) return;
    ConvertedTensor& tensor = out_.tensors.emplace_back();
    tensor.name = "rope_freqs.weight";
    tensor.shape = {data.size() / sizeof(float)};
    tensor.data = std::move(data);
  }

  const ModelFiles& files_;
  const std::span<const SourceTensor> tensors_;
  DiagnosticList& diagnostics_;
  const Family* family_ = nullptr;
  Hyperparameters parameters_;
  GgufConversion out_;
};

}  // namespace

Result<GgufConversion> convert(const ModelFiles& files, std::span<const SourceTensor> tensors,
                               DiagnosticList& diagnostics) {
  return Converter(files, tensors, diagnostics).run();
}

}  // namespace wasmquant::conversion
