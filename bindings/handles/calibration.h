// Calibration of a model block by block, and rotation of embedding and head. Contracts: BoundCalibration,
// BoundBlockCalibrator and BoundEmbeddingRotation of web/lib/engine/forward_module.ts.
#pragma once
#include <optional>

#include "handles/forward_pass.h"
#include "pipeline/calibration/block_calibration.h"
#include "pipeline/calibration/captured_inputs.h"
#include "pipeline/calibration/expert_task.h"
#include "pipeline/calibration/model_rotation.h"
#include "pipeline/session/file_tensors.h"

namespace wasmquant::bindings {

/// State shared by the stages, each of which keeps it alive.
struct CalibrationState {
  CalibrationState(std::shared_ptr<ForwardSession> pass, List<CalibrationStep> asked);
  CalibrationState(const CalibrationState&) = delete;
  CalibrationState& operator=(const CalibrationState&) = delete;
  ~CalibrationState() { session->set_reference(nullptr, nullptr); }

  std::shared_ptr<ForwardSession> session;
  List<CalibrationStep> steps;
  BlockCalibration blocks;
  std::optional<EmbeddingRotation> tables;
  CapturedInputs recorded{blocks}, received{blocks};
};

class BoundCalibration : Counted {
 public:
  /// Errors: those of parse_text and calibration_steps.
  static Made<BoundCalibration> make(const BoundForwardPass& pass, const std::string& config, uint32_t member,
                                     uint32_t members);
  const std::shared_ptr<CalibrationState>& state() const noexcept { return state_; }

 private:
  explicit BoundCalibration(std::shared_ptr<CalibrationState> state) : state_(std::move(state)) {}

  std::shared_ptr<CalibrationState> state_;
};

class BoundBlockCalibrator : Counted {
 public:
  /// `tasks`: JSON [{"slot", "task", "up"?}]; `up`: that of the up whose rows alternate with those of a gate. Errors: json-invalid, argument-invalid, those of BoundWork::task and
  /// BlockCalibration::begin.
  static Made<BoundBlockCalibrator> make(const BoundCalibration& calibration, const BoundWork& work,
                                         const std::string& tasks);

  json::Value parts() const;
  /// Errors of these: argument-invalid for a part that is not the next.
  Result<List<Region>> record(uint32_t part, uint32_t portion);
  Result<List<Region>> expect(uint32_t part, const std::string& bytes);
  Result<bool> optimize(uint32_t part);
  /// Errors: those of CapturedInputs::show.
  Status show(bool is_own) { return (is_own ? state_->recorded : state_->received).show(); }
  List<Region> sums(uint32_t member);
  List<Region> results(uint32_t member);
  /// Errors: state-invalid if parts are left, those of BlockCalibration::store.
  Result<TileResult> store(uint32_t slot);
  json::Value evidence(uint32_t slot) const;

 private:
  explicit BoundBlockCalibrator(std::shared_ptr<CalibrationState> state) : state_(std::move(state)) {}

  BlockCalibration& blocks() const noexcept { return state_->blocks; }
  void forget_changed() const noexcept;
  /// Of a tensor of the block, or of the expert, that was loaded last.
  std::optional<model::Slot> place_of(uint32_t slot) const noexcept;
  Status enter(uint32_t part);

  std::shared_ptr<CalibrationState> state_;
  uint32_t prepared_ = 0, done_ = 0;  // parts
  StoredValues stored_;
};

class BoundEmbeddingRotation : Counted {
 public:
  /// Errors: state-invalid if the config has no rotation, those of BoundWork::task and EmbeddingRotation::begin.
  static Made<BoundEmbeddingRotation> make(const BoundCalibration& calibration, uint32_t slot, const BoundWork& work,
                                           uint32_t task);
  /// Errors: those of EmbeddingRotation::store.
  Result<TileResult> store();

 private:
  explicit BoundEmbeddingRotation(std::shared_ptr<CalibrationState> state) : state_(std::move(state)) {}

  std::shared_ptr<CalibrationState> state_;
  StoredValues stored_;
};

}  // namespace wasmquant::bindings
