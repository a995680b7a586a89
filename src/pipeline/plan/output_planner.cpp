// The order of steps, errors with their places, and the remarks that all formats make.
#include "pipeline/plan/output_planner.h"

#include <algorithm>

#include "core/message.h"
#include "pipeline/plan/coverage.h"
#include "pipeline/task/tensor_scales.h"

namespace wasmquant {
namespace {

// One tile and the persistent scales must fit a 32-bit memory together with everything else.
Status check_memory(const TensorTask& task) {
  if (task.is_copy) return {};
  const WeightLayout& layout = task.layout;
  TRY_VOID(TensorScales::check(layout, task.name));
  const uint64_t tile_elements = std::min(task.tile_lines, layout.lines()) * layout.line_elements();
  const uint64_t kept_scales = TensorScales::needed(layout) ? layout.granularity.scale_count() : 0;
  if (tile_elements <= kMaxTileElements && kept_scales <= kMaxTileElements) return {};
  return error_at(
      ErrorCode::format_unsupported, task.name,
      "its smallest tile in this format has {} elements, and {} scales are kept between passes; the limit is "
      "{} each, for any memory budget. Choose another format or scheme, or exclude the layer",
      tile_elements, kept_scales, kMaxTileElements);
}

// Adds the tensor and the deciding config key to the error.
Error with_place(const PlannedTensor& planned, Error error) {
  if (error.where.empty()) error.where = planned.task.name;
  const std::string& pointer = planned.reason->where;
  if (!pointer.empty()) error.message += text_of("; asked for by {}", pointer);
  return error;
}

std::string group_text(int64_t size) { return text_of("group size {}", size); }

QuantizationSpec with_fitting_groups(const QuantizationSpec& spec, uint64_t axis_length, int64_t largest) {
  QuantizationSpec fitting = spec;
  for (const int64_t size : {int64_t{128}, int64_t{64}, int64_t{32}}) {
    if (size < spec.group_size && size <= largest && axis_length % static_cast<uint64_t>(size) == 0) {
      fitting.group_size = size;
      return fitting;
    }
  }
  // Scales in e4m3 and MX integers have groups only.
  const bool is_mx_integer = info_of(spec.dtype).is_integer && spec.scale_format == ScaleFormat::e8m0;
  if (spec.scale_format == ScaleFormat::e4m3 || is_mx_integer) {
    fitting.group_size = static_cast<int64_t>(axis_length);
    return fitting;
  }
  fitting.qscheme = QScheme::per_channel;
  fitting.observer = ObserverId::PerChannelMinMaxObserver;
  fitting.ch_axis = 0;
  fitting.group_size = 0;
  return fitting;
}

}  // namespace

std::string cache_request_of(const Config& config) {
  const bool has_entries = std::any_of(config.kv_cache.begin(), config.kv_cache.end(),
                                       [](const auto& entry) { return !entry.second.output_tensors.empty(); });
  if (has_entries) return text_of("{}/kv_cache_quant_config", config.where);
  const bool has_scheme = !config.cache.empty() || !config.source["kv_cache_scheme"].is_null();
  return has_scheme ? text_of("{}/kv_cache_scheme", config.where) : std::string();
}

OutputPlanner::OutputPlanner(std::string_view format, const ModelIndex& model, const Config& config,
                             const PlanOptions& options, List<Diagnostic>& diagnostics)
    : model_(model),
      config_(config),
      options_(options),
      diagnostics_(diagnostics),
      requested_(requested_algorithms(config)) {
  plan_.format = format;
}

Result<Plan> OutputPlanner::run() {
  if (Status prepared = prepare(); !prepared) return of_model(std::move(prepared.error()));
  add_tensors();
  for (uint32_t i = 0; i < plan_.tensors.size(); ++i) plan_.work.push_back(i);
  report();
  if (std::string asked = plans_cache() ? std::string() : cache_request_of(config_); !asked.empty())
    warn("not-applied", std::move(asked),
         text_of("not applied: the key-value cache keeps its dtype, because {} has no place for its scales",
                 plan_.format),
         "remove the key");
  if (doubles_.count != 0)
    note("float64-read", doubles_.first,
         text_of("is the first of {} tensors in float64: their values are rounded to float32 before anything else",
                 doubles_.count));
  if (failures_ == 0 && first_left_ && plan_.quantized_count == cast_count_) fail(std::move(*first_left_));
  if (failures_ > 1) first_failure_.message += text_of(" (and {} more tensors, see diagnostics)", failures_ - 1);
  if (failures_ != 0) return std::move(first_failure_);
  if (Status placed = place_files(); !placed) return of_model(std::move(placed.error()));
  const Coverage coverage = coverage_of(plan_, model_);
  if (does_nothing())
    put_first(nothing_quantized_error(coverage, coverage_hint()));
  else if (expects_coverage() && coverage.is_low())
    put_first(low_coverage_warning(coverage, coverage_hint()));
  return std::move(plan_);
}

// An error without a tensor belongs to the model.
Error OutputPlanner::of_model(Error error) const {
  if (error.where.empty()) error.where = model_.files().front().name;
  return error;
}

PlannedTensor& OutputPlanner::begin(uint32_t index, const ModelTensor& tensor) {
  const StoredTensor& stored = tensor.stored;
  PlannedTensor& planned = plan_.tensors.emplace_back();
  planned.tensor = index;
  planned.weight.layer = tensor.layer;
  planned.weight.layer_type = tensor.layer_type;
  planned.weight.shape = stored.shape;
  planned.weight.source = stored.dtype;
  TensorTask& task = planned.task;
  task.name = stored.name;
  task.source = {tensor.file, stored.begin};
  task.source_bytes = stored.end - stored.begin;
  task.source_pitch = tensor.pitch;
  task.quantized = tensor.quantized;
  task.non_finite = config_.non_finite;
  return planned;
}

void OutputPlanner::copies_source(PlannedTensor& planned) {
  TensorTask& task = planned.task;
  task.is_copy = true;
  WeightLayout layout;
  Component& bytes = layout.components.emplace_back();
  bytes.set_name(task.name, planned.weight.layer);
  bytes.dtype = planned.weight.source;
  bytes.shape = planned.weight.shape;
  bytes.bytes = task.source_bytes;
  task.layout = std::move(layout);
}

void OutputPlanner::finish(PlannedTensor& planned, Status chosen) {
  if (chosen) {
    set_tiles(planned.task, options_.tile_bytes);
    chosen = check_memory(planned.task);
  }
  if (chosen)
    count(planned);
  else
    fail(planned, std::move(chosen.error()));
}

void OutputPlanner::count(PlannedTensor& planned) {
  if (planned.weight.source == StorageDtype::F64 && !planned.task.is_copy) doubles_.add(planned.task.name);
  for (const Component& component : planned.outputs()) planned.bytes_after += component.bytes;
  for (const ConstantTensor& known : planned.activations) planned.bytes_after += known.component.bytes;
  plan_.tensor_bytes += planned.bytes_after;
  if (!is_quantized(planned)) return;
  uint64_t elements = 1;
  for (const uint64_t length : planned.weight.shape) elements *= length;
  ++plan_.quantized_count;
  cast_count_ += planned.task.layout->codes == CodeStorage::cast_values;
  plan_.quantized_elements += elements;
  plan_.quantized_bytes += planned.bytes_after;
}

void OutputPlanner::add_bytes(PlannedTensor& planned, uint64_t bytes) {
  planned.bytes_after += bytes;
  plan_.tensor_bytes += bytes;
  if (is_quantized(planned)) plan_.quantized_bytes += bytes;
}

QuantizationSpec OutputPlanner::fall_back(const QuantizationSpec& spec, uint64_t axis_length, PlannedTensor& planned,
                                          int64_t largest) {
  const QuantizationSpec fitting = with_fitting_groups(spec, axis_length, largest);
  const std::string instead =
      fitting.qscheme == QScheme::per_channel ? "one scale per channel" : group_text(fitting.group_size);
  planned.add_reason(text_of("; {} does not divide {}, so {}", group_text(spec.group_size), axis_length, instead));
  note("group-fallback", planned.task.name,
       text_of("{} does not divide {}; {} is used here", group_text(spec.group_size), axis_length, instead),
       "set \"indivisible_groups\": \"error\" to refuse instead");
  return fitting;
}

void OutputPlanner::fail(const PlannedTensor& planned, Error error) { fail(with_place(planned, std::move(error))); }

void OutputPlanner::fail(Error error) {
  error = of_model(std::move(error));
  if (failures_++ == 0) first_failure_ = error;
  diagnostics_.push_back({Severity::error, error.code, std::move(error.where), std::move(error.message), ""});
}

void OutputPlanner::warn(DiagnosticCode code, std::string where, std::string message, std::string_view hint) {
  diagnostics_.push_back({Severity::warning, code, std::move(where), std::move(message), hint});
}

void OutputPlanner::note(DiagnosticCode code, std::string where, std::string message, std::string_view hint) {
  diagnostics_.push_back({Severity::note, code, std::move(where), std::move(message), hint});
}

void OutputPlanner::leave(const PlannedTensor& planned, Error error) {
  left_.add(planned.task.name);
  if (!first_left_) first_left_ = with_place(planned, std::move(error));
}

void OutputPlanner::report_requantized() {
  if (requantized_.count == 0) return;
  warn("requantized", requantized_.first,
       text_of("is the first of {} tensors that were quantized already; rounding them again costs precision",
               requantized_.count),
       "start from F32, F16 or BF16 where you can");
}

// For people who read one line only.
void OutputPlanner::put_first(Diagnostic diagnostic) {
  List<Diagnostic> all = {std::move(diagnostic)};
  for (Diagnostic& d : diagnostics_) all.push_back(std::move(d));
  diagnostics_ = std::move(all);
}

}  // namespace wasmquant
