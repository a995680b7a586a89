// Importance matrices: per weight, the magnitude of each input column. Reads and writes both formats of llama-imatrix;
// weights have their GGUF names.
//   GGUF  general.type "imatrix", imatrix.datasets, imatrix.chunk_count, imatrix.chunk_size; per weight
//         NAME.in_sum2 [matrices, columns] and NAME.counts [matrices, 1], F32: sums of squares, token counts
//   .dat  i32 weights; for each i32 name bytes, name, i32 chunks, i32 values, f32 mean square * chunks;
//         then, except in old files, i32 chunks, i32 bytes, path of the text
// Stacked experts have one matrix each; an expert without data gets weight 1 in all columns.
// Source: llama.cpp, tools/imatrix/imatrix.cpp and common/imatrix-loader.cpp.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/list.h"
#include "core/result.h"

namespace wasmquant::imatrix {

/// Importance of the input columns of one weight, for each matrix of stacked experts.
struct WeightImportance {
  std::string name;
  std::vector<float> sums;    // [matrices, columns], sums of squares; finite, >= 0
  std::vector<float> counts;  // per matrix, integer: tokens in its sums (.dat: chunks)

  /// Mean squares, [matrices, columns].
  std::vector<float> means() const;
};

/// A file of either format.
struct Matrix {
  List<WeightImportance> entries;
  std::string dataset;                                   // the text's path; may be empty
  uint64_t chunks = 0;                                   // chunks of text; 0: unknown
  uint64_t chunk_size = 0;                               // tokens per chunk; 0: unknown
  List<std::pair<std::string, std::string>> properties;  // other string metadata; written to GGUF, not read

  /// Null if absent.
  const WeightImportance* find(std::string_view name) const noexcept;
};

/// Reads a whole file of either format. Errors: file-invalid, file-truncated, tensor-duplicate, tensor-missing,
/// value-not-finite, dtype-unsupported and those of gguf::read_index, naming weight or byte.
Result<Matrix> read(std::span<const uint8_t> file);

enum class FileFormat : uint8_t { gguf, dat };
/// Counted in tokens. Errors: those of gguf::write_header.
Result<std::string> write(const Matrix& matrix, FileFormat format);

}  // namespace wasmquant::imatrix
