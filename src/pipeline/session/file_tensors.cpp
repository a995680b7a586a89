// Elements of a weight by tensor of the file: found once, then followed in both directions for each row that is stored.
#include "pipeline/session/file_tensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/message.h"

namespace wasmquant {
namespace {

const std::vector<uint64_t>& shape_of(const TensorTask& task) noexcept { return task.layout->components.front().shape; }

// Numbers of the elements of what a conversion reads: a run of the weight.
struct SourceRun {
  uint64_t first, count;
};

// The elements of `weight` from a place of its file on; nullopt if they are not among them.
bool finds(const FileTensors::Weight& weight, const Location& at, uint64_t count, SourceRun& run) noexcept {
  const uint64_t element = info_of(weight.dtype).bits / 8, all = weight.rows * weight.columns;
  if (at.file != weight.at.file || at.offset < weight.at.offset || element == 0) return false;
  const uint64_t bytes = at.offset - weight.at.offset;
  run = {bytes / element, count};
  return bytes % element == 0 && count <= all && run.first <= all - count;
}

// The elements of one round, as TensorDecoder takes them from a round's.
std::vector<uint32_t> arranged(const Assembly& assembly, const SourceRun& run) {
  std::vector<uint32_t> all(run.count), out;
  for (uint64_t i = 0; i < run.count; ++i) all[i] = static_cast<uint32_t>(run.first + i);
  List<StridedView> views = assembly.views;
  if (assembly.is_transposed)
    views.push_back({0, {1, assembly.columns, run.count / assembly.columns}, {0, 1, assembly.columns}});
  if (views.empty()) return all;
  for (const StridedView& view : views) view.copy(all, out);
  return out;
}

bool can_follow(const Assembly& assembly) noexcept {
  return !assembly.is_first_transposed && assembly.interleaved == 0 && assembly.addend == 0 && !assembly.is_logarithm &&
         (assembly.takes_turns || assembly.parts.size() == 1) && assembly.rounds != 0;
}

}  // namespace

Error FileTensors::refused(const std::string& name) {
  return error_at(ErrorCode::not_implemented, name,
                  "has its values in another order, or multiplied, in this format, for which calibrated codes are not "
                  "implemented: choose another format, or a config without algorithms");
}

bool FileTensor::has_blocks() const noexcept {
  return !rows.empty() && !task.is_copy && info_of(*ggml_type_of(task.layout->components.front().dtype)).block > 1;
}

Result<TensorTask> FileTensors::task_of(List<TensorTask> tasks, const Weight& weight) {
  auto file = std::make_shared<FileTensors>();
  file->rows_ = weight.rows;
  file->width_ = weight.columns;
  for (TensorTask& task : tasks) TRY_VOID(file->add(std::move(task), weight));
  return finish(std::move(file));
}

Result<TensorTask> FileTensors::alternating(TensorTask gate, TensorTask up) {
  auto file = std::make_shared<FileTensors>();
  file->width_ = gate.layout->columns;
  file->rows_ = 2 * gate.layout->rows;
  for (TensorTask* const task : {&gate, &up}) {
    const WeightLayout& layout = task->layout;
    if (layout.codes != CodeStorage::ggml_rows || layout.rows * 2 != file->rows_) return refused(task->name);
    FileTensor& tensor = file->tensors_.emplace_back();
    tensor.columns = file->width_;
    for (uint64_t row = 0; row < layout.rows; ++row)
      tensor.rows.push_back(static_cast<uint32_t>(2 * row + file->tensors_.size() - 1));
    tensor.task = std::move(*task);
  }
  return finish(std::move(file));
}

Result<TensorTask> FileTensors::finish(std::shared_ptr<FileTensors> file) {
  const FileTensor* first = &file->tensors_.front();
  uint64_t count = 0;
  file->places_.resize(file->rows_);
  for (uint32_t number = 0; number < file->tensors_.size(); ++number) {
    const FileTensor& tensor = file->tensors_[number];
    if (tensor.has_blocks() && !first->has_blocks()) first = &tensor;
    for (const uint32_t element : tensor.elements) count += element != kNone;
    for (uint32_t row = 0; row < tensor.rows.size(); ++row) {
      if (tensor.rows[row] == kNone) continue;
      Place& place = file->places_[tensor.rows[row]];
      if (place.row != kNone) return refused(tensor.task.name);
      place = {tensor.has_blocks() ? number : kNone, row};
      count += file->width_;
    }
  }
  TensorTask task = first->task;
  if (count != file->rows_ * file->width_) return refused(task.name);
  task.source_bytes = count * info_of(task.layout->components.front().dtype).bits / 8;
  task.layout.edit([&](WeightLayout& layout) {
    layout.shape = {layout.rows = file->rows_, layout.columns = file->width_};
    layout.granularity.inner = count;
  });
  task.file = std::move(file);
  return task;
}

Status FileTensors::add(TensorTask task, const Weight& weight) {
  FileTensor tensor;
  if (!task.is_copy && task.layout->codes != CodeStorage::ggml_rows) return refused(task.name);
  tensor.columns = shape_of(task).empty() ? 1 : shape_of(task).back();
  uint64_t count = 1;
  for (const uint64_t extent : shape_of(task)) count *= extent;
  if (weight.rows * weight.columns >= kNone || count >= kNone) return refused(task.name);
  static const Assembly kNoAssembly;
  const Assembly& made = task.quantized ? *task.quantized->task.assembly : kNoAssembly;
  SourceRun run{};
  if (!made.any()) {
    if (task.quantized || !finds(weight, task.source, count, run)) return refused(task.name);
    for (uint64_t at = 0; at < count; at += tensor.columns)
      add_elements(tensor, arranged(made, {run.first + at, tensor.columns}));
  } else {
    if (!can_follow(made)) return refused(task.name);
    const WeightLayout& first = made.parts.front()->task.layout;
    const uint64_t whole = first.rows * first.columns;
    for (uint64_t round = 0; round < made.rounds; ++round) {
      if (made.takes_turns && round >= made.parts.size()) {
        add_elements(tensor, std::vector<uint32_t>(count / made.rounds, kNone));
        continue;
      }
      const TensorTask& part = made.parts[made.takes_turns ? round : 0]->task;
      const bool is_read = part.layout->codes == CodeStorage::source_values && part.layout->rows == first.rows;
      if (!is_read || part.assembly->any() || !finds(weight, part.components.front(), whole, run))
        return refused(task.name);
      const uint64_t share = made.takes_turns ? whole : whole / made.rounds;
      add_elements(tensor, arranged(made, {run.first + (made.takes_turns ? 0 : round * share), share}));
    }
    tensor.scales = made.scales;
  }
  for (const RowScales& scales : tensor.scales)
    for (const float scale : scales.values)
      if (!std::isfinite(scale) || scale == 0) return refused(task.name);
  task.quantized = nullptr;
  task.assembly = {};
  if (!task.is_copy) task.source_pitch = 0;
  tensor.task = std::move(task);
  tensors_.push_back(std::move(tensor));
  return {};
}

uint32_t FileTensors::element_of(size_t row, size_t column) const noexcept {
  return static_cast<uint32_t>(row * width_ + (columns_.empty() ? column : columns_[column]));
}

bool FileTensors::add_row(FileTensor& tensor, std::span<const uint32_t> elements) {
  if (elements.size() != width_ || rows_ < 2 || !tensor.elements.empty()) return false;
  if (elements.front() == kNone) {
    tensor.rows.push_back(kNone);
    return true;
  }
  const auto row = static_cast<uint32_t>(elements.front() / width_);
  for (const uint32_t element : elements)
    if (element / width_ != row) return false;
  if (!std::exchange(has_columns_, true)) {
    for (size_t j = 0; j < width_; ++j)
      if (elements[j] % width_ != j) columns_.resize(width_);
    for (size_t j = 0; j < columns_.size(); ++j) columns_[j] = static_cast<uint32_t>(elements[j] % width_);
  }
  for (size_t j = 0; j < width_; ++j)
    if (elements[j] != element_of(row, j)) return false;
  tensor.rows.push_back(row);
  return true;
}

void FileTensors::add_elements(FileTensor& tensor, std::span<const uint32_t> elements) {
  for (size_t at = 0; at < elements.size();) {
    const auto next = elements.subspan(at, std::min<size_t>(tensor.columns, elements.size() - at));
    at += next.size();
    if (add_row(tensor, next)) continue;
    for (const uint32_t row : std::exchange(tensor.rows, {}))
      for (size_t j = 0; j < width_; ++j) tensor.elements.push_back(row == kNone ? kNone : element_of(row, j));
    tensor.elements.insert(tensor.elements.end(), next.begin(), next.end());
  }
}

size_t FileTensors::row_bytes() const noexcept {
  size_t bytes = 0;
  for (const FileTensor& tensor : tensors_)
    if (tensor.has_blocks())
      bytes = std::max<size_t>(bytes, info_of(tensor.task.layout->components.front().dtype).bytes_of(width_));
  return bytes;
}

namespace {

float scaled(const FileTensor& tensor, size_t row, float value) noexcept {
  for (const RowScales& scales : tensor.scales) {
    const float scale = scales.values[row % scales.values.size()];
    value = scales.divides ? value / scale : value * scale;
  }
  return value;
}

float unscaled(const FileTensor& tensor, size_t row, float value) noexcept {
  for (const RowScales& scales : tensor.scales) {
    const float scale = scales.values[row % scales.values.size()];
    value = scales.divides ? value * scale : value / scale;
  }
  return value;
}

}  // namespace

void FileTensors::take(const FileTensor& tensor, size_t at, std::span<const float> row, std::vector<float>& out) const {
  for (size_t j = 0; j < width_; ++j) out.push_back(scaled(tensor, at, row[element_of(0, j)]));
}

void FileTensors::put(const FileTensor& tensor, size_t at, std::span<const float> values,
                      std::span<float> row) const noexcept {
  for (size_t j = 0; j < width_; ++j) row[element_of(0, j)] = unscaled(tensor, at, values[j]);
}

std::vector<float> FileTensors::values_of(const FileTensor& tensor, std::span<const float> weight) const {
  std::vector<float> out;
  for (size_t at = 0; at < tensor.rows.size(); ++at) {
    if (tensor.rows[at] == kNone)
      out.resize(out.size() + width_);
    else
      take(tensor, at, weight.subspan(tensor.rows[at] * width_, width_), out);
  }
  for (const uint32_t element : tensor.elements)
    out.push_back(element == kNone ? 0.0f : scaled(tensor, out.size() / tensor.columns, weight[element]));
  return out;
}

void FileTensors::put_back(const FileTensor& tensor, std::span<const float> values,
                           std::span<float> weight) const noexcept {
  for (size_t at = 0; at < tensor.rows.size(); ++at)
    if (tensor.rows[at] != kNone)
      put(tensor, at, values.subspan(at * width_, width_), weight.subspan(tensor.rows[at] * width_, width_));
  for (size_t i = 0; i < tensor.elements.size(); ++i)
    if (tensor.elements[i] != kNone) weight[tensor.elements[i]] = unscaled(tensor, i / tensor.columns, values[i]);
}

Result<StoredValues> FileTensors::store(std::span<const uint8_t> blocks, std::span<const float> weight) const {
  StoredValues out;
  out.values.resize(weight.size());
  bool is_rounded = false;
  const size_t pitch = row_bytes();
  for (const FileTensor& tensor : tensors_) {
    const std::vector<float> values = values_of(tensor, weight);
    std::vector<uint8_t> own;
    const size_t bytes = tensor.has_blocks() ? info_of(tensor.task.layout->components[0].dtype).bytes_of(width_) : 0;
    for (const uint32_t row : tensor.rows) {
      if (blocks.empty() || bytes == 0) break;
      const size_t at = own.size();
      own.resize(at + bytes);
      if (row != kNone) std::memcpy(own.data() + at, blocks.data() + row * pitch, bytes);
    }
    TRY(stored,
        own.empty() ? store_modified(tensor.task, values, nullptr, values) : store_blocks(tensor.task, own, values));
    put_back(tensor, stored.values, out.values);
    for (StoredPiece& piece : stored.pieces) out.pieces.push_back(std::move(piece));
    is_rounded |= !tensor.task.is_copy;
  }
  if (is_rounded) out.error = kernels::error_between(weight, out.values.data());
  return out;
}

}  // namespace wasmquant
