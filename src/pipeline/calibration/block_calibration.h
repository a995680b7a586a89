// Calibration of one transformer block, or of one expert of it as a block of its own, whose weights are loaded and whose input is computed. Algorithms change the
// weights; each tensor is then quantized, stored and replaced by what readers will decode, so the next block sees the
// quantized one. Where all algorithms that look at inputs are preprocessing, it sees the unquantized one.
//   begin, then for each part:  prepare;  capture on the portions that captures(part) needs;  optimize until it is done
//   then store for each tensor
// Members of a team see the same inputs. Each makes a part of the sums over them, factors, rows and candidates; between
// the stages of a part they exchange what they have made, so that all continue with the same values.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/expected_error.h"
#include "algorithms/input_statistics.h"
#include "algorithms/rounding/gpfq.h"
#include "algorithms/scaling/scale_search.h"
#include "core/list.h"
#include "core/result.h"
#include "model/block_weights.h"
#include "model/linear_input.h"
#include "pipeline/calibration/calibration_steps.h"
#include "pipeline/calibration/layer_evidence.h"
#include "pipeline/session/store_modified_weight.h"
#include "pipeline/task/task.h"

namespace wasmquant {

/// Portions that show a part its inputs. `sample`: at least kSampledTokens tokens in portions all over the batch, for
/// searches of few parameters whose inputs are captured again by the rounding after them.
enum class Capture : uint8_t { nothing, sample, all };
inline constexpr uint64_t kSampledTokens = 1024;

/// Applies the steps to one block after another. Loaded blocks and the steps belong to the caller.
class BlockCalibration final : public model::InputSink {
 public:
  /// `steps` must outlive this object.
  explicit BlockCalibration(std::span<CalibrationStep> steps) noexcept;
  ~BlockCalibration();

  /// From the next part on: divides the work with others that are shown the same inputs. Not with a reference.
  void share_work(TeamShare share) noexcept { share_ = share; }

  /// Starts the next block. `architecture`: block_of() or expert_of(). `tasks`: the plan's, by slot; slots it lacks have none.
  /// Errors: argument-invalid if a task belongs to another tensor.
  Status begin(model::Architecture architecture, model::BlockValues& block,
               List<std::pair<model::Slot, TensorTask>> tasks);

  size_t parts() const noexcept { return parts_.size(); }
  /// Tokens of a sample: as many go to an expert.
  uint64_t sampled_tokens() const noexcept;
  /// What the part must first see of the inputs computed with the current weights.
  Capture captures(size_t part) const noexcept { return parts_[part].capture; }
  void prepare(size_t part);
  /// Whether a method compares with the unquantized model; the session then runs the reference too.
  bool needs_reference() const noexcept;
  /// The unquantized block, scaled and rotated like the other; empty until the two differ.
  const model::BlockValues& reference() const noexcept { return reference_; }
  model::InputSink& reference_sink() noexcept { return reference_sink_; }
  /// The sums that a member has of the inputs that the current part has seen: complete its own, and those of others are to
  /// be put there before optimize().
  List<std::span<float>> shared_sums(size_t member) noexcept;
  const model::Architecture& architecture() const noexcept { return architecture_; }
  /// Whether the current part needs an input.
  bool captures(model::LinearInput input) const noexcept {
    return (captured_ >> static_cast<uint32_t>(input) & 1) != 0;
  }
  /// Whether the part is done; false: what results() has of the other members is to be put there, then this is to be called
  /// again. Errors, `where` a tensor: those of the algorithms.
  Result<bool> optimize(size_t part);
  /// What a member has made of the part since the last call of optimize().
  List<std::span<uint8_t>> results(size_t member) noexcept;

  /// Stores the tensor; call once. Errors: those of store_modified.
  Result<StoredValues> store(model::Slot slot);
  /// Of a layer that an algorithm changed by its inputs' products; none for others.
  const std::optional<LayerEvidence>& evidence(model::Slot slot) const noexcept {
    return tensors_[static_cast<size_t>(slot)].evidence;
  }

  Status accept(uint32_t layer, model::LinearInput input, std::span<const float> x, size_t columns) override;
  bool ends_at(model::LinearInput input) const noexcept override;
  bool skips(model::LinearInput input) const noexcept override;
  /// Whether weights have changed since the last call that a run uses before the place where a capture ended it.
  bool take_changes() noexcept { return std::exchange(has_changed_, false); }

