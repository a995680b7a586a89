// Decodes one stored weight to float32, tile by tile. Contract: BoundTensorDecoder of web/lib/engine/module.ts.
#include <emscripten/bind.h>

#include <optional>
#include <string>

#include "marshal.h"
#include "pipeline/task/decoder.h"
#include "tile_json.h"
#include "work.h"

namespace wasmquant::bindings {
namespace {

class BoundTensorDecoder : Counted {
 public:
  BoundTensorDecoder(const BoundWork& work, uint32_t number) {
    auto task = work.task(number);
    if (task) {
      decoder_.emplace(std::move(*task));
    } else {
      error_ = std::move(task.error());
    }
  }

  std::string error() const { return decoder_ ? ok(nullptr) : fail(error_); }

  std::string reads(uint32_t tile) { return decoder_ ? ok(reads_json(decoder_->reads(tile))) : fail(error_); }

  std::string decode(uint32_t tile) {
    if (!decoder_) return fail(error_);
    const std::span<const float> values = decoder_->decode(tile);
    json::Value out;
    out.set("pointer", address(values.data()));
    out.set("count", static_cast<uint64_t>(values.size()));
    return ok(std::move(out));
  }

 private:
  std::optional<TensorDecoder> decoder_;
  Error error_;
};

}  // namespace
}  // namespace wasmquant::bindings

EMSCRIPTEN_BINDINGS(tensor_decoder) {
  using namespace emscripten;
  using namespace wasmquant::bindings;
  class_<BoundTensorDecoder>("TensorDecoder")
      .constructor<const BoundWork&, uint32_t>()
      .function("error", &BoundTensorDecoder::error)
      .function("reads", &BoundTensorDecoder::reads)
      .function("decode", &BoundTensorDecoder::decode);
}
