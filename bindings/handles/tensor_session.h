// One tensor, tile by tile: observed, quantized and packed, or decoded to float32. Contracts: BoundTensorSession and
// BoundTensorDecoder of web/lib/engine/module.ts.
#pragma once
#include "handles/work.h"
#include "pipeline/session/session.h"
#include "pipeline/task/decoder.h"

namespace wasmquant::bindings {

class BoundTensorSession : Counted {
 public:
  /// Errors: those of BoundWork::task.
  static Made<BoundTensorSession> make(const BoundWork& work, uint32_t number);

  uint32_t observe_passes() const { return session_.observe_passes(); }
  List<TileRead> reads(uint32_t tile) { return session_.reads(tile); }
  Status observe(uint32_t tile) { return session_.observe(tile); }
  Status next_pass() { return session_.next_pass(); }
  Result<std::span<const float>> state() { return session_.state(); }
  Status take_state(Address state, double count) { return session_.take_state(values_at<float>(state, count)); }
  Result<TileResult> run(uint32_t tile) { return session_.run(tile); }

 private:
  explicit BoundTensorSession(TensorTask task) : session_(std::move(task)) {}

  TensorSession session_;
};

class BoundTensorDecoder : Counted {
 public:
  /// Errors: those of BoundWork::task.
  static Made<BoundTensorDecoder> make(const BoundWork& work, uint32_t number);

  List<TileRead> reads(uint32_t tile) { return decoder_.reads(tile); }
  Region decode(uint32_t tile) { return region_of(decoder_.decode(tile)); }

 private:
  explicit BoundTensorDecoder(TensorTask task) : decoder_(std::move(task)) {}

  TensorDecoder decoder_;
};

}  // namespace wasmquant::bindings