  /// Working memory for one block in bytes, without weights and activations; twice as much with a reference. A mixture needs no more
  /// than its largest part: its experts come one after another, each with Hessians of its own input and output.
  static uint64_t working_bytes(const model::Architecture& architecture) noexcept;
  /// What a step that chooses by inputs held out needs in addition: their Hessians.
  static uint64_t held_out_bytes(const model::Architecture& architecture) noexcept;

 private:
  enum class Work : uint8_t { rotate, equalize, scale, clip, keep_reference, round, correct_biases };
  struct Part {
    Work work;
    const CalibrationStep* step;
    model::LinearInput input;
    uint32_t captured;  // one bit per LinearInput
    Capture capture;
  };
  struct Tensor {
    std::optional<TensorTask> task;
    std::vector<float> original;  // reference for the error, if the weight has changed
    std::vector<float> clipped;   // clipped by AWQ; scales are computed from it
    ValueRange joined;            // of all weights that share a scale with it, once the first of them is stored
    std::optional<StoredValues> stored;
    std::optional<LayerEvidence> evidence;
  };
  struct Judgement;     // judgement.h
  struct RoundedLayer;  // rounding_work.h
  struct Rounding;
  struct Scaling;  // scaling_work.h
  struct Clipping;
  class ReferenceSink final : public model::InputSink {
   public:
    explicit ReferenceSink(BlockCalibration& calibration) noexcept : calibration_(calibration) {}
    Status accept(uint32_t, model::LinearInput input, std::span<const float> x, size_t columns) override;
    bool ends_at(model::LinearInput input) const noexcept override { return calibration_.ends_at(input); }

   private:
    BlockCalibration& calibration_;
  };

  static Error at(const std::string& where, Error error);
  void add_parts(const CalibrationStep& step);
  /// Whether every layer's inputs are captured again after the step, by one that rounds it.
  bool is_seen_again(const CalibrationStep& step) const noexcept;
  bool is_rounded(const CalibrationStep& step, model::Slot slot) const noexcept;
  bool corrects_biases() const noexcept;
  /// Whether the part's inputs were captured, and the router sent it none.
  bool saw_nothing(const Part& part) noexcept;
  /// Whether inputs are those of the unquantized model: only preprocessing looks at them.
  bool keeps_float_inputs() const noexcept;
  SeenInput& seen(model::LinearInput input) noexcept { return seen_[static_cast<size_t>(input)]; }
  std::vector<float>& applied_scales(model::LinearInput input) noexcept {
    return applied_scales_[static_cast<size_t>(input)];
  }
  Tensor& tensor(model::Slot slot) noexcept { return tensors_[static_cast<size_t>(slot)]; }
  const std::string& name(model::Slot slot) noexcept { return tensor(slot).task->name; }
  bool is_quantized(model::Slot slot) const noexcept;
  /// The values from which a weight's scales are computed.
  const std::vector<float>& ranged(model::Slot slot) noexcept {
    return tensor(slot).clipped.empty() ? (*block_)[slot] : tensor(slot).clipped;
  }
  /// The range of all weights that share a scale with this one, as they were before the first of them was rounded; empty
  /// if it shares none.
  const ValueRange& joined_range(model::Slot slot) noexcept;
  Status finish_capture(uint32_t captured);
  /// Puts what files will hold in the place of norms and biases, which no later step changes.
  Status settle_copies();
  size_t rows_of(model::Slot slot) noexcept { return static_cast<size_t>(tensor(slot).task->layout->rows); }

