// What BlockCalibration keeps of a part that rounds, between the stages that members of a team divide: factors of the
// inputs' Hessian, the columns of their inverse, then rows, then judging. With choose: "best" these are done for every variant on inputs without those
// held out, and judged by these; then for the variants that were chosen, on all inputs.
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "algorithms/rounding/error_feedback.h"
#include "algorithms/rounding/gpfq.h"
#include "pipeline/calibration/judgement.h"

namespace wasmquant {

struct BlockCalibration::RoundedLayer {
  model::Slot slot;
  Judgement judged;
  std::vector<float> weight;     // rounded
  std::vector<float> corrected;  // what a step that also corrects for drift rounded, where it is refined
  std::vector<uint32_t> codes;   // their bytes, or those of blocks
  size_t row_bytes = 0;          // in codes
  WeightScales scales;
  std::optional<StoredValues> stored;
  bool is_shared = false;  // members round rows of it

  void set_codes(size_t bytes_of_row) {
    row_bytes = bytes_of_row;
    codes.resize(judged.rows * row_bytes / sizeof(uint32_t) + 1);
  }
  uint8_t* code_bytes() noexcept { return reinterpret_cast<uint8_t*>(codes.data()); }
};

struct BlockCalibration::Rounding {
  /// Layers rounded by the same factor.
  struct Pass {
    size_t variant;
    ColumnOrder order;
    uint32_t layers;  // one bit per linear slot
    std::vector<uint32_t>
        columns;  // of the layers in the file, where it has them in another order; `order` is of these
  };
  enum class Stage : uint8_t { factors, inverses, columns, judging, settling };

  List<GptqOptions> variants;
  List<Pass> passes;
  size_t pass = 0;
  bool is_trial = false;
  Stage stage = Stage::factors;
  std::unique_ptr<GpfqInputs> pair;
  std::vector<float> drift, squares, damped;  // damped: the Hessian of a step that refines
  ErrorFeedback feedback;
  std::optional<ExpectedError> expected;  // by the inputs held out in trials, else by all
  bool has_new_judge = false;             // whose factor is found in this pass
  List<RoundedLayer> layers;
  std::array<double, model::kSlots> least{};
  std::array<size_t, model::kSlots> chosen{};  // variants

  const GptqOptions& options() const noexcept { return variants[passes[pass].variant]; }
  void add_results(TeamShare share, size_t columns, List<std::span<uint8_t>>& out);
};

}  // namespace wasmquant
