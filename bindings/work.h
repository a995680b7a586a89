// Packed tasks of a plan, a comparison or a forward pass. Contract: BoundWork of web/lib/engine/module.ts.
#pragma once
#include <string>

#include "marshal.h"
#include "pipeline/task/packed_tasks.h"

namespace wasmquant::bindings {

class BoundWork : Counted {
 public:
  BoundWork(Address bytes, double count);
  std::string error() const { return tasks_ ? ok(nullptr) : fail(tasks_.error()); }
  std::string identity();
  std::string copies(const BoundWork& former, std::string pairs, std::string options);

  /// Errors: those of the constructor and of PackedTasks::at.
  Result<TensorTask> task(uint32_t number) const;

 private:
  Result<PackedTasks> tasks_;
  std::string bytes_;  // of the last reply
};

}  // namespace wasmquant::bindings
