// One stored weight as float32, tile by tile. Contract: BoundTensorDecoder of web/lib/engine/module.ts.
#include <emscripten/bind.h>

#include <optional>
#include <string>

#include "marshal.h"
#include "pipeline/task/decoder.h"
#include "tile_json.h"

namespace wasmquant::bindings {
namespace {

class BoundTensorDecoder : Counted {
 public:
  explicit BoundTensorDecoder(std::string text) {
    // {"task", "by_columns", and of ValueChange what there is}, as comparison() writes it.
    const auto outer = json::parse(text);
    if (!outer) {
      error_ = outer.error();
      return;
    }
    auto task = read_task((*outer)["task"].as_string());
    if (task) {
      task->change.interleaved_rows = static_cast<uint32_t>((*outer)["interleaved_rows"].as_integer());
      task->change.is_transposed = (*outer)["is_transposed"].as_bool();
      task->change.adds_one = (*outer)["adds_one"].as_bool();
      decoder_.emplace(std::move(*task), (*outer)["by_columns"].as_bool());
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
      .constructor<std::string>()
      .function("error", &BoundTensorDecoder::error)
      .function("reads", &BoundTensorDecoder::reads)
      .function("decode", &BoundTensorDecoder::decode);
}
