// Merging: however batches are cut and whoever sees the pieces, the result is the same to the bit.
#include "observers/sharing.h"

#include <doctest/doctest.h>

using namespace wasmquant;
using namespace observer_tests;

namespace {

std::vector<Batch> batches_of(std::mt19937& random, bool same_shapes) {
  std::normal_distribution<float> normal;
  std::vector<Batch> batches;
  for (size_t b = 0; b < 3; ++b) {
    const uint64_t rows = 20 + random() % 30;
    Batch batch{{}, {rows, 6}};
    const float offset = normal(random), width = 0.25f + static_cast<float>(random() % 4);
    for (uint64_t i = 0; i < rows * 6; ++i)
      batch.x.push_back(random() % 8 == 0 ? 0.0f : offset + width * normal(random) * normal(random));
    if (same_shapes) batch.shape = {3, 5, 4}, batch.x.resize(60);
    batches.push_back(std::move(batch));
  }
  return batches;
}

}  // namespace

TEST_CASE("any split among any number of observers gives the whole result") {
  std::mt19937 random(5);
  for (QuantizationSpec spec : specs_of_all_observers()) {
    CAPTURE(info_of(spec.observer).name);
    CAPTURE(info_of(spec.dtype).name);
    CAPTURE(spec.symmetric);
    for (int round = 0; round < 6; ++round) {
      spec.is_dynamic = round % 2 == 1;
      CAPTURE(spec.is_dynamic);
      if (spec.qscheme == QScheme::per_channel) spec.ch_axis = round >= 4 ? round % 2 : -1;
      // Ranges of blocks are kept while the shape stays: with other shapes the order of batches would count.
      const bool is_block = spec.qscheme == QScheme::per_block;
      const bool keeps_blocks = is_block || info_of(spec.observer).method == ObserverMethod::block_max;
      std::vector<Batch> batches = batches_of(random, round >= 4 || keeps_blocks);
      for (Batch& batch : batches)
        if (is_block) batch.shape = {15, 4};
      const Observation whole = alone(spec, batches);
      REQUIRE_FALSE(whole.qparams.empty());
      for (const size_t workers : {size_t{1}, size_t{2}, size_t{3}})
        CHECK(same(shared(spec, batches, workers, random), whole));
    }
  }
}
