// Checkpoints that other tools quantized, as hosts open them: headers, sibling files, and the tensors that are read
// along with the headers.
#pragma once
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/read_file.h"
#include "pipeline/memory_model.h"
#include "pipeline/stored/dequantized_view.h"

namespace wasmquant::testing {

/// A tensor with its bytes; zeros where there are none.
struct RawTensor {
  std::string name;
  StorageDtype dtype;
  std::vector<uint64_t> shape;
  std::string bytes = {};
};

struct QuantizedModel {
  MemoryModel memory;
  ModelIndex index;
};

/// Adds the sibling files and gives the bytes that the index asks for.
inline void finish(QuantizedModel& model, const std::vector<std::pair<std::string, std::string>>& siblings) {
  model.index = model.memory.index();
  for (const auto& [name, text] : siblings) model.index.set_sibling_file(name, text);
  for (const uint32_t tensor : model.index.inline_tensors()) {
    const StoredTensor& stored = model.index.tensors()[tensor].stored;
    const std::vector<uint8_t>& file = model.memory.files[model.index.tensors()[tensor].file];
    const auto* begin = reinterpret_cast<const char*>(file.data()) + stored.begin;
    REQUIRE(bool(model.index.set_inline_bytes(tensor, std::string(begin, stored.end - stored.begin))));
  }
}

/// A folder below tests/files.
inline QuantizedModel open_folder(const std::string& folder) {
  QuantizedModel model;
  model.memory.names.push_back("model.safetensors");
  model.memory.files.push_back(test_files::file_bytes("files/" + folder + "/model.safetensors"));
  finish(model, {{"config.json", test_files::file_text("files/" + folder + "/config.json")}});
  return model;
}

inline QuantizedModel model_of(const std::vector<RawTensor>& tensors, const std::string& config,
                               const std::string& modelopt = {},
                               const List<std::pair<std::string, std::string>>& metadata = {}) {
  List<safetensors::TensorHeader> entries;
  for (const RawTensor& tensor : tensors) entries.push_back({tensor.name, tensor.dtype, tensor.shape});
  const auto header = safetensors::write_header(entries, metadata);
  REQUIRE(bool(header));
  std::vector<uint8_t> file(header->file_bytes);
  std::memcpy(file.data(), header->bytes.data(), header->bytes.size());
  for (size_t i = 0; i < tensors.size(); ++i)
    if (!tensors[i].bytes.empty())
      std::memcpy(file.data() + header->offsets[i], tensors[i].bytes.data(), tensors[i].bytes.size());
  QuantizedModel model;
  model.memory.names.push_back("model.safetensors");
  model.memory.files.push_back(std::move(file));
  std::vector<std::pair<std::string, std::string>> siblings;
  if (!config.empty()) siblings.emplace_back("config.json", config);
  if (!modelopt.empty()) siblings.emplace_back("hf_quant_config.json", modelopt);
  finish(model, siblings);
  return model;
}

/// The values of a tensor of the original model, by a session that writes them in rows of the last axis (GGUF's F32), in tiles of
/// about so many bytes, first to last or the other way round.
inline std::vector<float> decoded_values(const QuantizedModel& model, const ModelTensor& tensor, uint64_t tile_bytes,
                                         bool reverse) {
  TensorTask task;
  task.name = tensor.stored.name;
  task.layout = ggml_layout(tensor.stored.shape, tensor.stored.dtype, GgmlType::f32, task.name);
  task.source = {tensor.file, tensor.stored.begin};
  task.source_bytes = tensor.stored.end - tensor.stored.begin;
  task.source_pitch = tensor.pitch;
  task.components.push_back({0, 0});
  task.quantized = tensor.quantized;
  set_tiles(task, {tile_bytes, tile_bytes});
  TensorSession session(in_worker(task));
  std::vector<float> values(task.layout->rows * task.layout->columns);
  for (uint64_t t = 0; t < task.tiles; ++t) {
    const uint64_t tile = reverse ? task.tiles - 1 - t : t;
    model.memory.fill(session.reads(tile));
    const auto result = session.run(tile);
    REQUIRE(bool(result));
    for (const TileWrite& write : result->writes) {
      REQUIRE(write.offset + write.bytes <= values.size() * sizeof(float));
      std::memcpy(reinterpret_cast<uint8_t*>(values.data()) + write.offset, write.pointer, write.bytes);
    }
  }
  return values;
}

}  // namespace wasmquant::testing
