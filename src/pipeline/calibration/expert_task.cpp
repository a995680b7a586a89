#include "pipeline/calibration/expert_task.h"

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
  task.quantized = nullptr;
  task.assembly = {};
  if (task.importance.size() == experts * columns) {
    const auto own = task.importance.begin() + static_cast<ptrdiff_t>(expert * columns);
    task.importance = std::vector<float>(own, own + static_cast<ptrdiff_t>(columns));
  }
  return task;
}

}  // namespace wasmquant
