// One worker's share of an evaluation: runs a batch of sequences through the steps of a ForwardPlan. The caller
// supplies stored bytes tile by tile; the session decodes them.
//   for each step, for each tensor of it:  begin(step, slot, task);  for each tile:  reads, fill, load
//     streamed tensors: after each load, run(portion) for every portion
//   then, for steps without streamed tensors: run(portion) for every portion
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/result.h"
#include "model/forward_pass.h"
#include "model/pass_slots.h"
#include "pipeline/task/decoder.h"

namespace wasmquant {

/// Holds a batch's activations and one step's weights, both in float32.
class ForwardSession {
 public:
  ForwardSession(model::Architecture architecture, model::InputPrecision precision)
      : pass_(std::move(architecture), precision) {}

  /// From now on the inputs of each layer have the precision of llama.cpp's kernels for the type in which its weight is
  /// stored.
  void multiply_as_llama_cpp() noexcept { is_as_llama_cpp_ = true; }

  model::ForwardPass& pass() noexcept { return pass_; }
  /// Receives the inputs of linear layers; may be null; must outlive the session.
  void set_sink(model::InputSink* sink) noexcept { sink_ = sink; }

  /// The unquantized block and a sink for its linear-layer inputs; null or empty: not run. Both must outlive *this.
  void set_reference(const model::BlockValues* block, model::InputSink* sink) noexcept {
    reference_ = block;
    reference_sink_ = sink;
  }

  /// Starts the next tensor. Errors: argument-invalid for a task that does not belong there.
  Status begin(uint32_t step, uint32_t slot, TensorTask task);
  List<TileRead> reads(uint64_t tile) { return decoder_->reads(tile); }
  /// Errors: those of store_modified() for a weight that is replaced.
  Status load(uint64_t tile);
  /// From now on the pass runs with what `task` would store of the tensor in its place.
  void replace(uint32_t step, uint32_t slot, TensorTask task) {
    replaced_tasks_.push_back({step, slot, std::move(task)});
  }
  /// Gives the plan's task of a loaded tensor the changes that its file has and the pass reverted, and its orientation here. Errors: those of
  /// turned_task().
  Status restore_changes(uint32_t slot, TensorTask& task) const;
  /// The same for the plan's tasks of a block's weight, which a conversion may give another order or factors. Errors: those of
  /// FileTensors::task_of().
  Result<TensorTask> stored_task(uint32_t slot, List<TensorTask> tasks) const;
  /// `keep` false: activations stay unchanged, for passes that only feed the sink. Errors: those of the sink,
  /// state-invalid if a tensor of the block was not loaded.
  Status run(uint32_t portion, bool keep = true);

  /// What the tensors loaded last are of: a block, or one expert of it, and their values.
  model::Architecture part() const;
  model::BlockValues& values() noexcept { return is_expert() ? pass_.expert() : pass_.block(); }
  bool is_expert() const noexcept { return slot_ >= kExpertSlots; }

  void replace_rows(std::vector<float> values) noexcept {
    replaced_ = std::move(values);
    rows_ = replaced_;
  }
  /// Of a sequence that is continued: keeps what was run last, so that its step runs again without being loaded.
  void keep();
  /// Errors: argument-invalid for a step that does not exist.
  Status run_kept(uint32_t step);
  /// Whether a token of the batch is in the rows of a tile of embeddings, or goes to the expert of a tile; others need not be read.
  bool needs(uint64_t tile) const noexcept;

  /// Rows of the embedding or head loaded last, and the number of the first.
  std::span<const float> rows() const noexcept { return rows_; }
  uint32_t first_row() const noexcept { return first_row_; }

 private:
  /// How a weight of a block was read.
  struct Loaded {
    ValueTransform change;
    SharedValue<Assembly> assembly;
    Location at;
    StorageDtype dtype = StorageDtype::F32;
    uint64_t rows = 0, columns = 0;
    bool is_plain = false;  // values in the order of the pass
  };
  struct Replaced {
    uint32_t step, slot;
    TensorTask task;
  };
  Status replace_loaded(uint64_t tile);
  /// Whether a tensor is stored as [in, out].
  bool is_turned(uint32_t slot) const noexcept;
  std::vector<float>* target_of(uint32_t slot) noexcept;
  /// Of a streamed table.
  size_t row_columns() const noexcept;
  uint64_t expected_count(uint32_t step, uint32_t slot) const noexcept;

  model::ForwardPass pass_;
  model::InputSink* sink_ = nullptr;
  const model::BlockValues* reference_ = nullptr;
  model::InputSink* reference_sink_ = nullptr;
  std::optional<TensorDecoder> decoder_;
  std::array<Loaded, model::kSlots> loaded_{};
  uint32_t step_ = 0, slot_ = 0;
  bool is_streamed_ = false, is_as_llama_cpp_ = false, is_whole_ = false;
  std::vector<float> matrix_;  // a streamed slot stored in column tiles
  std::vector<float> replaced_;
  List<Replaced> replaced_tasks_;
  std::span<const float> rows_;  // of the embedding or head, ready to run
  uint32_t first_row_ = 0;
};

}  // namespace wasmquant
