// Importance matrices: for each weight, how large what goes into its columns is. llama-imatrix writes them in two
// formats, both are read and written; weights are called by their names in GGUF.
//   GGUF  general.type "imatrix", imatrix.datasets, imatrix.chunk_count, imatrix.chunk_size; for each weight
//         NAME.in_sum2 [matrices, columns] and NAME.counts [matrices, 1], F32: sums of squares, tokens they are of
//   .dat  i32 weights; for each i32 name bytes, name, i32 chunks, i32 values, f32 mean square * chunks;
//         then, in all but old files, i32 chunks, i32 bytes, path of the text
// Weights of several experts have one matrix each; of an expert that saw nothing all columns weigh 1.
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

struct Entry {
  std::string name;
  std::vector<float> sums;    // [matrices, columns], of squares; finite, >= 0
  std::vector<float> counts;  // of each matrix, whole, > 0: tokens that its sums are of (.dat: chunks)

  /// Mean squares, [matrices, columns].
  std::vector<float> means() const;
};

struct Matrix {
  List<Entry> entries;
  std::string dataset;                                   // the text's path; may be empty
  uint64_t chunks = 0;                                   // of text; 0: not said
  uint64_t chunk_size = 0;                               // tokens of one; 0: not said
  List<std::pair<std::string, std::string>> properties;  // other texts, key and value; written to GGUF, not read

  /// Null when there is none.
  const Entry* find(std::string_view name) const noexcept;
};

/// A whole file of either format. Errors: file-invalid, file-truncated, tensor-duplicate, tensor-missing,
/// value-not-finite, dtype-unsupported and those of gguf::read_index, naming weight or byte.
Result<Matrix> read(std::span<const uint8_t> file);

enum class FileFormat : uint8_t { gguf, dat };
/// Entries have one matrix each, counted in tokens. Errors: those of gguf::write_header.
Result<std::string> write(const Matrix& matrix, FileFormat format);

}  // namespace wasmquant::imatrix
