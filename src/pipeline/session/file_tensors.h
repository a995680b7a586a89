// A weight that a file has in another order of rows or columns, multiplied, or in several tensors: which of its elements
// each of these tensors has. Found by running the conversion that makes them (Assembly) on the numbers of elements.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/list.h"
#include "core/result.h"
#include "pipeline/session/store_modified_weight.h"
#include "pipeline/task/task.h"

namespace wasmquant {

/// A tensor of the file, with zeros where an entry is FileTensors::kNone.
struct FileTensor {
  TensorTask task;                 // of values as the file has them
  uint64_t columns = 0;            // of the file's
  std::vector<uint32_t> rows;      // of the weight; in each the columns are FileTensors::columns(). Empty:
  std::vector<uint32_t> elements;  // of the weight, where rows of the file are no rows of it
  List<RowScales> scales;          // of rows of the file

  /// Whether codes of the weight's rows are those of the file, in blocks.
  bool has_blocks() const noexcept;
};

class FileTensors {
 public:
  static constexpr uint32_t kNone = ~uint32_t{0};

  /// A matrix as it was read; a vector is one row.
  struct Weight {
    Location at;
    StorageDtype dtype;
    uint64_t rows, columns;
  };
  struct Place {
    uint32_t tensor = kNone, row = kNone;
  };

  /// Of a weight that such a file cannot have yet.
  static Error refused(const std::string& name);
  /// A task in place of the weight's whose `file` these tensors are, for store_modified() and store_blocks(). Error:
  /// not-implemented unless each element is in one tensor of a GGUF file, in place or multiplied.
  static Result<TensorTask> task_of(List<TensorTask> tasks, const Weight& weight);

  /// The same for rows of a gate and an up that take turns.
  static Result<TensorTask> alternating(TensorTask gate, TensorTask up);

  std::span<const FileTensor> tensors() const noexcept { return {tensors_.data(), tensors_.size()}; }
  /// Of the weight, in the order of the file; empty: as they are.
  const std::vector<uint32_t>& columns() const noexcept { return columns_; }
  /// Where a row of the weight is, if it is one of blocks.
  Place place_of(size_t row) const noexcept { return places_[row]; }
  /// Of the longest row of blocks.
  size_t row_bytes() const noexcept;

  /// Adds a row of the weight to `out` as row `at` of a tensor, and the reverse.
  void take(const FileTensor& tensor, size_t at, std::span<const float> row, std::vector<float>& out) const;
  void put(const FileTensor& tensor, size_t at, std::span<const float> values, std::span<float> row) const noexcept;

  /// Stores `weight`: in blocks, row_bytes() for each row of the weight, those that are given, else rounded to nearest. Errors:
  /// those of store_modified() and store_blocks().
  Result<StoredValues> store(std::span<const uint8_t> blocks, std::span<const float> weight) const;

 private:
  Status add(TensorTask task, const Weight& weight);
  /// Adds the next elements of a tensor, whole rows of the file while these are rows of the weight.
  void add_elements(FileTensor& tensor, std::span<const uint32_t> elements);
  bool add_row(FileTensor& tensor, std::span<const uint32_t> elements);
  /// The task of all tensors, once they are there.
  static Result<TensorTask> finish(std::shared_ptr<FileTensors> file);
  uint32_t element_of(size_t row, size_t column) const noexcept;
  std::vector<float> values_of(const FileTensor& tensor, std::span<const float> weight) const;
  void put_back(const FileTensor& tensor, std::span<const float> values, std::span<float> weight) const noexcept;

  List<FileTensor> tensors_;
  uint64_t rows_ = 0, width_ = 0;  // of the weight
  bool has_columns_ = false;       // columns_ are known
  std::vector<uint32_t> columns_;
  List<Place> places_;  // by row of the weight
};

}  // namespace wasmquant