  // Work of a part. Whether it is done; else results() are to be exchanged.
  Result<bool> advance(const Part& part);
  // channel_scaling.cpp
  struct ProducerRows {
    std::span<float> weight, bias;
  };
  ProducerRows producer_rows(model::LinearInput input) noexcept;
  Status equalize_pairs(const Part& part);
  bool can_scale(const Part& part) const noexcept;
  bool sees(AlgorithmSees what) const noexcept;
  const CalibrationStep* rounding_step() const noexcept;
  bool holds_out() const noexcept;
  Result<bool> scale(const Part& part);
  Status found_scales(const Part& part, std::vector<float>& scales);
  Result<bool> clip(const Part& part);
  bool is_clipped(model::Slot slot) noexcept;
  /// Undoes clipping where the step asks for that and it is worse; notes layers that no later step rounds.
  void settle_clipped();
  // layer_evidence.cpp
  /// Some rows of the weight as they would be stored, rounded to nearest.
  Result<std::vector<float>> nearest_values(model::Slot slot, std::span<const float> weight, TeamShare::Range rows);
  /// Rounding to nearest of weight * scales (empty: ones): what it changes of some rows, divided by the scales.
  Result<std::vector<float>> nearest_change(model::Slot slot, std::span<const float> weight,
                                            std::span<const float> scales, TeamShare::Range rows);
  /// Whether scaling makes rounding to nearest no worse, over the layers that read the input.
  Result<bool> scales_help(const Part& part, std::span<const float> scales);
  bool is_rounded_later(model::Slot slot) const noexcept;
  /// Judges what `values`, the member's rows of what is stored for `weight`, change; `pull`: see Judgement. `with_nearest`:
  /// also what rounding to nearest would.
  Status judge(Judgement& judgement, const ExpectedError& expected, std::span<const float> pull,
               std::span<const float> weight, std::span<const float> values, bool with_nearest);
  /// Notes a judgement whose rows are complete.
  void note(const Judgement& judgement, const ExpectedError& expected, bool is_nearest);
  // gptq_rounding.cpp
  Result<bool> round(const Part& part);
  void begin_rounding(const Part& part);
  /// The trials of all variants, or what was chosen of them.
  void add_passes(const Part& part);
  Status find_factors(const Part& part);
  /// Rounds the member's rows of copies of the layers.
  Status round_columns(const Part& part);
  Status round_layer(const CalibrationStep& step, RoundedLayer& layer);
  /// `values` of the weight; in trials some of its rows, from all over it, where rows do not depend on others.
  std::vector<float> rounded_rows(model::Slot slot, const std::vector<float>& values);
  /// For layers that are stored in GGUF's block types.
  Status round_blocks(const CalibrationStep& step, RoundedLayer& layer);
  /// The same of a weight that the file has in its own way (file_tensors.h).
  Status round_file_blocks(const CalibrationStep& step, RoundedLayer& layer);
  /// Rounds rows in the columns' order of the file.
  Status round_rows(const CalibrationStep& step, GgmlType type, std::span<float> values, std::span<uint8_t> blocks);
  /// Refines the member's rows (refinement.h).
  void refine(const CalibrationStep& step, TeamShare::Range own, RoundedLayer& layer);
  /// The group of each column where the file says it; else empty.
  std::vector<uint32_t> group_index_of(const CalibrationStep& step, model::Slot slot);
  Status judge_rounded(const Part& part);
  Status judge_trial(RoundedLayer& layer);
  /// Notes how well a trial did, or puts the stored values in the place of the weights.
  Status settle_rounded(const Part& part);
  /// bias += (W - Q) mean(x) of the float network, for a bias whose layer is stored.
  void correct_bias(model::Slot slot) noexcept;
  Status share_scales(std::span<float> scales, std::span<float> of_heads) const;
  /// Divides the producer's output, multiplies the consumers' input.
  Status apply_scales(model::LinearInput input, std::vector<float>& scales);

  model::Architecture architecture_;
  std::span<CalibrationStep> steps_;
  List<Part> parts_;
  const Part* part_ = nullptr;  // current part
  TeamShare share_;
  std::unique_ptr<Rounding> rounding_;  // of the current part, between its stages
  std::unique_ptr<Scaling> scaling_;
  std::unique_ptr<Clipping> clipping_;
  bool has_begun_ = false;  // the current part
  uint32_t inputs_ = 0;     // of the block, one bit per LinearInput
  uint32_t captured_ = 0;
  model::LinearInput captured_until_ = model::LinearInput::attention;  // the last input of the latest capture
  bool has_changed_ = false;
  uint32_t seen_inputs_ = 0, reference_parts_ = 0;  // over the parts so far
  std::array<std::unique_ptr<InputStatistics>, model::kBlockInputs> statistics_;
  std::array<SeenInput, model::kBlockInputs> seen_;
  std::array<std::vector<float>, model::kBlockInputs> applied_scales_;  // products over the steps; empty: ones
  std::array<Tensor, model::kSlots> tensors_;
  model::BlockValues* block_ = nullptr;
  model::BlockValues reference_;
  ReferenceSink reference_sink_{*this};
  std::array<std::vector<float>, model::kBlockInputs> reference_inputs_;  // of the current portion
  std::array<std::unique_ptr<GpfqInputs>, model::kBlockInputs> pairs_;
  std::array<std::vector<double>, model::kBlockInputs> means_;  // of the reference's inputs, times tokens_
  std::array<uint64_t, model::kBlockInputs> tokens_{};          // counted in means_
};

}  // namespace wasmquant
