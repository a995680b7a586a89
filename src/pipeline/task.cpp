#include "pipeline/task.h"

#include <algorithm>

#include "config/config_api.h"
#include "config/write.h"
#include "core/json.h"
#include "pipeline/session.h"

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

uint64_t read_count(const json::Value& object, std::string_view key) {
  const json::Value* member = object.find(key);
  return member == nullptr ? 0 : static_cast<uint64_t>(std::max<int64_t>(member->as_integer(), 0));
}

const std::string& read_text(const json::Value& object, std::string_view key) {
  static const std::string kEmpty;
  const json::Value* member = object.find(key);
  return member == nullptr ? kEmpty : member->as_string();
}

Error bad_task(Piece message) {
  return error_at(ErrorCode::argument_invalid, "", {"not a task of this version's plan: ", message});
}

}  // namespace

void set_tiles(TensorTask& task, const TileBytes& limits) noexcept {
  const uint64_t tile_bytes =
      std::max<uint64_t>(!task.is_copy && task.layout.column_tiles() ? limits.columns : limits.rows, 1);
  if (task.is_copy) {
    task.tile_lines = tile_bytes;
    task.tiles = (task.source_bytes + tile_bytes - 1) / tile_bytes;
    return;
  }
  const WeightLayout& layout = task.layout;
  const uint64_t line_bytes = std::max<uint64_t>(layout.line_elements() * info_of(layout.source).bits / 8, 1);
  const uint64_t unit = unit_lines_of(layout);
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
  json::Array components;
  for (const Location& at : task.components) components.push_back(location_json(at));
  out.set("components", std::move(components));
  out.set("tile_lines", task.tile_lines);
  out.set("tiles", task.tiles);
  if (!task.is_copy) {
    out.set("format", format);
    out.set("layer", weight.layer);
    out.set("layer_type", weight.layer_type);
    out.set("shape", weight.shape);
    out.set("dtype", info_of(weight.source).name);
    out.set("spec", config::to_json(task.layout.spec));
    out.set("natural_order", weight.pack_method == PackMethod::order);
    out.set("saturate", task.non_finite == NonFinite::saturate);
    json::Array dtypes;  // scales may be stored in another dtype than the format's own choice
    for (const Component& component : task.layout.components) dtypes.emplace_back(info_of(component.dtype).name);
    out.set("component_dtypes", std::move(dtypes));
  }
  return json::write(out);
}

Result<TensorTask> read_task(std::string_view text) {
  TRY(in, json::parse(text));
  TensorTask task;
  task.name = read_text(in, "name");
  if (const json::Value* source = in.find("source")) task.source = read_location(*source);
  task.source_bytes = read_count(in, "bytes");
  if (const json::Value* components = in.find("components"))
    for (const json::Value& at : components->items()) task.components.push_back(read_location(at));
  task.tile_lines = std::max<uint64_t>(read_count(in, "tile_lines"), 1);
  task.tiles = read_count(in, "tiles");
  const json::Value* spec_json = in.find("spec");
  task.is_copy = spec_json == nullptr;
  if (task.is_copy) {
    if (task.components.size() != 1) return bad_task("a copy has one output");
    return task;
  }
  WeightDescription weight{
      read_text(in, "layer"), read_text(in, "layer_type"), {}, StorageDtype::F32, PackMethod::reorder};
  if (const json::Value* natural = in.find("natural_order"); natural != nullptr && natural->as_bool())
    weight.pack_method = PackMethod::order;
  if (const json::Value* shape = in.find("shape"))
    for (const json::Value& d : shape->items()) weight.shape.push_back(static_cast<uint64_t>(d.as_integer()));
  const auto source = storage_dtype_named(read_text(in, "dtype"));
  const CheckpointFormat* format = checkpoint_format_named(read_text(in, "format"));
  if (!source || format == nullptr) return bad_task("dtype or format");
  weight.source = *source;
  TRY(spec, config::parse_spec_text(json::write(*spec_json)));
  TRY(layout, format->layout(weight, spec));
  task.layout = std::move(layout);
  if (const json::Value* dtypes = in.find("component_dtypes")) {
    if (dtypes->items().size() != task.layout.components.size()) return bad_task("components");
    for (size_t c = 0; c < task.layout.components.size(); ++c) {
      const auto dtype = storage_dtype_named(dtypes->items()[c].as_string());
      if (!dtype) return bad_task("component dtype");
      set_dtype(task.layout.components[c], *dtype);
    }
  }
  if (task.components.size() != task.layout.components.size()) return bad_task("components");
  if (const json::Value* saturate = in.find("saturate"))
    task.non_finite = saturate->as_bool() ? NonFinite::saturate : NonFinite::error;
  return task;
}

}  // namespace wasmquant
