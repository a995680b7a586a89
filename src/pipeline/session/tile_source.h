// The values of a tensor's tiles, of all that sources store: plain values, small floats, varints, transposed matrices (ONNX), codes
// of quantized checkpoints.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/bytes.h"
#include "core/list.h"
#include "core/result.h"
#include "pipeline/task/task.h"
#include "pipeline/task/tiles.h"

namespace wasmquant {

class TensorDecoder;

class TileSource {
 public:
  /// `task` must outlive this object.
  explicit TileSource(const TensorTask& task);
  ~TileSource();

  /// The reads of a tile; their memory belongs to this object and is valid until the next call.
  List<TileRead> reads(uint64_t tile);
  /// Prepares the bytes of the tile read last for values(), with the task's factors. Errors: file-invalid.
  Status arrange(const TileRange& tile);
  /// `count` elements of the arranged tile in layout order, from `element` on; valid until the next call.
  std::span<const float> values(uint64_t element, uint64_t count);
  /// As they were read: those of a copy.
  Bytes& bytes() noexcept { return bytes_; }

 private:
  StorageDtype dtype() const noexcept { return task_.is_float32 ? StorageDtype::F32 : task_.layout->source; }
  // The tile's values, in rearranged_.
  void take(std::span<const float> tile);
  Status decode_varints();
  // Input [columns, width] to rearranged_ [width, columns].
  void transpose(uint64_t columns, uint64_t width);
  // Multiplies rearranged_ by the task's factors.
  void multiply(const TileRange& tile);

  const TensorTask& task_;
  std::unique_ptr<TensorDecoder> decoder_;  // of codes
  Bytes bytes_;
  std::vector<float> rearranged_;  // the tile, where its bytes are not its values in order
  bool is_arranged_ = false, is_rearranged_ = false;
  std::vector<float> widened_;  // values() of another dtype
};

}  // namespace wasmquant
