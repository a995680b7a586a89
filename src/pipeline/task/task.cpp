#include "pipeline/task/task.h"

#include <algorithm>
#include <numeric>

#include "config/config_api.h"
#include "config/dialects/write.h"
#include "core/json.h"
#include "pipeline/task/session.h"

namespace wasmquant {
namespace {

json::Value location_json(const Location& at) {
  json::Array pair;
  pair.emplace_back(static_cast<int64_t>(at.file));
  pair.emplace_back(at.offset);
  return pair;
}

Location read_location(const json::Value& value) {
  if (value.items().size() != 2) return {};
  return {static_cast<uint32_t>(value.items()[0].as_integer()), static_cast<uint64_t>(value.items()[1].as_integer())};
}

uint64_t count_of(const json::Value& value) { return static_cast<uint64_t>(std::max<int64_t>(value.as_integer(), 0)); }

Error bad_task(const char* message) {
  return error_at(ErrorCode::argument_invalid, "", "not a task of this version's plan: {}", message);
}

constexpr uint64_t kMaxPadding = 1 << 20;

// Of any file: safetensors' names are upper case, GGUF's lower case.
std::optional<StorageDtype> any_dtype_named(std::string_view name) {
  if (const auto type = ggml_type_named(name)) return storage_dtype_of(*type);
  return storage_dtype_named(name);
}

json::Array numbers_json(const std::vector<float>& numbers) {
  json::Array out;
  for (const float number : numbers) out.emplace_back(double{number});
  return out;
}

std::vector<uint64_t> read_shape(const json::Value& value) {
  std::vector<uint64_t> shape;
  for (const json::Value& d : value.items()) shape.push_back(count_of(d));
  return shape;
}

void write_change(const ValueChange& change, json::Value& out) {
  out.set("interleaved_rows", static_cast<int64_t>(change.interleaved_rows));
  out.set("is_transposed", change.is_transposed);
  out.set("adds_one", change.adds_one);
}

void read_change(const json::Value& in, TensorTask& task) {
  task.change.interleaved_rows = static_cast<uint32_t>(count_of(in["interleaved_rows"]));
  task.change.is_transposed = in["is_transposed"].as_bool();
  task.change.adds_one = in["adds_one"].as_bool();
  task.change.reverts = in["reverts"].as_bool();
  if (task.change.interleaved_rows != 0) task.layout.whole_lines = task.change.interleaved_rows;
}

Status read_ggml_task(const json::Value& in, TensorTask& task) {
  const auto type = ggml_type_named(in["type"].as_string());
  const auto source = any_dtype_named(in["dtype"].as_string());
  if (!type || !source || task.components.size() != 1) return bad_task("type");
  task.layout = ggml_layout(read_shape(in["shape"]), *source, *type, task.name);
  read_change(in, task);
  const uint64_t columns = std::max<uint64_t>(task.layout.columns, 1), experts = task.importance.size() / columns;
  if (task.importance.size() % columns != 0 || (experts != 0 && task.layout.rows % experts != 0))
    return bad_task("importance");
  return {};
}

// `elements`: of the task.
Status read_factors(const json::Value& in, uint64_t elements, TensorTask& task) {
  if (in.is_null()) return {};
  ChannelFactors& factors = task.factors;
  factors.inner = count_of(in["inner"]);
  factors.cycle = count_of(in["cycle"]);
  factors.repeat = count_of(in["repeat"]);
  for (const json::Value& number : in["values"].items())
    factors.values.push_back(static_cast<float>(number.as_number()));
  return factors.any() && factors.fit(elements) ? Status() : bad_task("factors");
}

Status read_onnx_task(const json::Value& in, TensorTask& task) {
  const int64_t form = in["onnx_form"].as_integer();
  const auto source = any_dtype_named(in["dtype"].as_string());
  if (form < 0 || form > static_cast<int64_t>(OnnxForm::gather_block_quantized) || !source) return bad_task("form");
  TRY(spec, config::parse_spec_text(json::write(in["spec"])));
  OnnxTask& onnx = task.onnx.emplace();
  onnx.form = static_cast<OnnxForm>(form);
  onnx.swapped = in["swapped"].as_bool();
  onnx.is_varints = in["varints"].as_bool();
  onnx.spec = spec;
  TRY(layout, onnx_layout(onnx.form, {task.name, read_shape(in["shape"]), *source, onnx.swapped}, spec));
  task.layout = std::move(layout);
  return task.components.size() == task.layout.components.size() ? Status() : bad_task("components");
}

/// Of layouts whose importance is by input channel.
bool fits_columns(const TensorTask& task) noexcept {
  return task.importance.empty() || task.importance.size() == task.layout.columns;
}

}  // namespace

void set_tiles(TensorTask& task, const TileBytes& limits) noexcept {
  const uint64_t tile_bytes = std::max<uint64_t>(
      !task.is_copy && (task.layout.column_tiles() || task.is_transposed()) ? limits.columns : limits.rows, 1);
  if (task.is_copy) {
    // Values that are multiplied on the way come whole.
    task.tile_lines = task.factors.any() ? (tile_bytes + 3) / 4 * 4 : tile_bytes;
    task.tiles = (task.source_bytes + task.tile_lines - 1) / task.tile_lines;
    return;
  }
  const WeightLayout& layout = task.layout;
  if (task.onnx && task.onnx->is_varints) {
    task.tile_lines = std::max<uint64_t>(layout.lines(), 1);
    task.tiles = 1;
    return;
  }
  if (task.quantized && task.quantized->task.layout.column_tiles() != layout.column_tiles()) {
    task.tile_lines = std::max<uint64_t>(layout.lines(), 1);  // across the source's tiles
    task.tiles = 1;
    return;
  }
  const bool is_widened = small_float_of(layout.source).has_value();  // the whole tile
  const uint64_t line_bytes = std::max<uint64_t>(
      is_widened ? layout.line_elements() * 4 : info_of(layout.source).bytes_of(layout.line_elements()), 1);
  uint64_t unit = unit_lines_of(layout);
  if (task.quantized) {
    const uint64_t whole = whole_source_lines(layout, task.quantized->task.layout);
    if (__builtin_mul_overflow(unit / std::gcd(unit, whole), whole, &unit))
      unit = std::max<uint64_t>(layout.lines(), 1);
  }
  task.tile_lines = std::max<uint64_t>(tile_bytes / line_bytes / unit, 1) * unit;
  task.tiles = (layout.lines() + task.tile_lines - 1) / task.tile_lines;
}

TileRange tile_range(const TensorTask& task, uint64_t tile) noexcept {
  const uint64_t lines = task.is_copy ? task.source_bytes : task.layout.lines();
  const uint64_t begin = std::min(tile * task.tile_lines, lines);
  return {begin, std::min(begin + task.tile_lines, lines)};
}

std::string write_task(const TensorTask& task, std::string_view format, const WeightDescription& weight) {
  json::Value out;
  out.set("name", task.name);
  out.set("source", location_json(task.source));
  out.set("bytes", task.source_bytes);
  if (task.source_pitch != 0) out.set("pitch", task.source_pitch);
  json::Array components;
  for (const Location& at : task.components) components.push_back(location_json(at));
  out.set("components", std::move(components));
  if (task.quantized) out.set("quantized", task.quantized->text);
  out.set("tile_lines", task.tile_lines);
  out.set("tiles", task.tiles);
  if (!task.importance.empty()) out.set("importance", numbers_json(task.importance));
  if (task.factors.any()) {
    json::Value factors;
    factors.set("inner", task.factors.inner);
    factors.set("cycle", task.factors.cycle);
    factors.set("repeat", task.factors.repeat);
    factors.set("values", numbers_json(task.factors.values));
    out.set("factors", std::move(factors));
  }
  if (task.padding != 0) out.set("padding", static_cast<int64_t>(task.padding));
  if (task.is_copy) {
    if (!task.layout.components.empty()) out.set("dtype", info_of(task.layout.components.front().dtype).name);
  } else if (task.layout.codes == CodeStorage::ggml_rows) {
    out.set("shape", weight.shape);
    out.set("dtype", info_of(weight.source).name);
    out.set("type", info_of(*ggml_type_of(task.layout.components.front().dtype)).name);
    write_change(task.change, out);
    out.set("saturate", task.non_finite == NonFinite::saturate);
  } else if (task.onnx) {
    out.set("shape", weight.shape);
    out.set("dtype", info_of(weight.source).name);
    out.set("onnx_form", static_cast<int64_t>(task.onnx->form));
    out.set("swapped", task.onnx->swapped);
    out.set("varints", task.onnx->is_varints);
    out.set("spec", config::to_json(task.onnx->spec));
    out.set("saturate", task.non_finite == NonFinite::saturate);
  } else {
    out.set("format", format);
    out.set("layer", weight.layer);
    out.set("layer_type", weight.layer_type);
    out.set("shape", weight.shape);
    out.set("dtype", info_of(weight.source).name);
    json::Array stages;
    for (const QuantizationSpec& stage : task.layout.all_stages()) stages.push_back(config::to_json(stage));
    out.set("stages", std::move(stages));
    if (!weight.tensor.empty()) out.set("tensor", weight.tensor);
    if (weight.experts != 0) out.set("experts", weight.experts);
    if (weight.is_input_major) out.set("input_major", true);
    if (task.layout.source_transposed) out.set("source_transposed", true);
    out.set("natural_order", weight.pack_method == PackMethod::order);
    if (!weight.stored.is_null()) out.set("stored", weight.stored);
    if (task.layout.reads_group_index) out.set("group_index", true);
    out.set("saturate", task.non_finite == NonFinite::saturate);
    json::Array dtypes;  // scales may be stored in another dtype than the format's own choice
    for (const Component& component : task.layout.components) dtypes.emplace_back(info_of(component.dtype).name);
    out.set("component_dtypes", std::move(dtypes));
    if (task.change.reverts) {
      out.set("reverts", true);
      write_change(task.change, out);
    }
  }
  return json::write(out);
}

Result<TensorTask> read_task(std::string_view text) {
  TRY(in, json::parse(text));
  TensorTask task;
  task.name = in["name"].as_string();
  task.source = read_location(in["source"]);
  task.source_bytes = count_of(in["bytes"]);
  task.source_pitch = count_of(in["pitch"]);
  for (const json::Value& at : in["components"].items()) task.components.push_back(read_location(at));
  task.tile_lines = std::max<uint64_t>(count_of(in["tile_lines"]), 1);
  task.tiles = count_of(in["tiles"]);
  task.non_finite = in["saturate"].as_bool() ? NonFinite::saturate : NonFinite::error;
  if (const json::Value& codes = in["quantized"]; codes.is_string()) {
    auto source = std::make_shared<QuantizedSource>();
    TRY(decoded, read_task(codes.as_string()));
    source->task = std::move(decoded);
    source->text = codes.as_string();
    task.quantized = std::move(source);
  }
  for (const json::Value& number : in["importance"].items())
    task.importance.push_back(static_cast<float>(number.as_number()));
  task.padding = static_cast<uint32_t>(std::min<uint64_t>(count_of(in["padding"]), kMaxPadding));
  if (in["type"].is_string()) {
    TRY_VOID(read_ggml_task(in, task));
    return task;
  }
  if (in["onnx_form"].is_integer()) {
    TRY_VOID(read_onnx_task(in, task));
    if (!fits_columns(task)) return bad_task("importance");
    TRY_VOID(read_factors(in["factors"], task.layout.rows * task.layout.columns, task));
    return task;
  }
  task.is_copy = in["stages"].is_null();
  const auto source = any_dtype_named(in["dtype"].as_string());
  if (task.is_copy) {
    if (task.components.size() != 1) return bad_task("a copy has one output");
    if (source) {
      task.layout.components.push_back({Role::codes, task.name, *source, {}, task.source_bytes});
      TRY_VOID(read_factors(in["factors"], task.source_bytes * 8 / std::max<uint64_t>(info_of(*source).bits, 1), task));
    }
    return task;
  }
  WeightDescription weight;
  weight.layer = in["layer"].as_string();
  weight.layer_type = in["layer_type"].as_string();
  if (in["natural_order"].as_bool()) weight.pack_method = PackMethod::order;
  weight.shape = read_shape(in["shape"]);
  weight.tensor = in["tensor"].as_string();
  weight.experts = count_of(in["experts"]);
  weight.is_input_major = in["input_major"].as_bool();
  if ((weight.experts != 0 || weight.is_input_major) && weight.shape.size() != (weight.experts != 0 ? 3 : 2))
    return bad_task("shape");
  weight.stored = in["stored"];
  const CheckpointFormat* format = checkpoint_format_named(in["format"].as_string());
  if (!source || format == nullptr) return bad_task("dtype or format");
  weight.source = *source;
  Stages stages;
  for (const json::Value& stage : in["stages"].items()) {
    TRY(spec, config::parse_spec_text(json::write(stage)));
    stages.push_back(spec);
  }
  if (stages.empty() || stages.size() > 2) return bad_task("stages");
  TRY(layout, format->layout(weight, stages));
  task.layout = std::move(layout);
  task.layout.source_transposed = in["source_transposed"].as_bool();
  const uint64_t stored_row = task.layout.source_transposed ? task.layout.rows : task.layout.columns;
  if (task.source_pitch != 0 && task.source_pitch < stored_row) return bad_task("pitch");
  if (in["reverts"].as_bool()) read_change(in, task);
  task.layout.reads_group_index = in["group_index"].as_bool();
  if (task.layout.reads_group_index && task.layout.codes != CodeStorage::columns_words) return bad_task("group_index");
  if (!fits_columns(task)) return bad_task("importance");
  const json::Array& dtypes = in["component_dtypes"].items();
  if (dtypes.size() != task.layout.components.size() || dtypes.size() != task.components.size())
    return bad_task("components");
  for (size_t c = 0; c < dtypes.size(); ++c) {
    const auto dtype = any_dtype_named(dtypes[c].as_string());
    const bool is_fixed = task.layout.codes == CodeStorage::lookup_nibbles || (dtype && info_of(*dtype).is_ggml());
    if (!dtype || (is_fixed && *dtype != task.layout.components[c].dtype)) return bad_task("component dtype");
    set_dtype(task.layout.components[c], *dtype);
  }
  return task;
}

}  // namespace wasmquant
