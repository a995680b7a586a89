// The steps of a conversion: the family, metadata, tensors, tokenizer.
#include "gguf_conversion/conversion.h"

#include <utility>

#include "core/message.h"
#include "core/order.h"
#include "families/module_path.h"
#include "families/table/forward_row.h"
#include "gguf_conversion/architectures/family.h"
#include "gguf_conversion/architectures/hyperparameters.h"
#include "gguf_conversion/tensors/arranged_tensors.h"
#include "gguf_conversion/tensors/expert_stacks.h"
#include "runtimes/llama_cpp/limits.h"
#include "runtimes/llama_cpp/texts.h"

namespace wasmquant::conversion {
namespace {

constexpr std::string_view kTokenEmbedding = "token_embd.weight";

// Names, shapes and order of rows of the tensors that GGUF has a place for.
class TensorMapper {
 public:
  TensorMapper(const Family& family, const json::Value& config, const Hyperparameters& parameters,
               std::span<const SourceTensor> tensors, DiagnosticList& diagnostics, List<ConvertedTensor>& out)
      : family_(family),
        config_(config),
        parameters_(parameters),
        tensors_(tensors),
        diagnostics_(diagnostics),
        out_(out),
        arranged_(LayoutSizes(config, parameters)) {}

  Status run() {
    uint64_t left_out = 0, predictors = 0, cache_scales = 0;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const SourceTensor& tensor = tensors_[i];
      if (families::is_cache_scale(tensor.name)) {
        ++cache_scales;
        continue;
      }
      TensorMatch match = match_tensor(family_, tensor.name, &config_);
      if (!match.is_known)
        return error_at(ErrorCode::format_unsupported, tensor.name,
                        "this tensor has no place in a GGUF model of type {}", family_.architecture);
      const bool is_beyond = match.layer >= static_cast<int64_t>(parameters_.layers);
      if (is_beyond && family_.converts_with(families::kSkipsMore)) {
        ++predictors;
        continue;
      }
      if (is_beyond)
        return error_at(ErrorCode::shape_mismatch, tensor.name, "config.json says that the model has {} layers",
                        parameters_.layers);
      left_out += match.kind == TensorKind::other_modality ? 1 : 0;
      predictors += match.kind == TensorKind::predictor ? 1 : 0;
      const auto source = static_cast<uint32_t>(i);
      if (match.expert >= 0)
        stacks_.add(source, match);
      else if (ArrangedTensors::covers(match))
        TRY_VOID(arranged_.add(source, tensor, match, out_));
      else if (!match.name.empty())
        TRY_VOID(add(source, match));
    }
    TRY_VOID(stacks_.finish(tensors_, out_));
    if (cache_scales > 0) diagnostics_.warning("cache-scales", "", text_of(llama_cpp::kNoCacheScales, cache_scales));
    if (predictors > 0)
      diagnostics_.warning("tensors-left-out", "",
                           text_of("{} tensors that predict more than the next token are left out", predictors));
    if (left_out > 0)
      diagnostics_.warning(
          "tensors-left-out", "",
          text_of("{} tensors for images or sound are left out: this is the language model", left_out));
    return check_unique();
  }

 private:
  Status add(uint32_t source, TensorMatch& match) {
    const SourceTensor& from = tensors_[source];
    ConvertedTensor& to = out_.emplace_back();
    to.source = source;
    to.name = std::move(match.name);
    to.shape.assign(from.shape.begin(), from.shape.end());
    const TensorKind kind = match.kind;
    to.plus_one =
        kind == TensorKind::norm && to.name.ends_with(".weight") && family_.converts_with(families::kAddsOneToNorms);
    if ((kind == TensorKind::query || kind == TensorKind::key) && family_.converts_with(families::kInterleavesHeads)) {
      const uint64_t heads = kind == TensorKind::query ? parameters_.heads : parameters_.key_value_heads;
      const uint64_t rows = from.shape.empty() ? 0 : from.shape[0];
      if (rows == 0 || rows % (2 * heads) != 0 || rows / heads > ~uint32_t{0})
        return error_at(ErrorCode::shape_mismatch, from.name, "{} rows are not {} heads of an even number of rows",
                        rows, heads);
      to.rearrangement = Rearrangement::interleave;
      to.head_rows = static_cast<uint32_t>(rows / heads);
    } else if (kind == TensorKind::conv1d && to.shape.size() == 2) {
      to.rearrangement = Rearrangement::transpose;
      std::swap(to.shape[0], to.shape[1]);
    } else if (kind == TensorKind::short_conv && to.shape.size() == 3 && to.shape[1] == 1) {
      to.shape.erase(to.shape.begin() + 1);
    }
    if (to.name == kTokenEmbedding && (to.shape.size() != 2 || to.shape[0] > ~uint32_t{0}))
      return error_at(ErrorCode::shape_mismatch, from.name, "a token embedding is a matrix of less than 2^32 rows");
    return {};
  }

  Status check_unique() const {
    if (const auto twice = first_repeated(out_.size(), [&](uint32_t i) -> std::string_view { return out_[i].name; }))
      return error_at(ErrorCode::tensor_duplicate, tensors_[out_[*twice].source].name,
                      "another tensor of the model has the same place in GGUF ({})", out_[*twice].name);
    return {};
  }

  const Family& family_;
  const json::Value& config_;
  const Hyperparameters& parameters_;
  const std::span<const SourceTensor> tensors_;
  DiagnosticList& diagnostics_;
  List<ConvertedTensor>& out_;
  const ArrangedTensors arranged_;
  ExpertStacks stacks_;
};

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
    TRY_VOID(TensorMapper(*family_, config, parameters_, tensors_, diagnostics_, out_.tensors).run());
    uint64_t vocabulary = 0;
    for (const ConvertedTensor& tensor : out_.tensors)
      if (tensor.name == kTokenEmbedding) vocabulary = tensor.shape[0];
    if (vocabulary == 0)
      return error_at(ErrorCode::tensor_missing, kTokenEmbedding, "no tensor of the model is its token embedding");
    metadata.set_u32(text_of("{}.vocab_size", family_->architecture), static_cast<uint32_t>(vocabulary));
    TokenizerFiles tokenizer = files_.tokenizer;
    tokenizer.has_byte_merges = family_->converts_with(families::kByteMerges);
    TRY_VOID(write_tokenizer(tokenizer, config, vocabulary, metadata, diagnostics_));
    TRY_VOID(write_dependent_keys(config, *family_, parameters_, metadata));
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
