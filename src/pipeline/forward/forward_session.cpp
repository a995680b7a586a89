// Tiles are decoded into the block, the final norm or rows of a table; steps that were kept run without.
#include "pipeline/forward/forward_session.h"

#include <algorithm>
#include <utility>

#include "core/message.h"
#include "model/block_weights.h"
#include "pipeline/calibration/expert_task.h"
#include "pipeline/forward/forward_plan.h"
#include "pipeline/session/file_tensors.h"
#include "pipeline/session/store_modified_weight.h"

namespace wasmquant {
namespace {

uint64_t count_of(const model::BlockWeight& weight) noexcept {
  return uint64_t{std::max(weight.rows, 1u)} * weight.columns;
}

constexpr uint32_t expert_of(uint32_t slot) noexcept { return (slot - kExpertSlots) / 3; }

/// [rows, columns] to [columns, rows].
void transpose(std::vector<float>& values, size_t rows) {
  const size_t columns = values.size() / rows;
  std::vector<float> turned(values.size());
  for (size_t row = 0; row < rows; ++row)
    for (size_t column = 0; column < columns; ++column) turned[column * rows + row] = values[row * columns + column];
  values = std::move(turned);
}

}  // namespace

std::vector<float>* ForwardSession::target_of(uint32_t slot) noexcept {
  if (slot >= kExpertSlots) return &pass_.expert()[block_slot(slot)];
  if (slot < model::kSlots) return &pass_.block()[static_cast<model::Slot>(slot)];
  model::OuterTables& tables = pass_.tables();
  if (slot == kPositionsSlot) return &tables.positions;
  if (slot == kTypesSlot) return &tables.types;
  if (slot == kEmbeddingNormSlot) return &tables.norm;
  if (slot == kEmbeddingNormBiasSlot) return &tables.norm_bias;
  if (slot == kFinalNormBiasSlot) return &tables.final_norm_bias;
  if (slot == kHeadBiasSlot) return &tables.head_bias;
  if (slot == kLayerProjectionSlot) return &tables.layer_projection;
  if (slot == kLayerTableNormSlot) return &tables.layer_norm;
  if (slot == kEncoderNormSlot) return &tables.encoder_norm;
  for (uint32_t stream = 0; stream < tables.stream_in.size(); ++stream) {
    if (slot == kStreamInSlot + stream) return &tables.stream_in[stream];
    if (slot == kStreamOutSlot + stream) return &tables.stream_out[stream];
  }
  return slot == kFinalNormSlot ? &pass_.final_norm() : &matrix_;
}

model::Architecture ForwardSession::part() const {
  const model::Architecture& a = pass_.architecture();
  return is_expert() ? model::expert_of(a, expert_of(slot_)) : model::block_of(a, step_ - 1);
}

size_t ForwardSession::row_columns() const noexcept {
  return std::max<size_t>(
      slot_ == kLayerTableSlot ? model::layer_columns(pass_.architecture()) : pass_.architecture().hidden, 1);
}

uint64_t ForwardSession::expected_count(uint32_t step, uint32_t slot) const noexcept {
  const model::Architecture& a = pass_.architecture();
  if (slot == kEmbeddingSlot || slot == kHeadSlot) return uint64_t{a.vocabulary} * a.hidden;
  for (const uint32_t vector :
       {kFinalNormSlot, kFinalNormBiasSlot, kEmbeddingNormSlot, kEmbeddingNormBiasSlot, kEncoderNormSlot})
    if (slot == vector) return a.hidden;
  if (slot == kHeadBiasSlot) return a.vocabulary;
  if (slot == kLayerTableSlot) return a.layer_inputs.tokens * model::layer_columns(pass_.architecture());
  if (slot == kLayerProjectionSlot) return model::layer_columns(pass_.architecture()) * a.hidden;
  if (slot == kLayerTableNormSlot) return a.layer_inputs.width;
  for (const uint32_t first : {kStreamInSlot, kStreamOutSlot})
    if (slot >= first && slot + 1 < first + a.streams.count) return uint64_t{a.hidden} * a.hidden;
  if (slot >= kExpertSlots) {
    const bool is_double = a.routing.gate_limit > 0 && block_slot(slot) == model::Slot::gate;
    return expert_of(slot) < a.routing.experts ? (is_double ? 2 : 1) * uint64_t{a.routing.width} * a.hidden : 0;
  }
  if (slot == kPositionsSlot) return uint64_t{a.first_position + a.max_positions} * a.hidden;
  if (slot == kTypesSlot) return uint64_t{a.token_types} * a.hidden;
  for (const model::BlockWeight& weight : model::block_weights(a, step == 0 ? 0 : step - 1))
    if (static_cast<uint32_t>(weight.slot) == slot) return count_of(weight);
  return 0;
}

Status ForwardSession::begin(uint32_t step, uint32_t slot, TensorTask task) {
  const WeightLayout& layout = task.layout;
  if (task.is_copy || layout.rows * layout.columns != expected_count(step, slot) ||
      step > pass_.architecture().layers + 1)
    return error_at(ErrorCode::argument_invalid, task.name, "does not belong to this model's forward pass");
  if (pass_.sequences() == 0) return error_at(ErrorCode::state_invalid, "tokens", "were not given");
  pass_.forget_states();
  const model::Architecture& a = pass_.architecture();
  if (step_ != step && !(a.mixers.empty() && a.sizes.empty() &&
                         a.decoder.first == 0))  // layers differ in what they have, such as biases
    for (std::vector<float>& values : pass_.block().values) values.clear();
  step_ = step;
  slot_ = slot;
  const bool is_table = slot == kEmbeddingSlot || slot == kHeadSlot || slot == kLayerTableSlot;
  is_streamed_ = is_table && !layout.column_tiles();
  if (!is_streamed_) target_of(slot)->resize(layout.rows * layout.columns);
  if (is_as_llama_cpp_) {
    const model::InputPrecision precision = model::llama_cpp_precision(layout.components.front().dtype);
    if (slot < model::kSlots) pass_.block().inputs[slot] = precision;
    if (slot >= kExpertSlots) pass_.expert().inputs[static_cast<size_t>(block_slot(slot))] = precision;
    if (slot == kHeadSlot) pass_.set_head_precision(precision);
  }
  if (slot == kHeadSlot) TRY_VOID(pass_.begin_head(sink_));
  if (slot < model::kSlots) {
    const bool is_plain = layout.codes == CodeStorage::source_values && !task.assembly->any() && !task.change.any() &&
                          task.source_pitch == 0 && !is_turned(slot);
    loaded_[slot] = {task.change,
                     task.assembly,
                     task.components.empty() ? Location() : task.components.front(),
                     layout.components.front().dtype,
                     layout.rows,
                     layout.columns,
                     is_plain};
  }
  decoder_.emplace(std::move(task));
  return {};
}

bool ForwardSession::is_turned(uint32_t slot) const noexcept {
  const model::Architecture& a = pass_.architecture();
  return slot >= kExpertSlots ? a.routing.gate_limit > 0 : a.is_transposed && slot < model::kBlockMatrices;
}

Status ForwardSession::restore_changes(uint32_t slot, TensorTask& task) const {
  const bool was_turned = slot >= kExpertSlots && decoder_ && decoder_->task().change.is_transposed;
  if (is_turned(slot) || was_turned) {
    TRY(turned, turned_task(std::move(task)));
    task = std::move(turned);
    return {};
  }
  ValueTransform change = slot < model::kSlots ? loaded_[slot].change
                          : decoder_           ? decoder_->task().change
                                               : ValueTransform();
  if (!change.any() || task.change.any()) return {};
  change.inverse = false;
  task.change = change;
  if (change.interleaved_rows != 0)
    task.layout.edit([&](WeightLayout& layout) { layout.whole_lines = change.interleaved_rows; });
  return {};
}

Result<TensorTask> ForwardSession::stored_task(uint32_t slot, List<TensorTask> tasks) const {
  const Loaded& loaded = loaded_[slot];
  const TensorTask& first = tasks.front();
  const Assembly* const made = first.quantized ? &*first.quantized->task.assembly : nullptr;
  const bool is_as_loaded = made == nullptr || !made->any() || *made == *loaded.assembly;
  if (tasks.size() == 1 && is_as_loaded) {
    TensorTask task = std::move(tasks.front());
    TRY_VOID(restore_changes(slot, task));
    return task;
  }
  if (!loaded.is_plain) return FileTensors::refused(first.name);
  return FileTensors::task_of(std::move(tasks), {loaded.at, loaded.dtype, loaded.rows, loaded.columns});
}

// Tiles of streamed tensors are stored by themselves: all but the last have as many rows.
Status ForwardSession::replace_loaded(uint64_t tile) {
  for (const Replaced& replaced : replaced_tasks_) {
    if (replaced.step != step_ || replaced.slot != slot_ || !(is_streamed_ || is_whole_)) continue;
    TensorTask task = replaced.task;
    TRY_VOID(restore_changes(slot_, task));
    if (!is_streamed_) {
      std::vector<float>& values = *target_of(slot_);
      TRY(stored, store_modified(task, values, nullptr, values));
      values = std::move(stored.values);
      rows_ = values;
      continue;
    }
    const uint64_t rows = tile == 0 ? rows_.size() / pass_.architecture().hidden : first_row_ / tile;
    TRY(stored, store_modified_rows(task, rows, first_row_, rows_));
    replace_rows(std::move(stored.values));
  }
  return {};
}

Status ForwardSession::load(uint64_t tile) {
  const std::span<const float> values = decoder_->decode(tile);
  const TensorTask& task = decoder_->task();
  const TileRange range = tile_range(task, tile);
  const size_t rows = task.layout->rows, columns = task.layout->columns;
  first_row_ = 0;
  if (is_streamed_) {
    rows_ = values;
    // A tile line may cover several rows.
    first_row_ = static_cast<uint32_t>(range.begin * columns / row_columns());
    return replace_loaded(tile);
  }
  std::vector<float>& target = *target_of(slot_);
  if (!task.layout->column_tiles()) {
    const uint64_t line = task.by_columns ? rows : columns;
    std::copy(values.begin(), values.end(), target.begin() + static_cast<ptrdiff_t>(range.begin * line));
  } else {
    for (size_t row = 0; row < rows; ++row)
      std::copy_n(values.data() + row * range.count(), range.count(), target.data() + row * columns + range.begin);
  }
  rows_ = target;
  is_whole_ = range.begin + range.count() == (task.has_column_tiles() ? columns : rows);
  if (is_whole_ && is_turned(slot_)) {
    const model::Architecture& a = pass_.architecture();
    const size_t inputs = slot_ < kExpertSlots                     ? rows
                          : block_slot(slot_) == model::Slot::gate ? a.hidden
                                                                   : a.routing.width;
    transpose(target, inputs);
  }
  return replace_loaded(tile);
}

Status ForwardSession::run(uint32_t portion, bool keep) {
  if (portion >= pass_.portions()) return error_at(ErrorCode::argument_invalid, "portion", "does not exist");
  if (slot_ == kEmbeddingSlot) {
    pass_.run_embedding(portion, rows_, first_row_);
  } else if (slot_ == kLayerTableSlot) {
    pass_.run_layer_table(portion, rows_, first_row_);
  } else if (slot_ == kHeadSlot) {
    pass_.run_head(portion, rows_, first_row_);
  } else if (step_ >= 1 && step_ <= pass_.architecture().layers) {
    const uint32_t layer = step_ - 1;
    // Both run once they are whole.
    if (!is_whole_ && (is_expert() || slot_ == static_cast<uint32_t>(model::Slot::router))) return {};
    if (is_expert() && block_slot(slot_) != model::Slot::down) return {};
    if (is_expert()) return pass_.run_expert(portion, layer, expert_of(slot_), sink_, keep);
    for (const model::BlockWeight& weight : model::block_weights(pass_.architecture(), layer))
      if (pass_.block()[weight.slot].size() != count_of(weight))
        return error_at(ErrorCode::state_invalid, weight.name, "was not loaded");
    const model::OuterTables& tables = pass_.tables();
    const model::ModelNames& names = pass_.architecture().names;
    if ((pass_.architecture().decoder.first > 0 && tables.encoder_norm.empty()) ||
        (names.has(model::ModelPart::positions) && tables.positions.empty()) ||
        (names.has(model::ModelPart::layer_gate) && tables.layer_norm.empty()) ||
        (names.has(model::ModelPart::stream_in) && tables.stream_in[pass_.architecture().streams.count - 2].empty()) ||
        (names.has_bias(model::ModelPart::embedding_norm) && tables.norm_bias.empty()))
      return error_at(ErrorCode::state_invalid, "embeddings", "were not loaded");
    if (reference_ != nullptr && model::has_values(*reference_))
      TRY_VOID(
          pass_.run_reference(portion, step_ - 1, *reference_, sink_ != nullptr ? reference_sink_ : nullptr, keep));
    return pass_.run_block(portion, step_ - 1, sink_, keep);
  }
  return {};
}

void ForwardSession::keep() {
  if (slot_ == kEmbeddingSlot) return pass_.keep_embedding(rows_, first_row_);
  if (slot_ == kHeadSlot) return pass_.keep_head(rows_, first_row_);
  if (step_ >= 1 && step_ <= pass_.architecture().layers) pass_.keep_block(step_ - 1);
}

Status ForwardSession::run_kept(uint32_t step) {
  const uint32_t layers = pass_.architecture().layers;
  if (step > layers + 1) return error_at(ErrorCode::argument_invalid, "step", "does not exist");
  if (step == 0) {
    pass_.run_kept_embedding();
  } else if (step <= layers) {
    return pass_.run_kept_block(step - 1);
  } else {
    TRY_VOID(pass_.begin_head(nullptr));
    pass_.run_kept_head();
  }
  return {};
}

bool ForwardSession::needs(uint64_t tile) const noexcept {
  if (slot_ >= kExpertSlots) return pass_.has_expert(expert_of(slot_));
  if ((slot_ != kEmbeddingSlot && slot_ != kLayerTableSlot) || !is_streamed_) return true;
  const TensorTask& task = decoder_->task();
  const TileRange range = tile_range(task, tile);
  const size_t columns = task.layout->columns, wide = row_columns();
  const size_t first = range.begin * columns / wide, end = ((range.begin + range.count()) * columns + wide - 1) / wide;
  return slot_ == kLayerTableSlot ? pass_.has_layer_row(first, end) : pass_.has_token(first, end);
}

}  // namespace wasmquant
