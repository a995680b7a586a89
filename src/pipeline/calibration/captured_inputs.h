// The inputs that the current part of a calibration needs of one portion, on their way between instances that share its
// sums: recorded where the portion is run, shown to BlockCalibration in all of them.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/json.h"
#include "core/list.h"
#include "core/result.h"
#include "model/linear_input.h"
#include "pipeline/calibration/block_calibration.h"

namespace wasmquant {

/// A sink that keeps what the calibration would be shown.
class CapturedInputs final : public model::InputSink {
 public:
  explicit CapturedInputs(BlockCalibration& calibration) noexcept : calibration_(calibration) {}

  Status accept(uint32_t layer, model::LinearInput input, std::span<const float> x, size_t columns) override;
  bool ends_at(model::LinearInput input) const noexcept override { return calibration_.ends_at(input); }
  bool skips(model::LinearInput input) const noexcept override { return calibration_.skips(input); }

  /// Forgets the portion before: an expert may see none of the next.
  void clear() noexcept;
  /// Makes room for a portion that was run elsewhere; `bytes`: of matrices() there.
  void expect(const json::Array& bytes);
  /// The inputs that the part needs, in their order.
  List<std::span<float>> matrices() noexcept;
  /// Passes them on. Errors: those of the calibration.
  Status show();

 private:
  size_t columns_of(model::LinearInput input) const noexcept;

  BlockCalibration& calibration_;
  std::array<std::vector<float>, model::kBlockInputs> inputs_;
};

}  // namespace wasmquant
