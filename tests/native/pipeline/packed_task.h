// Tasks as a worker gets them.
#pragma once
#include <doctest/doctest.h>

#include "pipeline/task/packed_tasks.h"

namespace wasmquant::testing {

/// The task, packed by itself and read again. Errors: of a task that cannot be run.
inline Result<TensorTask> read_in_worker(const TensorTask& task) {
  TaskPacker packer;
  packer.add(task);
  const auto packed = PackedTasks::open(packer.bytes());
  REQUIRE(bool(packed));
  return packed->at(0);
}

inline TensorTask in_worker(const TensorTask& task) {
  auto read = read_in_worker(task);
  REQUIRE_MESSAGE(read, (read ? "" : read.error().message));
  return std::move(*read);
}

}  // namespace wasmquant::testing
