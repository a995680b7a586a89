#include "pipeline/plan/file_layout.h"

#include <algorithm>
#include <bit>

#include "core/list.h"
#include "core/order.h"
#include "formats/safetensors/safetensors.h"

namespace wasmquant {
namespace {

// 3 for multiples of 8, 2 of 4, 1 of 2, 0 otherwise.
int alignment_class(uint64_t bytes) { return bytes == 0 ? 3 : std::min(std::countr_zero(bytes), 3); }

struct Slot {
  PlannedTensor* tensor;
  size_t component;
  const KnownTensor* known = nullptr;  // in place of a component

  const Component& described() const noexcept { return known ? known->component : tensor->outputs()[component]; }
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

// Fills `file` and the component locations of its tensors, which are in the source's order.
Status lay_out_file(PlannedFile& file, uint32_t file_index, std::span<PlannedTensor* const> tensors,
                    const Metadata& metadata) {
  const auto data_bytes = [](const PlannedTensor* tensor) {
    uint64_t bytes = 0;
    for (const Component& component : tensor->outputs()) bytes += is_known(component.role) ? 0 : component.bytes;
    return bytes;
  };
  List<PlannedTensor*> order;
  order.reserve(tensors.size());
  const auto less = [&](uint32_t a, uint32_t b) {
    return alignment_class(data_bytes(tensors[a])) > alignment_class(data_bytes(tensors[b]));
  };
  for (const uint32_t i : sorted_order(tensors.size(), less)) order.push_back(tensors[i]);
  List<Slot> slots;
  std::string known;
  for (PlannedTensor* tensor : order) {
    tensor->task.components.clear();
    for (size_t c = 0; c < tensor->outputs().size(); ++c) tensor->task.components.push_back({file_index, 0});
    for (size_t c = 0; c < tensor->outputs().size(); ++c) {
      if (!is_known(tensor->outputs()[c].role)) continue;
      slots.push_back({tensor, c});
      append_known(*tensor, tensor->outputs()[c].role, known);
    }
  }
  // Scales of activations stand by themselves, each behind what is at least as aligned.
  List<const KnownTensor*> known_tensors;
  for (PlannedTensor* tensor : order)
    for (const KnownTensor& each : tensor->activations) known_tensors.push_back(&each);
  const auto add_known = [&](int alignment) {
    for (const KnownTensor* each : known_tensors)
      if (alignment_class(each->component.bytes) == alignment) slots.push_back({nullptr, 0, each});
  };
  int alignment = 3;
  for (PlannedTensor* tensor : order) {
    for (; alignment > alignment_class(data_bytes(tensor)); --alignment) add_known(alignment);
    for (size_t c = 0; c < tensor->outputs().size(); ++c)
      if (!is_known(tensor->outputs()[c].role)) slots.push_back({tensor, c});
  }
  for (; alignment >= 0; --alignment) add_known(alignment);

  List<safetensors::Entry> entries;
  entries.reserve(slots.size());
  for (const Slot& slot : slots) {
    const Component& component = slot.described();
    entries.push_back({component.name, component.dtype, component.shape});
  }
  TRY(header, safetensors::write_header(entries, metadata));
  file.prefix = std::move(header.bytes) + known;
  if (!known_tensors.empty()) file.literals.push_back({0, 0, file.prefix.size()});
  for (size_t i = 0; i < slots.size(); ++i) {
    const Slot& slot = slots[i];
    if (slot.known)
      file.add_literal(header.offsets[i], slot.known->bytes);
    else
      slot.tensor->task.components[slot.component].offset = header.offsets[i];
  }
  file.bytes = header.file_bytes;
  return {};
}

// That of its source, and the version.
Metadata metadata_of(const ModelIndex& model, uint32_t file, std::string_view version) {
  Metadata metadata;
  for (const auto& [key, value] : model.metadata(file))
    if (key != kVersionKey) metadata.emplace_back(key, value);
  if (!version.empty()) metadata.emplace_back(kVersionKey, version);
  return metadata;
}

}  // namespace

Status lay_out_files(Plan& plan, const ModelIndex& model, std::string_view version) {
  const bool one_file = model.is_npy();  // arrays have a file each, or are parts of one
  List<List<PlannedTensor*>> by_file(one_file ? 1 : model.files().size());
  for (PlannedTensor& planned : plan.tensors)
    by_file[one_file ? 0 : model.tensors()[planned.tensor].file].push_back(&planned);
  List<std::pair<std::string, std::string>> map;
  for (uint32_t f = 0; f < by_file.size(); ++f) {
    PlannedFile file{one_file ? "model.safetensors" : model.files()[f].name, {}, 0};
    TRY_VOID(lay_out_file(file, f, by_file[f], metadata_of(model, f, version)));
    for (const PlannedTensor* planned : by_file[f])
      for (const Component& component : planned->outputs()) map.emplace_back(component.name, file.name);
    for (const PlannedTensor* planned : by_file[f])
      for (const KnownTensor& known : planned->activations) map.emplace_back(known.component.name, file.name);
    plan.files.push_back(std::move(file));
  }
  if (model.is_sharded() || by_file.size() > 1)
    plan.shard_map = safetensors::write_shard_map(map, plan.bytes_after, model.shard_map_text());
  return {};
}

}  // namespace wasmquant
