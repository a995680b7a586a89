// Tasks as bytes: packed once with the plan, sent to each worker once, and read there task by task. Work is then a
// number.
//
//   "wqtk", version (1 byte)
//   specs: count, then each     what tasks are quantized by, once; tasks name them by number
//   tasks: count, then each: its length in bytes, then its fields (packed_fields.h)
//
// Whole numbers are LEB128, least significant group first, negative ones as their 64 bits; floats are their 4 or 8 bytes,
// little-endian; texts and lists begin with their length. Whoever reads them believes nothing: lengths are held against
// the bytes that are left, enums against their last value, shapes against sizes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "core/list.h"
#include "core/result.h"
#include "pipeline/task/task.h"

namespace wasmquant {

class TaskPacker {
 public:
  void add(TensorTask task);
  std::string bytes();

 private:
  List<QuantizationSpec> specs_;
  std::string tasks_;
  uint64_t count_ = 0;
};

class PackedTasks {
 public:
  /// Errors: argument-invalid, at the byte that is wrong.
  static Result<PackedTasks> open(std::string bytes);

  size_t size() const noexcept { return begins_.size(); }
  /// Errors: argument-invalid, which names the task and what is wrong with it.
  Result<TensorTask> at(size_t number) const;

 private:
  std::string bytes_;
  mutable List<QuantizationSpec> specs_;  // never changed by reading
  List<size_t> begins_;                   // of tasks, in bytes_
};

/// All that decides the bytes of a task's output, as bytes: equal for tasks that differ in nothing but their tiles.
std::string identity_of(TensorTask task);

/// Tasks that copy the output of `stored`, which lies in files numbered from `first_file` on, to where `task` has its own,
/// but for components that follow from the plan. Nothing where the two make something else.
std::optional<List<TensorTask>> copies_of(const TensorTask& task, const TensorTask& stored, uint32_t first_file,
                                          const TileBytes& tile_bytes);

}  // namespace wasmquant
