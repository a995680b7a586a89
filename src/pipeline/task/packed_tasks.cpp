// Packing and unpacking of tasks, and the checks that make a packed task safe to run.
#include "pipeline/task/packed_tasks.h"

#include <algorithm>

#include "pipeline/task/pack_stream.h"
#include "pipeline/task/tensor_scales.h"

namespace wasmquant {
namespace {

constexpr std::string_view kHead = "wqtk\3";  // the last byte is the version

const char* problem_of(const WeightLayout& layout) noexcept {
  uint64_t elements = 1, matrix = 0, counted = 0;
  for (const uint64_t extent : layout.shape)
    if (__builtin_mul_overflow(elements, extent, &elements)) return "a shape is too large";
  if (__builtin_mul_overflow(layout.rows, layout.columns, &matrix) || matrix != elements)
    return "rows and columns are not those of the shape";
  const Granularity& g = layout.granularity;
  if (g.block == 0 || g.outer_block == 0 || __builtin_mul_overflow(g.outer, g.axis, &counted) ||
      __builtin_mul_overflow(counted, g.inner, &counted))
    return "scales do not cover the shape";
  if (layout.bits == 0 || layout.bits > 32 || layout.whole_lines == 0) return "codes or lines have no size";
  if (layout.stages.size() != 0 && layout.stages.size() != 2) return "there are neither one nor two stages";
  if (layout.reads_group_index && !may_have_group_index(layout.codes)) return "codes have no group index";
  if (layout.column_tiles() && layout.lines() != 0 && !layout.scales_in_tiles())
    return "transposed codes have scales that cover no whole tile";
  if (layout.codes == CodeStorage::ggml_rows && !ggml_type_of(layout.components.front().dtype))
    return "blocks have no GGUF type";
  for (const Component& component : layout.components) {
    if (component.varint_bytes != 0 && component.varint_bytes < component.bytes) return "varints have too few bytes";
    uint64_t bits = info_of(component.dtype).bits;
    for (const uint64_t extent : component.shape)
      if (__builtin_mul_overflow(bits, extent, &bits)) return "a shape is too large";
    // Smaller ones are sub-byte codes under a byte dtype.
    if (!info_of(component.dtype).is_ggml() && component.bytes > bits / 8 + (bits % 8 != 0))
      return "a component is larger than its shape";
  }
  return nullptr;
}

const char* problem_of(const TensorTask& task) noexcept;

// Of the parts that a stored weight is made of.
const char* problem_of_assembly(const TensorTask& task) noexcept {
  const Assembly& assembly = task.assembly;
  if (!assembly.any()) return nullptr;
  const WeightLayout& layout = task.layout;
  const uint64_t rounds = assembly.rounds, columns = assembly.columns;
  if (rounds == 0 || columns == 0 || layout.rows % rounds != 0 || layout.column_tiles() || layout.rows == 0 ||
      (assembly.takes_turns && assembly.parts.size() > rounds))
    return "rounds are not those of the weight";
  const uint64_t wanted = layout.rows / rounds * layout.columns;
  for (const RowScales& scales : assembly.scales)
    if (scales.values.empty()) return "there are no scales of rows";
  uint64_t left = wanted, first = 0, viewed = 0;
  if (!assembly.views.empty()) {  // of one part
    if (assembly.parts.size() != 1 || assembly.takes_turns) return "views are not of one part";
    const WeightLayout& only = assembly.parts.front()->task.layout;
    left = only.rows * only.columns / rounds;
    for (const StridedView& view : assembly.views)
      if (!view.fits(left) || __builtin_add_overflow(viewed, view.count(), &viewed)) return "a view is outside";
    if (viewed != wanted) return "the views do not make the weight";
  }
  for (const auto& part : assembly.parts) {
    if (part == nullptr || part->task.assembly->any() || part->task.is_copy || part->task.quantized)
      return "a part is made of others";
    if (const char* problem = problem_of(part->task)) return problem;
    const WeightLayout& own = part->task.layout;
    const uint64_t share = own.rows * own.columns / (assembly.takes_turns ? 1 : rounds);
    if (own.column_tiles() || (!assembly.takes_turns && own.rows % rounds != 0) || share % columns != 0 ||
        (assembly.takes_turns ? share != left : share > left))
      return "the parts do not make the weight";
    if (!assembly.takes_turns) left -= share;
    if (first == 0) first = share;
    if (assembly.interleaved != 0 && (share != first || share % assembly.interleaved != 0))
      return "the parts cannot take turns";
  }
  return assembly.takes_turns || left == 0 ? nullptr : "the parts do not make the weight";
}

const char* problem_of_source(const TensorTask& task) noexcept {
  const WeightLayout& layout = task.layout;
  if (task.source_pitch != 0 && task.source_pitch < (layout.source_transposed ? layout.rows : layout.columns))
    return "the pitch is shorter than a row";
  if (!task.quantized) return nullptr;
  if (const char* problem = problem_of_assembly(task.quantized->task)) return problem;
  const WeightLayout& source = task.quantized->task.layout;
  if (task.quantized->task.is_copy || source.rows * source.columns != layout.rows * layout.columns)
    return "the stored weight has another size";
  return problem_of(task.quantized->task);
}

// Of a weight that shares a scale with the task's.
const char* problem_of_joined(const TensorTask& task) noexcept {
  const WeightLayout& layout = task.layout;
  if (task.is_copy || task.is_varints || !task.is_observed || !task.joined.empty() || !layout.components.empty() ||
      !layout.stages.empty() || layout.codes != CodeStorage::rows_bytes || layout.spec.qscheme != QScheme::per_tensor ||
      task.factors->any() || !task.importance.empty())
    return "a joined weight is not one that is only observed";
  if (const char* problem = problem_of(layout)) return problem;
  return problem_of_source(task);
}

// Null if the sizes of shapes, components, scales and factors agree, so that sessions and decoders can run the task.
const char* problem_of(const TensorTask& task) noexcept {
  const WeightLayout& layout = task.layout;
  if (task.padding > 1 << 20) return "the padding is too large";
  if (task.is_copy) {
    if (task.components.size() != 1 || layout.components.size() > 1) return "a copy has one output";
    if (!task.factors->any()) return nullptr;
    const uint32_t bits = layout.components.empty() ? 0 : info_of(layout.components.front().dtype).bits;
    if (bits != 16 && bits != 32) return "factors multiply floats of 16 or 32 bits";
    return task.factors->fits(task.source_bytes * 8 / bits) ? nullptr : "factors do not fit";
  }
  if (layout.components.empty() || task.components.size() != layout.components.size())
    return "the numbers of places and components differ";
  if (const char* problem = problem_of(layout)) return problem;
  const uint64_t elements = layout.rows * layout.columns, weights = task.importance.size();
  if (task.factors->any() && !task.factors->fits(elements)) return "factors do not fit";
  // Stacked GGUF experts each have their own.
  const uint64_t columns = std::max<uint64_t>(layout.columns, 1);
  const uint64_t experts = layout.codes == CodeStorage::ggml_rows ? weights / columns : 1;
  if (weights != 0 && (experts == 0 || weights != experts * columns || layout.rows % experts != 0))
    return "the importance does not fit";
  if (!task.joined.empty() && (!task.is_observed || !TensorScales::can_join(layout)))
    return "its scales cannot be shared";
  for (const auto& other : task.joined)
    if (const char* problem = problem_of_joined(*other)) return problem;
  if (const char* problem = problem_of_assembly(task)) return problem;
  return problem_of_source(task);
}

}  // namespace

void TaskPacker::add(TensorTask task) {
  std::string fields;
  PackStream(fields, &tables_).pack(task);
  PackStream(tasks_, nullptr).pack(fields);
  ++count_;
}

std::string TaskPacker::bytes() {
  std::string layouts;
  PackStream(layouts, nullptr).count(tables_.layouts.size(), 1);
  for (WeightLayout layout : tables_.layouts) PackStream(layouts, &tables_).pack(layout);
  std::string head(kHead);
  PackStream(head, nullptr).pack(tables_.specs);
  head += layouts;
  PackStream(head, nullptr).pack(count_);
  tasks_.insert(0, head);
  tables_ = {};
  count_ = 0;
  return std::exchange(tasks_, {});
}

Result<PackedTasks> PackedTasks::open(std::string bytes) {
  PackedTasks tasks;
  tasks.bytes_ = std::move(bytes);
  if (!tasks.bytes_.starts_with(kHead))
    return error_at(ErrorCode::argument_invalid, "byte 0",
                    "is not the beginning of tasks that this version packs; use module and worker of one version");
  PackStream specs(tasks.bytes_, kHead.size(), tasks.bytes_.size(), nullptr);
  specs.pack(tasks.tables_.specs);
  PackStream in(tasks.bytes_, specs.at(), tasks.bytes_.size(), &tasks.tables_);
  for (size_t left = in.count(0, 1); left > 0; --left) {
    WeightLayout layout;
    in.pack(layout);
    tasks.tables_.layouts.push_back(std::move(layout));
  }
  for (size_t left = in.count(0, 1); left > 0; --left) {
    tasks.begins_.push_back(in.at());
    in.skip(in.count(0, 1));
  }
  TRY_VOID(in.finish("the list of tasks"));
  return tasks;
}

Result<TensorTask> PackedTasks::at(size_t number) const {
  if (number >= size())
    return error_at(ErrorCode::argument_invalid, text_of("task {}", number), "does not exist; there are {}", size());
  PackStream head(bytes_, begins_[number], bytes_.size(), nullptr);
  const size_t size = head.count(0, 1);
  PackStream in(bytes_, head.at(), head.at() + size, &tables_);
  TensorTask task;
  in.pack(task);
  TRY_VOID(in.finish(text_of("task {}", number)));
  const char* const problem = problem_of(task);
  if (problem == nullptr) return task;
  return error_at(ErrorCode::argument_invalid, task.name, "task {} cannot be run: {}", number,
                  std::string_view(problem));
}

std::string identity_of(TensorTask task) {
  task.tiles = task.tile_lines = 0;
  for (auto& other : task.joined) {
    auto untiled = std::make_shared<TensorTask>(*other);
    untiled->tiles = untiled->tile_lines = 0;
    other = std::move(untiled);
  }
  std::string bytes;
  PackStream(bytes, nullptr).pack(task);
  return bytes;
}

std::optional<List<TensorTask>> copies_of(const TensorTask& task, const TensorTask& stored, uint32_t first_file,
                                          const TileBytes& tile_bytes) {
  TensorTask elsewhere = stored;
  if (stored.components.size() == task.components.size()) elsewhere.components = task.components;
  if (identity_of(task) != identity_of(std::move(elsewhere))) return std::nullopt;
  List<TensorTask> copies;
  for (size_t c = 0; c < task.components.size(); ++c) {
    const Component& component = task.layout->components[c];
    if (is_known(component.role)) continue;
    TensorTask& copy = copies.emplace_back();
    copy.name = task.name;
    copy.source = {first_file + stored.components[c].file, stored.components[c].offset};
    copy.source_bytes = component.bytes;
    copy.components = {task.components[c]};
    copy.is_copy = true;
    copy.padding = task.padding;
    set_tiles(copy, tile_bytes);
  }
  return copies;
}

}  // namespace wasmquant
