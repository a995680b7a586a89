// Any bytes as packed tasks. Whatever is accepted is the same task after it was packed and read again.
#include <cstddef>
#include <cstdint>
#include <string>

#include "pipeline/task/packed_tasks.h"
#include "require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace wasmquant;
  const auto tasks = PackedTasks::open("wqtk\3" + std::string(reinterpret_cast<const char*>(data), size));
  if (!tasks) return 0;
  for (size_t i = 0; i < tasks->size(); ++i) {
    const auto task = tasks->at(i);
    if (!task) {
      require(task.error().message.size() < 1024);
      continue;
    }
    TaskPacker packer;
    packer.add(*task);
    const auto again = PackedTasks::open(packer.bytes());
    require(again && again->size() == 1);
    const auto same = again->at(0);
    require(same && identity_of(*same) == identity_of(*task) && same->tiles == task->tiles);
  }
  return 0;
}
