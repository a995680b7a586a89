// BoundTensorSession: a tensor observed, quantized and packed tile by tile, in one session or in two.
#include "handles/tensor_session.h"

#include <cmath>

#include "bindings/bound_model.h"

namespace wasmquant::testing {
namespace {

const std::string kPerTensor = R"({"global_quant_config": {"weight": {"dtype": "int8", "qscheme": "per_tensor"}}})";
const std::string kTiled = R"({"format": "compressed-tensors", "tileBytes": 512, "columnTileBytes": 512})";

/// The task of a tensor.
uint32_t number_of(const BoundWork& work, const std::string& name) {
  for (uint32_t number = 0;; ++number)
    if (taken(work.task(number)).name == name) return number;
}

std::unique_ptr<BoundTensorSession> session_of(const BoundWork& work, const std::string& name) {
  return taken(BoundTensorSession::make(work, number_of(work, name)));
}

std::vector<uint8_t> run_all_tiles(const BoundModel& model, BoundTensorSession& session, uint32_t tiles,
                                   kernels::ErrorSums& total) {
  std::vector<uint8_t> written;
  for (uint32_t tile = 0; tile < tiles; ++tile) {
    model.memory.fill(session.reads(tile));
    const TileResult result = taken(session.run(tile));
    for (const TileWrite& write : result.writes)
      written.insert(written.end(), write.pointer, write.pointer + write.bytes);
    for (const kernels::ErrorSums& unit : result.sums) total.append(unit);
  }
  return written;
}

/// A weight of several units, of which tiles are whole.
BoundModel large_model() {
  std::vector<float> up(4096 * 64);
  for (size_t i = 0; i < up.size(); ++i) up[i] = static_cast<float>((i * 37) % 1013) / 500.0f - 1.0f;
  return BoundModel({{"a.up_proj.weight", StorageDtype::F32, {4096, 64}, up}});
}

TEST_CASE("BoundTensorSession: sessions that observe a half each give the scale of one that observes all") {
  const BoundModel model = large_model();
  const auto work = work_for(model, kPerTensor, kTiled);
  const std::string name = "a.up_proj.weight";
  const auto tiles = static_cast<uint32_t>(taken(work->task(number_of(*work, name))).tiles);
  REQUIRE(tiles > 2);
  const auto whole = session_of(*work, name), first = session_of(*work, name), second = session_of(*work, name);
  CHECK(whole->observe_passes() == 1);
  for (uint32_t tile = 0; tile < tiles; ++tile)
    for (BoundTensorSession* const session : {whole.get(), tile < 2 ? first.get() : second.get()}) {
      model.memory.fill(session->reads(tile));
      const Status observed = session->observe(tile);
      CHECK_MESSAGE(observed, refusal(observed));
    }
  const auto state = taken(first->state());
  CHECK(refusal(second->take_state(address_of(state), static_cast<double>(state.size()))) == "");
  kernels::ErrorSums sums, halves;
  const std::vector<uint8_t> expected = run_all_tiles(model, *whole, tiles, sums);
  CHECK(run_all_tiles(model, *second, tiles, halves) == expected);
  CHECK(expected.size() >= 4096 * 64);
  CHECK(sums.count == 4096 * 64);
  CHECK(sums.noise > 0);
  CHECK(sums.noise < 1e-4 * sums.signal);
  CHECK(halves.noise == sums.noise);
}

TEST_CASE("BoundTensorSession: refuses tasks, states and values") {
  const BoundModel model = small_model();
  const auto work = work_for(model, kPerTensor, kTiled);
  CHECK(refusal(BoundTensorSession::make(*work, 3)) == "argument-invalid task 3: does not exist; there are 3");
  const std::string name = "a.up_proj.weight";
  const float state[3] = {1, 2, 3};
  CHECK(refusal(session_of(*work, name)->take_state(reinterpret_cast<Address>(state), 3)) ==
        "state-invalid a.up_proj.weight: observer state of another tensor");
  CHECK(refusal(session_of(*work, name)->next_pass()) ==
        "state-invalid : the observer has already seen all of its data");

  const auto copied = session_of(*work, "a.norm.weight");
  const std::string one_pass = "state-invalid a.norm.weight: this tensor is quantized in one pass";
  CHECK(copied->observe_passes() == 0);
  CHECK(refusal(copied->observe(0)) == one_pass);
  CHECK(refusal(copied->state()) == one_pass);
  CHECK(refusal(copied->next_pass()) == one_pass);
  CHECK(refusal(copied->take_state(reinterpret_cast<Address>(state), 3)) == one_pass);

  BoundModel broken = small_model();
  const auto& stored = broken.index->index().find(name)->stored;
  const uint16_t nan = 0x7FC0;
  std::memcpy(broken.memory.files[0].data() + stored.begin + 2 * 5, &nan, 2);
  const auto session = session_of(*work, name);
  broken.memory.fill(session->reads(0));
  CHECK(refusal(session->observe(0)) ==
        "value-not-finite a.up_proj.weight: NaN at element 5 (row 0, column 5); weights must be finite. Fix the "
        "checkpoint, exclude the "
        "layer, "
        "or set \"non_finite\": \"saturate\"");
}

}  // namespace
}  // namespace wasmquant::testing
