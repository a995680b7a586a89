// Packed tasks of a plan, a comparison or a forward pass. Contract: BoundWork of web/lib/engine/module.ts.
#pragma once
#include "border/marshal.h"
#include "pipeline/task/packed_tasks.h"

namespace wasmquant::bindings {

class BoundWork : Counted {
 public:
  /// Copies the packed tasks. Error: argument-invalid.
  static Made<BoundWork> make(Address bytes, double count);

  /// Bytes that identify the output, independently of tiles. Errors: those of `task`.
  Result<Region> identity();
  /// Tasks that copy the output of `former`. Errors: json-invalid, those of `task`.
  Result<Parts> copies(const BoundWork& former, const std::string& pairs, const std::string& options);
  /// Errors: those of PackedTasks::at.
  Result<TensorTask> task(uint32_t number) const { return tasks_.at(number); }

 private:
  explicit BoundWork(PackedTasks tasks) : tasks_(std::move(tasks)) {}

  PackedTasks tasks_;
  std::string bytes_;  // of the last reply
};

}  // namespace wasmquant::bindings
