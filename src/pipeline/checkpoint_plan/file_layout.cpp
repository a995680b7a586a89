// Sorts components by class, writes headers, and sets the place of each component.
#include "pipeline/checkpoint_plan/file_layout.h"

#include <algorithm>
#include <array>
#include <bit>

#include "core/list.h"
#include "formats/safetensors/safetensors.h"

namespace wasmquant {
namespace {

// 3 for multiples of 8, 2 for 4, 1 for 2, else 0.
constexpr size_t kAlignments = 4;
size_t alignment_class(uint64_t bytes) { return bytes == 0 ? 3 : std::min(std::countr_zero(bytes), 3); }

struct PlacedComponent {
  PlannedTensor* tensor;
  size_t component;
  const ConstantTensor* known = nullptr;  // literal bytes instead of a component

  const Component& described() const noexcept { return known ? known->component : tensor->outputs()[component]; }
  std::string name() const { return known ? known->component.name_part : described().name_in(tensor->weight.layer); }
};

void append_little_endian(uint64_t value, int bytes, std::string& out) {
  for (int byte = 0; byte < bytes; ++byte) out += static_cast<char>(value >> (8 * byte) & 0xFF);
}

void append_known(const PlannedTensor& tensor, Role role, std::string& out) {
  const WeightLayout& layout = tensor.task.layout;
  if (role == Role::shape) {
    for (const uint64_t dimension : tensor.weight.shape) append_little_endian(dimension, 8, out);
    return;
  }
  for (uint64_t column = 0; column < layout.columns; ++column)
    append_little_endian(column / layout.granularity.block, 4, out);
}

using Metadata = List<std::pair<std::string, std::string>>;

// Fills `file` and its tensors' component locations; tensors are in source order.
Status lay_out_file(PlannedFile& file, uint32_t file_index, std::span<PlannedTensor* const> tensors,
                    const Metadata& metadata) {
  // Larger alignments first, so that no padding is needed; source order within an alignment.
  std::array<List<PlannedTensor*>, kAlignments> aligned;
  for (PlannedTensor* tensor : tensors) {
    uint64_t bytes = 0;
    for (const Component& component : tensor->outputs()) bytes += is_known(component.role) ? 0 : component.bytes;
    aligned[alignment_class(bytes)].push_back(tensor);
  }
  List<PlacedComponent> slots;
  std::string known;
  List<const ConstantTensor*> constant_tensors;
  for (size_t alignment = kAlignments; alignment-- > 0;)
    for (PlannedTensor* tensor : aligned[alignment]) {
      const List<Component>& outputs = tensor->outputs();
      tensor->task.components.clear();
      for (size_t c = 0; c < outputs.size(); ++c) {
        tensor->task.components.push_back({file_index, 0});
        if (!is_known(outputs[c].role)) continue;
        slots.push_back({tensor, c});
        append_known(*tensor, outputs[c].role, known);
      }
      for (const ConstantTensor& each : tensor->activations) constant_tensors.push_back(&each);
    }
  // Activation scales go after tensors of at least their alignment.
  for (size_t alignment = kAlignments; alignment-- > 0;) {
    for (PlannedTensor* tensor : aligned[alignment])
      for (size_t c = 0; c < tensor->outputs().size(); ++c)
        if (!is_known(tensor->outputs()[c].role)) slots.push_back({tensor, c});
    for (const ConstantTensor* each : constant_tensors)
      if (alignment_class(each->component.bytes) == alignment) slots.push_back({nullptr, 0, each});
  }

  size_t text_bytes = known.size();  // they follow the header
  uint64_t data_bytes = 0;
  for (const PlacedComponent& slot : slots) data_bytes += slot.described().bytes;
  for (const PlacedComponent& slot : slots) {
    const Component& component = slot.described();
    const size_t layer_bytes = component.follows_layer ? slot.tensor->weight.layer.size() : 0;
    text_bytes +=
        safetensors::HeaderWriter::entry_bytes(layer_bytes + component.name_part.size(), component.shape, data_bytes);
  }
  TRY(writer, safetensors::HeaderWriter::begin(metadata, text_bytes));
  for (const PlacedComponent& slot : slots) {
    const Component& component = slot.described();
    TRY_VOID(writer.add(slot.name(), component.dtype, component.shape));
  }
  TRY(header, writer.finish());
  file.prefix = std::move(header.bytes);
  file.prefix += known;
  if (!constant_tensors.empty()) file.literals.push_back({0, 0, file.prefix.size()});
  for (size_t i = 0; i < slots.size(); ++i) {
    const PlacedComponent& slot = slots[i];
    if (slot.known)
      file.add_literal(header.offsets[i], slot.known->bytes);
    else
      slot.tensor->task.components[slot.component].offset = header.offsets[i];
  }
  file.bytes = header.file_bytes;
  return {};
}

Metadata metadata_of(const ModelIndex& model, uint32_t file, std::string_view version) {
  Metadata metadata;
  for (const auto& [key, value] : model.metadata(file))
    if (key != kVersionKey) metadata.emplace_back(key, value);
  if (!version.empty()) metadata.emplace_back(kVersionKey, version);
  return metadata;
}

using ShardMap = List<std::pair<std::string, std::string>>;

void add_to_map(ShardMap& map, std::span<PlannedTensor* const> tensors, const std::string& file) {
  for (const PlannedTensor* planned : tensors)
    for (const Component& component : planned->outputs())
      map.emplace_back(component.name_in(planned->weight.layer), file);
  for (const PlannedTensor* planned : tensors)
    for (const ConstantTensor& known : planned->activations) map.emplace_back(known.component.name_part, file);
}

}  // namespace

Status lay_out_files(Plan& plan, const ModelIndex& model, std::string_view version) {
  const bool one_file = &model.format() != &safetensors_format();  // other formats are written to one file
  List<List<PlannedTensor*>> by_file(one_file ? 1 : model.files().size());
  for (PlannedTensor& planned : plan.tensors)
    by_file[one_file ? 0 : model.tensors()[planned.tensor].file].push_back(&planned);
  const bool is_sharded = model.is_sharded() || by_file.size() > 1;
  ShardMap map;
  for (uint32_t f = 0; f < by_file.size(); ++f) {
    PlannedFile file{one_file ? "model.safetensors" : model.files()[f].name, {}, 0};
    TRY_VOID(lay_out_file(file, f, by_file[f], metadata_of(model, f, version)));
    if (is_sharded) add_to_map(map, by_file[f], file.name);
    plan.files.push_back(std::move(file));
  }
  if (is_sharded) plan.shard_map = safetensors::write_shard_map(map, plan.tensor_bytes, model.shard_map_text());
  return {};
}

}  // namespace wasmquant
