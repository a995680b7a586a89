// Importance of each tensor from a matrix or as a request for calibration; the report of what was used.
#include "pipeline/plan/gguf_importance.h"

#include <algorithm>

#include "core/message.h"
#include "kernels/ggml/ggml_blocks.h"

namespace wasmquant {
namespace {

constexpr size_t kNamesInMessage = 8;
constexpr size_t kMaxTextBytes = 127;  // llama-quantize's limit for a value

/// Also of an encoder and its decoder.
bool is_of_layer(std::string_view name) noexcept {
  return name.starts_with("blk.") || name.starts_with("enc.blk.") || name.starts_with("dec.blk.");
}

/// As in llama-imatrix: inputs of layers, without embedding and head.
bool is_calibrated(std::string_view name, const std::vector<uint64_t>& shape) noexcept {
  return is_of_layer(name) && name.ends_with(".weight") && (shape.size() == 2 || shape.size() == 3);
}

/// Of the inputs of a weight, or of those of each expert in it.
List<ActivationRequest> requests_of(const WeightDescription& weight) {
  List<ActivationRequest> out;
  const bool is_stack = weight.shape.size() == 3;
  for (uint64_t expert = 0; expert < (is_stack ? weight.shape[0] : 1); ++expert) {
    ActivationRequest& request = out.emplace_back();
    request.layer = is_stack ? expert_layer(weight.layer, expert) : weight.layer;
    request.features = weight.shape.back();
    request.importance = true;
    request.may_be_unseen = is_stack;
  }
  return out;
}

// Of the columns in the order of the file, where a conversion takes each row's elements in another one.
void sort_columns(const TensorTask& task, std::vector<float>& sums) {
  if (task.quantized == nullptr || !task.quantized->task.assembly->any()) return;
  const Assembly& made = *task.quantized->task.assembly;
  uint64_t count = 0;
  for (const StridedView& view : made.views) count += view.count();
  if (count != sums.size() || made.rounds != task.layout->rows) return;
  const std::vector<float> found = std::move(sums);
  sums.clear();
  for (const StridedView& view : made.views) view.copy(found, sums);
}

/// What was found for them; without sums if that is nothing.
imatrix::WeightImportance importance_of(const PlannedTensor& planned, const json::Value& found) {
  const WeightDescription& weight = planned.weight;
  imatrix::WeightImportance out;
  for (const ActivationRequest& request : requests_of(weight)) {
    const json::Value& row = found_for(request, found);
    if (row["squares"].items().empty()) return {};
    out.counts.push_back(static_cast<float>(row["count"].as_number()));
    for (const json::Value& sum : row["squares"].items()) out.sums.push_back(static_cast<float>(sum.as_number()));
  }
  sort_columns(planned.task, out.sums);
  const bool any = std::ranges::any_of(out.counts, [](float count) { return count > 0; });
  return any ? out : imatrix::WeightImportance();
}

}  // namespace

GgufImportance::GgufImportance(const PlanOptions& options, const List<RequestedAlgorithm>& algorithms) noexcept
    : options_(options) {
  for (const RequestedAlgorithm& algorithm : algorithms) {
    const auto method = method_named(algorithm.value["name"].as_string());
    is_of_algorithm_ |= method && info_of(*method).kind == AlgorithmKind::rounds &&
                        algorithm.value["inside_layer_modules"].items().empty();
  }
}

Status GgufImportance::read() {
  if (options_.gguf.imatrix.empty()) return {};
  auto matrix = imatrix::read(options_.gguf.imatrix);
  if (!matrix)
    return error_at(matrix.error().code, text_of("imatrix, {}", matrix.error().where), "{}", matrix.error().message);
  matrix_ = std::move(*matrix);
  return {};
}

void GgufImportance::miss(std::string_view name) {
  is_layer_missing_ |= is_of_layer(name);
  if (missing_++ >= kNamesInMessage) return;
  if (!missing_names_.empty()) missing_names_ += ", ";
  missing_names_ += name;
}

Status GgufImportance::weigh(PlannedTensor& planned, std::string_view name, GgmlType type,
                             List<ActivationRequest>& requests) {
  if (!is_given() || planned.task.is_copy || !kernels::uses_importance(type)) return {};
  const std::vector<uint64_t>& shape = planned.weight.shape;
  const uint64_t columns = shape.back();
  if (!matrix_.entries.empty()) {
    const imatrix::WeightImportance* entry = matrix_.find(name);
    const uint64_t needed = shape.size() > 2 ? columns * shape[shape.size() - 3] : columns;
    if (entry == nullptr) {
      miss(name);
    } else if (entry->sums.size() != needed) {
      if (is_of_layer(name))
        return error_at(
            ErrorCode::shape_mismatch, name,
            "the importance matrix has {} columns for it, the tensor has {}: the matrix belongs to another model",
            uint64_t{entry->sums.size()}, needed);
      miss(name);  // embedding or head
    } else {
      planned.task.importance = entry->means();
      ++used_;
    }
    return {};
  }
  if (!is_calibrated(name, shape)) {
    miss(name);
    return {};
  }
  if (is_of_algorithm_) {
    ++used_;
    return {};
  }
  if (imatrix::WeightImportance found = importance_of(planned, options_.activations); !found.sums.empty())
    planned.task.importance = found.means();
  // Gates and ups of one tensor may become two, which see the same.
  List<ActivationRequest> asked = requests_of(planned.weight);
  const bool is_asked = requests.size() >= asked.size() && !asked.empty() &&
                        requests[requests.size() - asked.size()].layer == asked.front().layer;
  for (ActivationRequest& request : asked)
    if (!is_asked) requests.push_back(std::move(request));
  ++used_;
  return {};
}

void GgufImportance::describe(gguf::Metadata& metadata) const {
  if (matrix_.entries.empty()) return;
  const auto text = [&](std::string_view key, std::string_view value) {
    if (!value.empty()) metadata.set_text(key, value.substr(0, kMaxTextBytes));
  };
  text("quantize.imatrix.file", options_.gguf.imatrix_name);
  text("quantize.imatrix.dataset", matrix_.dataset);
  metadata.set_u32("quantize.imatrix.entries_count", static_cast<uint32_t>(matrix_.entries.size()));
  if (matrix_.chunks > 0) metadata.set_u32("quantize.imatrix.chunks_count", static_cast<uint32_t>(matrix_.chunks));
}

Status GgufImportance::report(std::string_view recipe, List<Diagnostic>& diagnostics) const {
  if (!is_given()) return {};
  const bool is_matrix = !matrix_.entries.empty();
  if (used_ == 0 && is_matrix && is_layer_missing_)
    return error_at(ErrorCode::argument_invalid, "imatrix",
                    "has {} weights, such as {q}, and none of those that could use it, such as {}: it belongs to "
                    "another model",
                    uint64_t{matrix_.entries.size()}, matrix_.entries.front().name, missing_names_);
  if (used_ == 0) {
    if (is_matrix)
      diagnostics.push_back({Severity::note, "importance-unused", "imatrix",
                             text_of("no tensor of {} has a type that uses importance", recipe), ""});
    return {};
  }
  std::string message = text_of("{} tensors are quantized by {}", used_,
                                is_matrix          ? "the importance of their columns, from the matrix that was given"
                                : is_of_algorithm_ ? "the error of what they make of their inputs, from calibration"
                                                   : "the importance of their columns, from calibration");
  if (missing_ != 0) message += text_of("; it has none for {}", missing_names_);
  if (missing_ > kNamesInMessage) message += text_of(" and {} more", missing_ - kNamesInMessage);
  diagnostics.push_back({is_layer_missing_ ? Severity::warning : Severity::note, "importance-used",
                         is_matrix ? "imatrix" : "calibration", std::move(message), ""});
  return {};
}

Result<std::string> write_imatrix(const Plan& plan, const json::Value& found, const ImatrixOptions& options) {
  imatrix::Matrix matrix;
  matrix.dataset = options.dataset;
  if (!options.version.empty()) matrix.properties.emplace_back(kVersionKey, options.version);
  uint64_t tokens = 0;
  for (const PlannedTensor& planned : plan.tensors) {
    if (!is_calibrated(planned.task.name, planned.weight.shape)) continue;
    imatrix::WeightImportance entry = importance_of(planned, found);
    if (entry.sums.empty()) continue;
    for (const float count : entry.counts) tokens = std::max(tokens, static_cast<uint64_t>(count));
    entry.name = planned.task.name;
    matrix.entries.push_back(std::move(entry));
  }
  if (matrix.entries.empty())
    return error_at(ErrorCode::argument_invalid, "calibration", "shows the inputs of no layer that GGUF quantizes");
  matrix.chunk_size = options.chunk_size != 0 ? options.chunk_size : tokens;
  matrix.chunks = (tokens + matrix.chunk_size - 1) / std::max<uint64_t>(matrix.chunk_size, 1);
  return imatrix::write(matrix, options.format);
}

}  // namespace wasmquant
