// The model's files and tensors for JavaScript: headers fed piece by piece, rows of tensors, config.json.
#include "handles/model_index.h"

#include <cmath>

#include "core/message.h"
#include "formats/gguf/gguf_metadata.h"
#include "gguf_conversion/tokenizer/pretokenizer.h"
#include "onnx_graph/onnx_nodes.h"
#include "pipeline/model_index/converted_model.h"
#include "pipeline/model_index/onnx_values.h"

namespace wasmquant::bindings {
namespace {

void add_constants(const json::Value& value, json::Array& path, json::Array& out) {
  if (value.is_number() && !value.is_finite()) {
    json::Value& row = out.emplace_back();
    row.set("path", json::Value(path));
    row.set("value", std::isnan(value.as_number()) ? "NaN" : value.as_number() > 0 ? "Infinity" : "-Infinity");
  }
  for (const auto& [name, member] : value.members()) {
    path.emplace_back(name);
    add_constants(member, path, out);
    path.pop_back();
  }
  for (const json::Value& item : value.items()) {
    path.emplace_back(static_cast<int64_t>(&item - value.items().data()));
    add_constants(item, path, out);
    path.pop_back();
  }
}

}  // namespace

Result<json::Value> BoundModelIndex::read_config(std::string text) {
  index_.set_sibling_file("config.json", std::move(text));
  const Result<json::Value>& config = index_.folder_config();
  if (!config)
    return error_at(ErrorCode::json_invalid, "config.json", "{}: {}", config.error().where, config.error().message);
  if (!config->is_object())
    return error_at(ErrorCode::json_invalid, "config.json", "expected a JSON object, found {}",
                    json::describe(config->kind()));
  json::Array path, constants;
  add_constants(*config, path, constants);
  json::Value out;
  out.set("config", *config);
  out.set("constants", std::move(constants));
  return out;
}

Result<json::Value> BoundModelIndex::feed(uint32_t file, Address bytes, uint32_t length) {
  TRY(need, index_.feed(file, {pointer<const uint8_t>(bytes), length}));
  json::Value out;
  out.set("offset", need.offset);
  out.set("bytes", need.bytes);
  if (need.bytes == 0) {
    const List<std::string>& data_files = index_.data_files(file);
    json::Array deflated;
    for (const DeflatedFile& inner : index_.deflated(file)) {
      json::Value& row = deflated.emplace_back();
      row.set("name", inner.name);
      row.set("begin", inner.begin);
      row.set("end", inner.end);
      row.set("bytes", inner.bytes);
      row.set("crc", uint64_t{inner.crc});
    }
    out.set("dataFiles", json::Array(data_files.begin(), data_files.end()));
    out.set("deflated", std::move(deflated));
  }
  return out;
}

Result<json::Value> BoundModelIndex::read_shard_map(const std::string& text) {
  TRY(files, index_.read_shard_map(text));
  json::Value out;
  out.set("files", json::Array(files.begin(), files.end()));
  return out;
}

json::Value BoundModelIndex::missing_parts() const {
  const List<std::string> names = index_.missing_parts();
  return json::Array(names.begin(), names.end());
}

Result<json::Value> BoundModelIndex::finish() {
  TRY_VOID(index_.finish());
  return index_.to_json();
}

JsonText BoundModelIndex::metadata_array(const std::string& key) const {
  std::string out = "[";
  const gguf::KeyValue* const entry = index_.format().carries_config ? index_.gguf_metadata().find(key) : nullptr;
  if (entry != nullptr) {
    gguf::ArrayView view(entry);
    const bool is_text = view.element_type() == gguf::ValueType::text;
    for (uint64_t i = 0; i < view.count(); ++i) {
      if (i > 0) out += ',';
      if (is_text)
        json::append_quoted(out, view.next_text());
      else
        out += json::write(view.next_number());
    }
  }
  out += ']';
  return {std::move(out)};
}

JsonText BoundModelIndex::pretokenizer(const std::string& name) const { return {conversion::pretokenizer_json(name)}; }

Result<json::Value> BoundModelIndex::sentence_modules() const {
  TRY(modules, sentence_modules_of(index_));
  return families::to_json(modules);
}

Result<json::Value> BoundModelIndex::layer_values() const {
  if (index_.format().has_graph) return wasmquant::layer_values(index_.onnx());
  return error_at(ErrorCode::format_unsupported, "model", "is not ONNX");
}

Result<Region> BoundModelIndex::added_outputs(const std::string& text) {
  TRY(names, json::parse(text));
  List<std::string> values;
  for (const json::Value& name : names.items()) values.push_back(name.as_string());
  outputs_ = conversion::added_outputs({values.data(), values.size()});
  return region_of(outputs_);
}

}  // namespace wasmquant::bindings
