// BoundEmbeddingRotation: embedding, final norm and head, turned as they are loaded.
#include "bindings/bound_calibration.h"

namespace wasmquant::testing {
namespace {

TEST_CASE("BoundEmbeddingRotation: stores turned rows, which the pass continues with") {
  CalibratedPass bound(rotated_config(R"("r1": true)"), "files/forward/mistral");
  const ForwardTensor& embedding = bound.plan.steps[0].tensors[0];
  const uint32_t task = bound.task_of(embedding.task.name);
  const auto rotation = taken(BoundEmbeddingRotation::make(*bound.calibration, embedding.slot, *bound.work, task));
  CHECK(refusal(rotation->store()) == "state-invalid calibration: no rows were loaded");
  const auto state = bound.calibration->state();
  uint64_t bytes = 0;
  bound.load(0, [&](const ForwardTensor&) {
    const auto rows = state->session->rows();
    const std::vector<float> before(rows.begin(), rows.end());
    for (const TileWrite& write : taken(rotation->store()).writes) bytes += write.bytes;
    const auto turned = state->session->rows();
    double energy = 0, energy_before = 0;
    for (size_t i = 0; i < before.size(); ++i) {
      energy += double{turned[i]} * turned[i];
      energy_before += double{before[i]} * before[i];
    }
    CHECK(std::vector<float>(turned.begin(), turned.end()) != before);
    CHECK(energy == doctest::Approx(energy_before).epsilon(1e-2));
  });
  CHECK(bytes == uint64_t{bound.plan.architecture.vocabulary} * bound.plan.architecture.hidden *
                     info_of(taken(bound.work->task(task)).layout->components[0].dtype).bits / 8);
}

TEST_CASE("BoundEmbeddingRotation: refuses configs without a rotation, tasks and tensors") {
  const CalibratedPass plain(calibrated_config(R"({"name": "gptq"})"));
  CHECK(refusal(BoundEmbeddingRotation::make(*plain.calibration, kEmbeddingSlot, *plain.work, 0)) ==
        "state-invalid calibration: the config has no rotation");
  const CalibratedPass bound(rotated_config(R"("r1": true)"), "files/forward/mistral");
  CHECK(refusal(BoundEmbeddingRotation::make(*bound.calibration, kEmbeddingSlot, *bound.work, 999))
            .find("argument-invalid task 999: does not exist") == 0);
  CHECK(refusal(BoundEmbeddingRotation::make(*bound.calibration, 0, *bound.work, 0)) ==
        "argument-invalid " + taken(bound.work->task(0)).name + ": is neither embedding, final norm nor head");
}

}  // namespace
}  // namespace wasmquant::testing
