#include "pipeline/quantized_rows.h"

namespace wasmquant {
namespace {

// Each row has its own codes and scales, in bytes of its own.
bool has_separate_rows(const WeightLayout& layout, uint64_t columns) {
  const bool is_by_rows = layout.codes == CodeStorage::rows_bytes || layout.codes == CodeStorage::rows_bit_stream;
  return is_by_rows && layout.spec.qscheme == QScheme::per_group && layout.granularity.axis == columns;
}

}  // namespace

std::shared_ptr<const QuantizedSource> quantized_rows(const QuantizedSource& source, uint64_t first, uint64_t count,
                                                      uint64_t columns) {
  const WeightLayout& whole = source.task.layout;
  if (columns == 0 || !has_separate_rows(whole, columns)) return nullptr;
  const uint64_t rows = whole.rows * whole.columns / columns;
  if (rows == 0 || first > rows || count > rows - first) return nullptr;
  const CheckpointFormat* const format = checkpoint_format_named(source.format);
  auto part = std::make_shared<QuantizedSource>();
  part->format = source.format;
  part->weight = source.weight;
  part->weight.shape = {count, columns};
  auto layout = format->layout(part->weight, whole.all_stages());
  if (!layout || layout->components.size() != whole.components.size()) return nullptr;
  part->task = source.task;
  part->task.layout = std::move(*layout);
  for (size_t c = 0; c < whole.components.size(); ++c) {
    set_dtype(part->task.layout.components[c], whole.components[c].dtype);
    if (is_of_whole_tensor(whole.components[c].role)) continue;
    if (whole.components[c].bytes % rows != 0) return nullptr;
    part->task.components[c].offset += whole.components[c].bytes / rows * first;
  }
  part->text = write_task(part->task, part->format, part->weight);
  return part;
}

}  // namespace wasmquant
