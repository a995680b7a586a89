// Names, shapes and order of rows: each source tensor by its row of the tables.
#include "gguf_conversion/tensor_mapper.h"

#include <utility>

#include "core/message.h"
#include "core/order.h"
#include "families/config_reader.h"
#include "families/module_path.h"
#include "gguf_conversion/tensors/arranged_tensors.h"
#include "gguf_conversion/tensors/expert_stacks.h"
#include "runtimes/llama_cpp/texts.h"

namespace wasmquant::conversion {
namespace {

// Names, shapes and order of rows of the tensors that GGUF has a place for.
class TensorMapper {
 public:
  TensorMapper(const MappedModel& model, DiagnosticList& diagnostics, List<ConvertedTensor>& out)
      : family_(model.family),
        config_(model.config),
        parameters_(model.parameters),
        tensors_(model.tensors),
        diagnostics_(diagnostics),
        out_(out),
        arranged_(LayoutSizes(model.config, model.parameters)) {}

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
                        "this tensor has no place in a GGUF model of type {}", architecture_name(family_));
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
      if (match.kind == TensorKind::token_row) continue;
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
      diagnostics_.warning("tensors-left-out", "",
                           text_of("{} tensors for images or sound are left out: this is the language model", left_out),
                           projector_of(config_) == nullptr
                               ? ""
                               : "write them to a file of their own, which goes with this one: --mmproj");
    return check_unique();
  }

 private:
  Status add(uint32_t source, TensorMatch& match) {
    const SourceTensor& from = tensors_[source];
    ConvertedTensor& to = out_.emplace_back();
    to.source = source;
    to.name = std::move(match.name);
    to.shape.assign(from.shape.begin(), from.shape.end());
    to.half = match.half;
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
    const uint64_t tokens = families::ConfigReader(config_).count("vocab_size").value_or(0);
    if (kind == TensorKind::all_tokens && to.shape.size() == 2 && tokens > to.shape[0]) {
      to.empty_rows = tokens - to.shape[0];
      to.shape[0] = tokens;
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

}  // namespace

Status map_tensors(const MappedModel& model, DiagnosticList& diagnostics, List<ConvertedTensor>& out) {
  return TensorMapper(model, diagnostics, out).run();
}

}  // namespace wasmquant::conversion
