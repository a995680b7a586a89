#include "cases/answer_case.h"

#include <memory>
#include <string>

#include "config/config_text.h"
#include "config/dialects/write.h"
#include "config/match/name_match.h"
#include "digest.h"
#include "formats/gguf/gguf.h"
#include "formats/gguf/imatrix.h"
#include "formats/numpy/npy.h"
#include "formats/numpy/npz.h"
#include "formats/onnx/onnx.h"
#include "formats/safetensors/safetensors.h"
#include "formats/safetensors/safetensors_index.h"

namespace wasmquant::fuzz {
namespace {

void add(Digest& digest, const Error& error) {
  digest.add(name_of(error.code));
  digest.add(error.where);
  digest.add(error.message);
}

template <class Tensor>
void add_tensor(Digest& digest, const Tensor& tensor) {
  digest.add(tensor.name);
  for (const uint64_t each : tensor.shape) digest.add(each);
  digest.add(tensor.begin);
  digest.add(tensor.end);
}

template <class Index>
void add_index(Digest& digest, const Result<Index>& index) {
  if (!index) return add(digest, index.error());
  for (const auto& tensor : index->tensors) add_tensor(digest, tensor);
}

void add_onnx(Digest& digest, std::span<const uint8_t> file) {
  auto skeleton = std::make_unique<onnx::Skeleton>(file.size());
  for (auto need = skeleton->need(); need.bytes > 0; need = skeleton->need())
    if (const Status fed = skeleton->feed(file.subspan(need.offset, need.bytes)); !fed) return add(digest, fed.error());
  const auto model = onnx::read_model(std::move(skeleton));
  add_index(digest, model);
}

void add_npz(Digest& digest, std::span<const uint8_t> file) {
  npz::Reader reader(file.size());
  for (auto need = reader.need(); need.bytes > 0; need = reader.need())
    if (const Status fed = reader.feed(file.subspan(need.offset, need.bytes)); !fed) return add(digest, fed.error());
  for (const StoredTensor& tensor : reader.tensors()) add_tensor(digest, tensor);
}

}  // namespace

uint64_t run_answer_case(std::span<const uint8_t> file) {
  Digest digest;
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  add_index(digest, safetensors::read_index(file, file.size()));
  add_index(digest, gguf::read_index(file, file.size()));
  add_onnx(digest, file);
  if (npy::looks_like_npy(file)) {
    const auto tensor = npy::read_tensor(file, file.size());
    tensor ? add_tensor(digest, *tensor) : add(digest, tensor.error());
  }
  add_npz(digest, file);
  const auto matrix = imatrix::read(file);
  matrix ? digest.add(matrix->entries.size()) : add(digest, matrix.error());
  const auto map = safetensors::read_shard_map(text);
  map ? digest.add(map->tensors.size()) : add(digest, map.error());
  for (const Diagnostic& each : config::check(text)) {
    digest.add(each.code.name());
    digest.add(each.where);
    digest.add(each.message);
  }
  if (const auto parsed = config::parse_text(text)) digest.add(json::write(config::to_json(parsed->config)));
  if (text.size() < 500) digest.add(NamePattern(text).matches("model.layers.3.mlp.up_proj"));
  return digest.value();
}

}  // namespace wasmquant::fuzz
