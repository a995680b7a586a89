#include "model_index.h"

#include <emscripten/bind.h>

#include "core/list.h"
#include "formats/gguf/gguf_metadata.h"
#include "gguf_conversion/tokenizer/pretokenizer.h"
#include "onnx_graph/onnx_outputs.h"
#include "pipeline/model_index/converted_model.h"
#include "pipeline/model_index/onnx_values.h"

namespace wasmquant::bindings {

std::string BoundModelIndex::feed(uint32_t file, Address bytes, uint32_t length) {
  const auto need = index_.feed(file, {pointer<const uint8_t>(bytes), length});
  if (!need) return fail(need.error());
  json::Value out;
  out.set("offset", need->offset);
  out.set("bytes", need->bytes);
  if (need->bytes == 0) {
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
  return ok(std::move(out));
}

std::string BoundModelIndex::read_shard_map(std::string text) {
  const auto files = index_.read_shard_map(text);
  if (!files) return fail(files.error());
  json::Value out;
  out.set("files", json::Array(files->begin(), files->end()));
  return ok(std::move(out));
}

std::string BoundModelIndex::missing_parts() const {
  const List<std::string> names = index_.missing_parts();
  return ok(json::Array(names.begin(), names.end()));
}

std::string BoundModelIndex::finish() {
  const Status status = index_.finish();
  return status ? ok(index_.to_json()) : fail(status.error());
}

std::string BoundModelIndex::metadata_array(std::string key) const {
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
  return ok_text(std::move(out));
}

std::string BoundModelIndex::pretokenizer(std::string name) const {
  return ok_text(conversion::pretokenizer_json(name));
}

std::string BoundModelIndex::sentence_modules() const {
  const auto modules = sentence_modules_of(index_);
  return modules ? ok(families::to_json(*modules)) : fail(modules.error());
}

std::string BoundModelIndex::layer_values() const {
  if (index_.format().has_graph) return ok(wasmquant::layer_values(index_.onnx()));
  return fail(error_at(ErrorCode::format_unsupported, "model", "is not ONNX"));
}

std::string BoundModelIndex::added_outputs(std::string text) {
  const auto names = json::parse(text);
  if (!names) return fail(names.error());
  List<std::string> values;
  for (const json::Value& name : names->items()) values.push_back(name.as_string());
  outputs_ = conversion::added_outputs({values.data(), values.size()});
  return ok(bytes_json(outputs_));
}

}  // namespace wasmquant::bindings

EMSCRIPTEN_BINDINGS(model_index) {
  using namespace emscripten;
  using namespace wasmquant::bindings;
  class_<BoundModelIndex>("ModelIndex")
      .constructor<>()
      .function("addFile", &BoundModelIndex::add_file)
      .function("feed", &BoundModelIndex::feed)
      .function("readShardMap", &BoundModelIndex::read_shard_map)
      .function("missingParts", &BoundModelIndex::missing_parts)
      .function("finish", &BoundModelIndex::finish)
      .function("tensors", &BoundModelIndex::tensors)
      .function("metadataArray", &BoundModelIndex::metadata_array)
      .function("pretokenizer", &BoundModelIndex::pretokenizer)
      .function("sentenceModules", &BoundModelIndex::sentence_modules)
      .function("layerValues", &BoundModelIndex::layer_values)
      .function("addedOutputs", &BoundModelIndex::added_outputs)
      .function("setInlineBytes", &BoundModelIndex::set_inline_bytes)
      .function("stripPrefixes", &BoundModelIndex::strip_prefixes)
      .function("setSiblingFile", &BoundModelIndex::set_sibling_file);
}
