// Tasks as bytes: packed once with the plan, sent to each worker once, and read there by number.
//   "wqtk", version (1 byte)
//   specs: count, then each     quantization specs; layouts name them by number
//   layouts: count, then each   layouts of weights; tasks name them by number
//   tasks: count, then each: its length in bytes, then its fields (packed_fields.h)
// Integers are LEB128, least significant group first, negative ones as their 64 bits; floats are 4 or 8 bytes,
// little-endian; strings and lists start with their length. Readers check lengths, enums, shapes and sizes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "core/list.h"
#include "core/result.h"
#include "pipeline/task/task.h"

namespace wasmquant {

/// Values that many tasks have in common; tasks name them by number.
struct PackTables {
  List<QuantizationSpec> specs;
  List<SharedValue<WeightLayout>> layouts;
};

/// Collects tasks and packs them.
class TaskPacker {
 public:
  void add(TensorTask task);
  /// Those added since the last call.
  std::string bytes();

 private:
  PackTables tables_;
  std::string tasks_;
  uint64_t count_ = 0;
};

/// Reads packed tasks by number.
class PackedTasks {
 public:
  /// Errors: argument-invalid with the byte.
  static Result<PackedTasks> open(std::string bytes);

  size_t size() const noexcept { return begins_.size(); }
  /// Errors: argument-invalid naming the task and the problem.
  Result<TensorTask> at(size_t number) const;

 private:
  std::string bytes_;
  mutable PackTables tables_;  // mutable for PackStream, which only reads them
  List<size_t> begins_;        // of tasks, in bytes_
};

/// Everything that decides a task's output bytes: equal for tasks that differ only in their tiles.
std::string identity_of(TensorTask task);

/// Tasks that copy the output of `stored`, in files numbered from `first_file`, to the places of `task`, except
/// components that follow from the plan. Nullopt if the two outputs differ.
std::optional<List<TensorTask>> copies_of(const TensorTask& task, const TensorTask& stored, uint32_t first_file,
                                          const TileBytes& tile_bytes);

}  // namespace wasmquant
