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

/// A stored tensor of a plan.
struct StoredComponent {
  const Plan& plan;
  const PlannedTensor& tensor;
  const ConstantTensor* known;  // literal bytes instead of a component
  const Component& described;   // of each tensor, if the stored one is a stack

  StoredComponent(const Plan& whole, const PlannedHeader::StoredTensor& entry)
      : plan(whole),
        tensor(plan.tensors[entry.tensor]),
        known(entry.is_activation ? &tensor.activations[entry.number] : nullptr),
        described(known ? known->component : tensor.outputs()[entry.number]) {}

  std::string name() const { return known ? described.name_part : described.name_in(plan.stored_layer(tensor)); }
  uint64_t count() const noexcept { return tensor.stack == 0 ? 1 : plan.stacks[tensor.stack - 1].tensors.size(); }
  uint64_t bytes() const noexcept { return described.bytes * count(); }
  std::vector<uint64_t> shape() const {
    std::vector<uint64_t> all = described.shape;
    if (tensor.stack != 0) all.insert(all.begin(), count());
    return all;
  }
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

// The tensors of a file in the order of their data; larger alignments first, so that no padding is needed. Appends the
// bytes that follow from shapes to `known`.
List<PlannedHeader::StoredTensor> entries_of(const Plan& plan, const List<uint32_t>& tensors, std::string& known) {
  const List<PlannedTensor>& all = plan.tensors;
  std::array<List<uint32_t>, kAlignments> aligned;
  for (const uint32_t tensor : tensors) {
    if (plan.first_of_stack(tensor) != tensor) continue;
    uint64_t bytes = 0;
    for (const Component& component : all[tensor].outputs()) bytes += is_known(component.role) ? 0 : component.bytes;
    aligned[alignment_class(bytes)].push_back(tensor);
  }
  List<PlannedHeader::StoredTensor> entries, constants;
  for (size_t alignment = kAlignments; alignment-- > 0;)
    for (const uint32_t tensor : aligned[alignment]) {
      const List<Component>& outputs = all[tensor].outputs();
      for (uint32_t c = 0; c < outputs.size(); ++c) {
        if (!is_known(outputs[c].role)) continue;
        entries.push_back({tensor, c});
        append_known(all[tensor], outputs[c].role, known);
      }
      for (uint32_t i = 0; i < all[tensor].activations.size(); ++i) constants.push_back({tensor, i, true});
    }
  // Activation scales go after tensors of at least their alignment.
  for (size_t alignment = kAlignments; alignment-- > 0;) {
    for (const uint32_t tensor : aligned[alignment]) {
      const List<Component>& outputs = all[tensor].outputs();
      for (uint32_t c = 0; c < outputs.size(); ++c)
        if (!is_known(outputs[c].role)) entries.push_back({tensor, c});
    }
    for (const PlannedHeader::StoredTensor& each : constants)
      if (alignment_class(StoredComponent(plan, each).described.bytes) == alignment) entries.push_back(each);
  }
  return entries;
}

// Fills `file` and the component locations of its tensors, which are in source order.
Status lay_out_file(PlannedFile& file, uint32_t file_index, Plan& plan, const List<uint32_t>& tensors,
                    const Metadata& metadata) {
  List<PlannedTensor>& all = plan.tensors;
  PlannedHeader& header = file.header;
  header.entries = entries_of(plan, tensors, file.prefix);
  for (const uint32_t tensor : tensors) all[tensor].task.components = List<Location>(all[tensor].outputs().size());
  TRY(layout, safetensors::HeaderLayout::begin(metadata));
  const auto name_of = [&](uint32_t i) { return StoredComponent(plan, header.entries[i]).name(); };
  bool has_constants = false;
  for (uint32_t i = 0; i < header.entries.size(); ++i) {
    const PlannedHeader::StoredTensor& entry = header.entries[i];
    if (i % PlannedHeader::kEntries == 0) header.marks.push_back({layout.header_bytes(), layout.data_bytes()});
    const StoredComponent stored(plan, entry);
    uint64_t offset = layout.data_bytes();
    if (entry.is_activation) has_constants = true;
    for (uint64_t part = 0; part < stored.count() && !entry.is_activation; ++part, offset += stored.described.bytes) {
      const uint32_t tensor =
          stored.tensor.stack == 0 ? entry.tensor : plan.stacks[stored.tensor.stack - 1].tensors[part];
      all[tensor].task.components[entry.number] = {file_index, offset};
    }
    TRY_VOID(layout.add(stored.name(), stored.described.dtype, stored.shape()));
  }
  TRY_VOID(layout.finish(name_of));
  if (header.marks.empty()) header.marks.push_back({});
  header.marks.front().text = 0;
  header.head = layout.head();
  header.tail = layout.tail();
  header.bytes = layout.header_bytes();
  file.bytes = header.bytes + layout.data_bytes();
  for (const uint32_t tensor : tensors)
    for (Location& at : all[tensor].task.components) at.offset += header.bytes;
  if (!file.prefix.empty()) file.literals.push_back({header.bytes, 0, file.prefix.size()});
  if (!has_constants) return {};
  uint64_t offset = header.bytes;
  for (const PlannedHeader::StoredTensor& entry : header.entries) {
    const StoredComponent stored(plan, entry);
    if (stored.known) file.add_literal(offset, stored.known->bytes);
    offset += stored.bytes();
  }
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

void add_to_map(ShardMap& map, const Plan& plan, const PlannedFile& file, const List<uint32_t>& tensors) {
  for (const uint32_t tensor : tensors)
    for (const Component& component : plan.tensors[tensor].outputs())
      if (plan.first_of_stack(tensor) == tensor)
        map.emplace_back(component.name_in(plan.stored_layer(plan.tensors[tensor])), file.name);
  for (const uint32_t tensor : tensors)
    for (const ConstantTensor& known : plan.tensors[tensor].activations)
      map.emplace_back(known.component.name_part, file.name);
}

// The source file of each tensor; that of the first of a stack.
List<List<uint32_t>> tensors_by_file(const Plan& plan, const ModelIndex& model, bool one_file) {
  List<List<uint32_t>> by_file(one_file ? 1 : model.files().size());
  for (uint32_t tensor = 0; tensor < plan.tensors.size(); ++tensor) {
    const PlannedTensor& first = plan.tensors[plan.first_of_stack(tensor)];
    by_file[one_file ? 0 : model.tensors()[first.tensor].file].push_back(tensor);
  }
  return by_file;
}

}  // namespace

Status lay_out_files(Plan& plan, const ModelIndex& model, std::string_view version) {
  const bool one_file = &model.format() != &safetensors_format();  // other formats are written to one file
  const List<List<uint32_t>> by_file = tensors_by_file(plan, model, one_file);
  const bool is_sharded = model.is_sharded() || by_file.size() > 1;
  ShardMap map;
  for (uint32_t f = 0; f < by_file.size(); ++f) {
    PlannedFile file;
    file.name = one_file ? "model.safetensors" : model.files()[f].name;
    TRY_VOID(lay_out_file(file, f, plan, by_file[f], metadata_of(model, f, version)));
    if (is_sharded) add_to_map(map, plan, file, by_file[f]);
    plan.files.push_back(std::move(file));
  }
  if (is_sharded) plan.shard_map = safetensors::write_shard_map(map, plan.tensor_bytes, model.shard_map_text());
  return {};
}

std::string header_text(const Plan& plan, const PlannedHeader& header, size_t piece) {
  const size_t first = piece * PlannedHeader::kEntries;
  const size_t last = std::min(first + PlannedHeader::kEntries, header.entries.size());
  const bool is_last = piece + 1 == header.piece_count();
  const uint64_t end = is_last ? header.bytes : header.marks[piece + 1].text;
  std::string out;
  out.reserve(end - header.marks[piece].text);
  if (piece == 0) out += header.head;
  uint64_t data = header.marks[piece].data;
  for (size_t i = first; i < last; ++i) {
    const StoredComponent stored(plan, header.entries[i]);
    safetensors::HeaderLayout::append(out, stored.name(), stored.described.dtype, stored.shape(), data, stored.bytes());
    data += stored.bytes();
  }
  if (is_last) out += header.tail;
  return out;
}

}  // namespace wasmquant
