#include "model_objects.h"

#include <algorithm>

#include "core/list.h"
#include "onnx_graph/onnx_outputs.h"
#include "pipeline/comparison/comparison.h"
#include "pipeline/comparison/comparison_json.h"
#include "pipeline/model_index/onnx_values.h"
#include "pipeline/plan/gguf_importance.h"
#include "pipeline/plan_output/output_config.h"
#include "pipeline/plan_output/plan_json.h"
#include "pipeline/stored/dequantized_view.h"
#include "version.h"

namespace wasmquant::bindings {

json::Value reads_json(const List<TileRead>& reads) {
  json::Array out;
  for (const TileRead& read : reads) {
    json::Value row;
    row.set("part", static_cast<int64_t>(read.part));
    row.set("file", static_cast<int64_t>(read.file));
    row.set("begin", read.begin);
    row.set("rowBytes", read.row_bytes);
    row.set("stride", read.stride);
    row.set("rows", read.rows);
    row.set("pointer", address(read.pointer));
    out.push_back(std::move(row));
  }
  return out;
}

TileBytes tile_bytes_of(const json::Value& options) {
  TileBytes bytes;
  if (const json::Value& rows = options["tileBytes"]; rows.is_integer())
    bytes.rows = static_cast<uint64_t>(rows.as_integer());
  if (const json::Value& columns = options["columnTileBytes"]; columns.is_integer())
    bytes.columns = static_cast<uint64_t>(columns.as_integer());
  return bytes;
}

namespace {

void append(List<double>& out, const kernels::ErrorSums& sums) {
  for (const double value :
       {sums.signal, sums.quantized, sums.noise, static_cast<double>(sums.max_abs), static_cast<double>(sums.count),
        static_cast<double>(sums.x_not_finite), static_cast<double>(sums.y_not_finite)})
    out.push_back(value);
}

Result<Plan> plan_with(const ModelIndex& model, const std::string& config, const std::string& options_text,
                       List<Diagnostic>& diagnostics) {
  TRY(options_json, json::parse(options_text));
  PlanOptions options;
  options.version = kVersion;
  if (const json::Value& format = options_json["format"]; format.is_string()) options.format = format.as_string();
  if (const json::Value& name = options_json["name"]; name.is_string()) options.name = name.as_string();
  options.include_towers = options_json["include_towers"].as_bool();
  options.include_experts = options_json["include_experts"].as_bool();
  options.tile_bytes = tile_bytes_of(options_json);
  options.calibrates = options_json["calibrates"].as_bool();
  options.activations = options_json["activations"];
  options.constants = {pointer<const uint8_t>(static_cast<Address>(options_json["constants"].as_integer())),
                       static_cast<size_t>(options_json["constantsBytes"].as_integer())};
  const json::Value& onnx = options_json["onnx"];
  options.onnx.qdq = onnx["qdq"].as_bool();
  options.onnx.accuracy_level = static_cast<uint32_t>(onnx["accuracyLevel"].as_integer());
  options.onnx.external_data = onnx["externalData"].as_bool();
  options.onnx.file = options_json["file"].as_string();
  options.onnx.folder = options_json["folder"].as_bool();
  const json::Value& gguf = options_json["gguf"];
  options.gguf.imatrix = {pointer<const uint8_t>(static_cast<Address>(gguf["imatrix"].as_integer())),
                          static_cast<size_t>(gguf["imatrixBytes"].as_integer())};
  options.gguf.imatrix_name = gguf["imatrixName"].as_string();
  options.gguf.shard_bytes = static_cast<uint64_t>(gguf["shardBytes"].as_integer());
  return make_plan(model, config, options, diagnostics);
}

}  // namespace

json::Value writes_json(std::span<const TileWrite> writes, std::span<const kernels::ErrorSums> sums,
                        List<double>& numbers) {
  json::Array rows;
  for (const TileWrite& write : writes) {
    json::Value row;
    row.set("file", static_cast<int64_t>(write.file));
    row.set("offset", write.offset);
    row.set("pointer", address(write.pointer));
    row.set("bytes", write.bytes);
    rows.push_back(std::move(row));
  }
  numbers.clear();
  for (const kernels::ErrorSums& unit : sums) append(numbers, unit);
  json::Value out;
  out.set("writes", std::move(rows));
  out.set("sums", address(numbers.data()));
  out.set("units", static_cast<uint64_t>(sums.size()));
  return out;
}

std::string BoundModelIndex::need(uint32_t file, Address bytes, uint32_t length) {
  if (index_.is_fed(file, {pointer<const uint8_t>(bytes), length})) {
    json::Value out;
    out.set("isFed", true);
    return ok(std::move(out));
  }
  const auto need = index_.need(file, {pointer<const uint8_t>(bytes), length});
  if (!need) return fail(need.error());
  json::Value out;
  out.set("need", *need);
  return ok(std::move(out));
}

std::string BoundModelIndex::read(uint32_t file, Address bytes, uint32_t length) {
  return reply(index_.read(file, {pointer<const uint8_t>(bytes), length}));
}

std::string BoundModelIndex::feed(uint32_t file, Address bytes, uint32_t length) {
  const auto need = index_.feed(file, {pointer<const uint8_t>(bytes), length});
  if (!need) return fail(need.error());
  json::Value out;
  out.set("offset", need->offset);
  out.set("bytes", need->bytes);
  if (need->bytes == 0) {
    json::Array locations, deflated;
    if (index_.onnx() != nullptr)
      for (const std::string_view name : index_.onnx()->model().locations) locations.emplace_back(name);
    for (const npz::Deflated& array : index_.deflated()) {
      json::Value& row = deflated.emplace_back();
      row.set("name", array.name);
      row.set("begin", array.begin);
      row.set("end", array.end);
      row.set("bytes", array.bytes);
      row.set("crc", uint64_t{array.crc});
    }
    out.set("locations", std::move(locations));
    out.set("deflated", std::move(deflated));
  }
  return ok(std::move(out));
}

std::string BoundModelIndex::read_shard_map(std::string text) {
  const auto files = index_.read_shard_map(text);
  if (!files) return fail(files.error());
  json::Value out;
  out.set("files", json::Array(files->begin(), files->end()));
  return ok(std::move(out));
}

std::string BoundModelIndex::finish() {
  const Status status = index_.finish();
  return status ? ok(index_.to_json()) : fail(status.error());
}

std::string BoundModelIndex::layer_values() const {
  if (index_.onnx() != nullptr) return ok(wasmquant::layer_values(*index_.onnx()));
  return fail(error_at(ErrorCode::format_unsupported, "model", "is not ONNX"));
}

std::string BoundModelIndex::added_outputs(std::string text) {
  const auto names = json::parse(text);
  if (!names) return fail(names.error());
  List<std::string> values;
  for (const json::Value& name : names->items()) values.push_back(name.as_string());
  outputs_ = conversion::added_outputs({values.data(), values.size()});
  json::Value out;
  out.set("pointer", address(outputs_.data()));
  out.set("bytes", static_cast<uint64_t>(outputs_.size()));
  return ok(std::move(out));
}

BoundPlan::BoundPlan(const BoundModelIndex& model, const std::string& config, const std::string& options)
    : original_(original_model(model.index())),
      model_(original_ && *original_ ? original_->get() : &model.index()),
      plan_(original_ ? plan_with(*model_, config, options, diagnostics_) : Result<Plan>(original_.error())) {}

std::string BoundPlan::error() const { return plan_ ? ok(nullptr) : fail(plan_.error(), diagnostics_); }

std::string BoundPlan::to_json() const { return plan_ ? ok(plan_json(*plan_, *model_, diagnostics_)) : error(); }

std::string BoundPlan::task(uint32_t index) const {
  if (!plan_ || index >= plan_->task_count()) return "";
  const size_t work = plan_->work_of(index);
  static const WeightDescription kNone;
  return write_task(plan_->task_of(work), plan_->format,
                    work < plan_->tensors.size() ? plan_->tensors[work].weight : kNone);
}

std::string BoundPlan::file_literals(uint32_t file) const {
  if (!plan_ || file >= plan_->files.size())
    return fail(error_at(ErrorCode::argument_invalid, "file", "no such output file"));
  const PlannedFile& planned = plan_->files[file];
  json::Array places;
  const auto add = [&](const Literal& literal) {
    json::Array& place = places.emplace_back(json::Array{}).items();
    place.emplace_back(literal.offset);
    place.emplace_back(literal.begin);
    place.emplace_back(literal.bytes);
  };
  for (const Literal& literal : planned.literals) add(literal);
  if (planned.literals.empty()) add({0, 0, planned.prefix.size()});
  json::Value out;
  out.set("pointer", address(planned.prefix.data()));
  out.set("bytes", static_cast<uint64_t>(planned.prefix.size()));
  out.set("places", std::move(places));
  return ok(std::move(out));
}

std::string BoundPlan::activation_requests() const { return plan_ ? write_requests(plan_->requests) : std::string(); }

std::string BoundPlan::constants() const {
  json::Array ranges;
  if (plan_)
    for (const SourceRange& range : plan_->constants) {
      json::Value& row = ranges.emplace_back();
      row.set("file", static_cast<int64_t>(range.at.file));
      row.set("begin", range.at.offset);
      row.set("bytes", range.bytes);
    }
  return ok(std::move(ranges));
}

std::string BoundPlan::importance_matrix(std::string text) {
  const auto options = json::parse(text);
  if (!plan_ || !options) return plan_ ? fail(options.error()) : error();
  ImatrixOptions given;
  given.version = kVersion;
  if ((*options)["dat"].as_bool()) given.format = imatrix::FileFormat::dat;
  given.dataset = (*options)["dataset"].as_string();
  given.chunk_size = static_cast<uint64_t>((*options)["chunkSize"].as_integer());
  auto written = write_imatrix(*plan_, (*options)["found"], given);
  if (!written) return fail(written.error());
  imatrix_ = std::move(*written);
  json::Value out;
  out.set("pointer", address(imatrix_.data()));
  out.set("bytes", static_cast<uint64_t>(imatrix_.size()));
  return ok(std::move(out));
}

std::string BoundPlan::shard_map() const { return plan_ ? plan_->shard_map : std::string(); }

std::string BoundPlan::output_config(std::string original) const {
  if (!plan_) return error();
  auto text = wasmquant::output_config(*plan_, original);
  return text ? ok(std::move(*text)) : fail(text.error());
}

BoundTensorSession::BoundTensorSession(std::string text) {
  auto task = read_task(text);
  if (task) {
    session_.emplace(std::move(*task));
  } else {
    error_ = std::move(task.error());
  }
}

std::string BoundTensorSession::info() const {
  if (!session_) return fail(error_);
  json::Value out;
  out.set("tiles", session_->task().tiles);
  out.set("observePasses", static_cast<int64_t>(session_->observe_passes()));
  out.set("tensorBytes", session_->task().source_bytes);
  return ok(std::move(out));
}

std::string BoundTensorSession::reads(uint32_t tile) {
  return session_ ? ok(reads_json(session_->reads(tile))) : fail(error_);
}

std::string BoundTensorSession::observe(uint32_t tile) {
  return session_ ? reply(session_->observe(tile)) : fail(error_);
}

std::string BoundTensorSession::state() {
  if (!session_) return fail(error_);
  const auto state = session_->state();
  if (!state) return fail(state.error());
  json::Value out;
  out.set("pointer", address(state->data()));
  out.set("bytes", static_cast<uint64_t>(state->size_bytes()));
  return ok(std::move(out));
}

std::string BoundTensorSession::next_pass() { return session_ ? reply(session_->next_pass()) : fail(error_); }

std::string BoundTensorSession::take_state(Address state, uint32_t bytes) {
  if (!session_) return fail(error_);
  return reply(session_->take_state({pointer<const float>(state), bytes / sizeof(float)}));
}

std::string BoundTensorSession::run(uint32_t tile) {
  if (!session_) return fail(error_);
  const auto result = session_->run(tile);
  if (!result) return fail(result.error());
  return ok(writes_json({result->writes.data(), result->writes.size()}, result->sums, sums_));
}

BoundTensorDecoder::BoundTensorDecoder(std::string text) {
  // {"task", "by_columns", and of ValueChange what there is}, as comparison() writes it.
  const auto outer = json::parse(text);
  if (!outer) {
    error_ = outer.error();
    return;
  }
  auto task = read_task((*outer)["task"].as_string());
  if (task) {
    task->change.interleaved_rows = static_cast<uint32_t>((*outer)["interleaved_rows"].as_integer());
    task->change.is_transposed = (*outer)["is_transposed"].as_bool();
    task->change.adds_one = (*outer)["adds_one"].as_bool();
    decoder_.emplace(std::move(*task), (*outer)["by_columns"].as_bool());
  } else {
    error_ = std::move(task.error());
  }
}

std::string BoundTensorDecoder::info() const {
  if (!decoder_) return fail(error_);
  const TensorTask& task = decoder_->task();
  json::Value out;
  out.set("tiles", task.tiles);
  out.set("shape", json::Array(task.layout.shape.begin(), task.layout.shape.end()));
  return ok(std::move(out));
}

std::string BoundTensorDecoder::reads(uint32_t tile) {
  return decoder_ ? ok(reads_json(decoder_->reads(tile))) : fail(error_);
}

std::string BoundTensorDecoder::decode(uint32_t tile) {
  if (!decoder_) return fail(error_);
  const std::span<const float> values = decoder_->decode(tile);
  json::Value out;
  out.set("pointer", address(values.data()));
  out.set("count", static_cast<uint64_t>(values.size()));
  return ok(std::move(out));
}

std::string comparison(const BoundModelIndex& reference, std::string reference_config, const BoundModelIndex& quantized,
                       std::string quantized_config, std::string options_text) {
  const auto options = json::parse(options_text);
  if (!options) return fail(options.error());
  const auto compared =
      compare_models(reference.index(), reference_config, quantized.index(), quantized_config, tile_bytes_of(*options));
  return compared ? ok(comparison_json(*compared)) : fail(compared.error());
}

std::string error_between(Address x, Address y, double count) {
  static List<double> sums;
  sums.clear();
  append(sums, kernels::error_between({pointer<const float>(x), static_cast<size_t>(count)}, pointer<const float>(y)));
  json::Value out;
  out.set("sums", address(sums.data()));
  out.set("units", 1);
  return ok(std::move(out));
}

}  // namespace wasmquant::bindings
