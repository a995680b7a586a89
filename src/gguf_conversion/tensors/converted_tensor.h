// A tensor of a GGUF file, by the tensors of the model that it is made of.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/list.h"
#include "families/head_interleave.h"
#include "gguf_conversion/architectures/family.h"
#include "numeric/strided_view.h"

namespace wasmquant::conversion {

/// A tensor of the source model.
struct SourceTensor {
  std::string_view name;
  std::span<const uint64_t> shape;
  std::optional<float> value;  // of a scalar that is read with the headers
};

/// How rows are rearranged.
enum class Rearrangement : uint8_t {
  none,
  interleave,  // rows of each head, from halves to pairs: families/head_interleave.h
  transpose,
};

/// Rows of a source tensor, counted along all its axes but the last; of a vector its elements.
struct SourceRows {
  uint32_t source = 0;
  uint64_t first = 0, count = 0;
  bool is_transposed = false;  // the matrix that these rows are, as [columns, rows]
};

/// A tensor of the GGUF file.
struct ConvertedTensor {
  static constexpr uint32_t kGenerated = ~uint32_t{0};

  uint32_t source = kGenerated;  // index of the source tensor
  std::string name;
  std::vector<uint64_t> shape;  // C order, of the GGUF tensor
  Rearrangement rearrangement = Rearrangement::none;
  uint32_t head_rows = 0;  // interleave: rows of a head
  bool plus_one = false;   // values + 1, in float32
  // Where the tensor is not all of one source: the rows that follow each other in it, as many in each. `source` is the
  // first one's.
  List<SourceRows> rows;
  // Or `views` of each of `rounds` equal parts of the source.
  uint64_t rounds = 1;
  List<StridedView> views;
  uint64_t empty_rows = 0;           // zeros behind those of `source`
  List<std::vector<float>> factors;  // of rows, repeated; values are multiplied by one after another
  bool is_logarithm = false;         // values become -exp(value)
  HalfPrecision half = HalfPrecision::never;
  std::string data;  // generated: little-endian float32

  /// Whether its values are more than those of `source`, rearranged as `rearrangement` says.
  bool is_arranged() const noexcept {
    return !rows.empty() || !views.empty() || !factors.empty() || empty_rows != 0 || is_logarithm;
  }
  /// The source row that becomes row `row`. (transpose: the source column.)
  uint64_t source_row(uint64_t row) const noexcept {
    return rearrangement == Rearrangement::interleave ? families::HeadInterleave(head_rows).halves_row(row) : row;
  }
};

}  // namespace wasmquant::conversion
