#include "pipeline/plan/gguf_files.h"

#include "core/message.h"
#include "formats/gguf/gguf_split.h"
#include "formats/part_name.h"
#include "gguf_conversion/recipe.h"

namespace wasmquant {
namespace {

using conversion::ConvertedTensor;

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
  return out;
}

// "llama-Q8_0" and "llama.Q8_0" without the type that the model had.
std::string_view without_type(std::string_view name) {
  const size_t at = name.find_last_of("-.");
  if (at == name.npos || at == 0) return name;
  std::string type(name.substr(at + 1));
  for (char& c : type)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  return conversion::recipe_named(type) ? name.substr(0, at) : name;
}

}  // namespace

Status place_gguf_files(const conversion::GgufConversion& converted, std::string_view recipe,
                        const PlanOptions& options, Plan& plan) {
  List<gguf::NewTensor> entries;
  List<const ConvertedTensor*> generated;
  for (const ConvertedTensor& tensor : converted.tensors) {
    if (tensor.source != ConvertedTensor::kGenerated) continue;
    generated.push_back(&tensor);
    entries.push_back({tensor.name, GgmlType::f32, tensor.shape});
  }
  for (const PlannedTensor& planned : plan.tensors) {
    const Component& stored = planned.outputs().front();
    entries.push_back({stored.name_in(planned.weight.layer), *ggml_type_of(stored.dtype), stored.shape});
  }
  TRY(alignment, gguf::alignment_of(converted.metadata));
  const std::span<const gguf::NewTensor> all(entries.data(), entries.size());
  List<uint32_t> first = {0};
  const auto [shard_bytes, asked_parts] = std::pair(options.gguf.shard_bytes, options.gguf.parts);
  if ((shard_bytes != 0 || asked_parts > 1) && !entries.empty()) {
    TRY(parts, shard_bytes != 0 ? gguf::split_by_size(all, alignment, shard_bytes)
                                : gguf::split_in_parts(all, alignment, asked_parts));
    first = std::move(parts);
  }
  const auto count = static_cast<uint32_t>(first.size()), total = static_cast<uint32_t>(entries.size());
  const std::string_view name = without_type(options.name);
  const std::string stem = text_of("{}{}-{}", options.gguf.mmproj ? "mmproj-" : "",
                                   name.empty() ? std::string_view("model") : name, upper(recipe));
  for (uint32_t part = 0; part < count; ++part) {
    const uint32_t begin = first[part], end = part + 1 < count ? first[part + 1] : total;
    TRY(header, gguf::write_header(
                    count == 1 ? converted.metadata : gguf::part_metadata(converted.metadata, part, count, total),
                    all.subspan(begin, end - begin)));
    PlannedFile file;
    file.name = count == 1 ? text_of("{}.gguf", stem) : part_name({text_of("{}-", stem), part + 1, count, ".gguf"});
    file.bytes = header.file_bytes;
    file.prefix = std::move(header.bytes);
    for (uint32_t i = begin; i < end; ++i) {
      if (i < generated.size()) {
        file.prefix += generated[i]->data;
        file.prefix.resize(gguf::padded(file.prefix.size(), alignment));
        continue;
      }
      TensorTask& task = plan.tensors[i - generated.size()].task;
      const uint64_t at = header.offsets[i - begin], after = at + task.layout->components.front().bytes;
      task.components.push_back({part, at});
      task.padding = static_cast<uint32_t>(gguf::padded(after, alignment) - after);
    }
    plan.files.push_back(std::move(file));
  }
  return {};
}

}  // namespace wasmquant
