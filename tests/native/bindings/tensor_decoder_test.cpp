// BoundTensorDecoder: a stored weight as float32, tile by tile.
#include "bindings/bound_model.h"
#include "handles/comparison.h"
#include "handles/tensor_session.h"

namespace wasmquant::testing {
namespace {

TEST_CASE("BoundTensorDecoder: gives the values of a plain weight, in tiles of any size") {
  const BoundModel model = small_model();
  for (const char* const options : {"{}", R"({"tileBytes": 512, "columnTileBytes": 512})"}) {
    const auto compared = taken(BoundComparison::make(*model.index, *model.index, options));
    const auto work = work_of(compared->pack(0, 1));
    const TensorTask task = taken(work->task(0));
    const auto decoder = taken(BoundTensorDecoder::make(*work, 0));
    std::vector<float> values;
    for (uint32_t tile = 0; tile < task.tiles; ++tile) {
      model.memory.fill(decoder->reads(tile));
      const auto part = values_in<float>(decoder->decode(tile));
      values.insert(values.end(), part.begin(), part.end());
    }
    const StoredTensor& stored = model.index->index().find(task.name)->stored;
    std::vector<float> expected((stored.end - stored.begin) / 2);
    kernels::widen_bf16(
        {reinterpret_cast<const uint16_t*>(model.memory.files[0].data() + stored.begin), expected.size()},
        expected.data());
    CHECK(values == expected);
    CHECK(refusal(BoundTensorDecoder::make(*work, 2)) == "argument-invalid task 2: does not exist; there are 2");
  }
}

}  // namespace
}  // namespace wasmquant::testing
