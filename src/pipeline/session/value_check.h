// Elements that are not finite, or would not be when read (checkpoint/layout/value_limit.h). Errors and scales show whether any exist; only
// then is the first one located, by lines of the layout, independently of tiles. Elements are numbered as in the layout; messages use the
// source's indexes.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/layout/value_limit.h"
#include "core/result.h"
#include "kernels/kernels.h"
#include "numeric/ggml_type.h"
#include "pipeline/task/task.h"

namespace wasmquant {

class TileSource;

class ValueCheck {
 public:
  /// `task` must outlive this object.
  explicit ValueCheck(const TensorTask& task) : task_(task), limit_(value_limit_of(task.layout)) {}

  const ValueLimit& limit() const noexcept { return limit_; }
  /// Whether values are replaced by what fits, so that none is an error.
  bool saturates() const noexcept { return task_.non_finite == NonFinite::saturate; }
  /// The largest scale the config allows: infinity unless it saturates.
  float largest_scale() const noexcept;
  /// All scales of the tensor, for may_lose(); without them it looks at those given.
  void know(std::span<const QParams> scales) noexcept;
  /// Whether values of codes with these scales must be checked.
  bool may_lose(std::span<const QParams> qparams) const noexcept;

  /// "at element 5 (row 0, column 5)", in the source's order.
  std::string place_of(uint64_t element) const;
  /// value-not-finite in a tile whose first row (of column tiles: first column) contains such an element.
  Error first_not_finite(const TileRange& tile, TileSource& source) const;
  /// value-not-finite or value-overflow, for an element that is not finite or for which ValueLimit::is_lost.
  Error lost(uint64_t element, float x, float y, float scale) const;
  /// Checks elements and the values read back; `g` assigns `qparams` from flat element `begin` on (empty: no scales).
  /// `sums`: their error; `element`: number of the first. Errors, for the first lost element: value-not-finite,
  /// value-overflow.
  Status values(const kernels::ErrorSums& sums, const Granularity& g, std::span<const QParams> qparams,
                std::span<const float> x, uint64_t begin, const float* y, uint64_t element) const;
  /// The same for rows in a GGUF type. If a block's scale is infinite, names its largest element.
  Status blocks(const kernels::ErrorSums& sums, GgmlType type, std::span<const float> x, const uint8_t* blocks,
                uint64_t element) const;
  /// x, or if the config saturates, a copy in `scratch` with finite values (`infinities`: infinite ones too) clamped to
  /// the limit. x may be `scratch`.
  std::span<const float> clamped(std::span<const float> x, bool infinities, std::vector<float>& scratch) const;

 private:
  Error not_finite(uint64_t element, float x) const;
  Error overflow(uint64_t element, float x, const std::string& what) const;

  const TensorTask& task_;
  ValueLimit limit_;
  std::optional<bool> known_to_lose_;
};

}  // namespace wasmquant
