// What is added to the score of a key by how far it is from the query: by table (C. Raffel et al. 2020, T5), or by slope
// (O. Press et al. 2021, to both sides as in jina-embeddings-v2).
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "model/config/architecture.h"

namespace wasmquant::model {

/// The row of T5's table for a key `distance` tokens behind the query; before it if negative. Each side that is seen has as many buckets: one for
/// each of the nearest, then wider ones up to the farthest distance.
size_t bucket_of(const Relative& relative, bool sees_both, ptrdiff_t distance) noexcept;

class RelativeBias {
 public:
  RelativeBias() = default;
  /// `table` [buckets, heads]. For sequences of at most `longest` tokens.
  RelativeBias(const Architecture& architecture, std::span<const float> table, size_t longest);
  /// Of the slopes of heads.
  RelativeBias(const Architecture& architecture, size_t longest);

  bool empty() const noexcept { return values_.empty(); }
  /// To the scores of neighbouring keys, of which the first is `first_key`.
  void add(size_t head, size_t token, size_t first_key, std::span<float> scores) const noexcept;

 private:
  size_t longest_ = 0;
  std::vector<float> values_;  // [heads, 2 longest - 1], by distance
};

}  // namespace wasmquant::model
