// Parts of a layout: rows of a stack, columns of a matrix, or a matrix that is turned.
#include "pipeline/calibration/expert_task.h"

#include <utility>

namespace wasmquant {

Result<TensorTask> expert_task(TensorTask task, uint32_t expert, uint32_t part, uint32_t experts, uint64_t rows) {
  const WeightLayout all = task.layout;
  if (all.rows == rows) return task;
  const bool is_joined = all.rows == 2 * rows * experts && part < 2;
  const bool has_rows = all.codes == CodeStorage::ggml_rows || all.codes == CodeStorage::source_values;
  if (task.is_copy || !has_rows || all.components.size() != 1 || all.source_transposed || task.change.any() ||
      !(is_joined || all.rows == rows * experts))
    return error_at(ErrorCode::not_implemented, task.name,
                    "holds all experts in a way in which calibration cannot store them one by one; use another format");
  const uint64_t first = is_joined ? (2 * expert + part) * rows : expert * rows;
  const uint64_t bytes = all.components[0].bytes / all.rows, columns = all.columns;
  TRY(granularity, granularity_of({rows, columns}, all.spec));
  task.layout.edit([&](WeightLayout& one) {
    one.shape = {one.rows = rows, columns};
    one.components[0].shape = one.shape;
    one.components[0].bytes = bytes * rows;
    one.granularity = granularity;
    if (one.codes == CodeStorage::ggml_rows) {
      one.granularity = {};
      one.granularity.inner = rows * columns;
    }
  });
  task.components[0].offset += first * bytes;
  if (first + rows < all.rows) task.padding = 0;
  task.quantized = nullptr;
  task.assembly = {};
  if (task.importance.size() == experts * columns) {
    const auto own = task.importance.begin() + static_cast<ptrdiff_t>(expert * columns);
    task.importance = std::vector<float>(own, own + static_cast<ptrdiff_t>(columns));
  }
  return task;
}

TensorTask half_task(TensorTask task, uint32_t part) {
  const uint64_t element = task.layout->components[0].bytes / (task.layout->rows * task.layout->columns);
  task.source_pitch = task.layout->columns;
  const uint64_t columns = task.source_pitch / 2;
  task.layout.edit([&](WeightLayout& half) {
    half.shape = {half.rows, half.columns = columns};
    half.components[0].shape = half.shape;
    half.components[0].bytes /= 2;
  });
  task.components[0].offset += part * columns * element;
  return task;
}

namespace {

// The opposite of stacked_weight().
void turn_spec(QuantizationSpec& spec) noexcept {
  if (spec.qscheme == QScheme::per_block) std::swap(spec.block_rows, spec.block_columns);
  if (spec.qscheme == QScheme::per_group) spec.ch_axis = 1;
  if (spec.qscheme == QScheme::per_channel) spec.ch_axis = 0;
}

}  // namespace

Result<TensorTask> turned_task(TensorTask task) {
  const WeightLayout all = task.layout;
  task.change.is_transposed = false;
  if (all.codes == CodeStorage::ggml_rows && !task.is_copy) return task;
  if (all.source_transposed) {  // the file has [out, in]
    task.layout.edit([](WeightLayout& one) { one.source_transposed = false; });
    return task;
  }
  if (all.components.size() != 1 || all.components[0].shape.size() < 2 ||
      info_of(all.components[0].dtype).bits % 8 != 0)
    return error_at(ErrorCode::not_implemented, task.name,
                    "is stored as [in, out] in a way in which calibration cannot store it; use another format");
  const std::vector<uint64_t>& stored = all.components[0].shape;
  QuantizationSpec spec = all.spec;
  turn_spec(spec);
  uint64_t rows = 1;
  for (size_t axis = 0; axis + 1 < stored.size(); ++axis) rows *= stored[axis];
  Granularity granularity = all.granularity;
  if (!task.is_copy && !info_of(spec.dtype).is_plain_cast()) {
    TRY(turned, granularity_of({stored.back(), rows}, spec));
    granularity = turned;
  }
  task.layout.edit([&](WeightLayout& one) {
    one.shape = {one.rows = stored.back(), one.columns = rows};
    one.spec = spec;
    one.granularity = granularity;
  });
  task.change.is_transposed = true;
  return task;
}

}  // namespace wasmquant
