// What BlockCalibration keeps of a part that scales or clips, between the stages that members of a team divide.
#pragma once
#include <optional>

#include "algorithms/scaling/awq_rounds.h"
#include "pipeline/calibration/judgement.h"

namespace wasmquant {

struct BlockCalibration::Scaling {
  List<AwqLayer> layers;  // which the search reads
  AwqSearch search;
};

/// First weights are clipped, then what is stored of them is judged, where no later step rounds it.
struct BlockCalibration::Clipping {
  List<model::Slot> clipped;
  std::optional<ExpectedError> expected;
  List<Judgement> judged;
};

}  // namespace wasmquant
