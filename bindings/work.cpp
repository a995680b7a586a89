#include "work.h"

#include <emscripten/bind.h>

#include "tile_json.h"

namespace wasmquant::bindings {

BoundWork::BoundWork(Address bytes, double count)
    : tasks_(PackedTasks::open(std::string(pointer<const char>(bytes), static_cast<size_t>(count)))) {}

Result<TensorTask> BoundWork::task(uint32_t number) const {
  if (!tasks_) return tasks_.error();
  return tasks_->at(number);
}

std::string BoundWork::identity() {
  if (!tasks_) return error();
  bytes_.clear();
  for (size_t i = 0; i < tasks_->size(); ++i) {
    auto task = tasks_->at(i);
    if (!task) return fail(task.error());
    bytes_ += identity_of(std::move(*task));
  }
  return ok(bytes_json(bytes_));
}

std::string BoundWork::copies(const BoundWork& former, std::string pairs_text, std::string options_text) {
  const auto pairs = json::parse(pairs_text), options = json::parse(options_text);
  if (!pairs || !options) return fail(pairs ? options.error() : pairs.error());
  const auto first_file = static_cast<uint32_t>((*options)["firstFile"].as_integer());
  TaskPacker packer;
  json::Array rows;
  for (const json::Value& pair : pairs->items()) {
    const auto now = task(static_cast<uint32_t>(pair.items()[0].as_integer()));
    const auto then = former.task(static_cast<uint32_t>(pair.items()[1].as_integer()));
    if (!now || !then) return fail(now ? then.error() : now.error());
    json::Array tiles;
    const auto copies = copies_of(*now, *then, first_file, tile_bytes_of(*options));
    if (!copies) {
      rows.emplace_back(json::Value());
      continue;
    }
    for (const TensorTask& copy : *copies) {
      packer.add(copy);
      json::Value& row = tiles.emplace_back();
      row.set("bytes", copy.source_bytes);
      row.set("tiles", copy.tiles);
    }
    rows.emplace_back(std::move(tiles));
  }
  bytes_ = packer.bytes();
  json::Value out;
  out.set("copies", std::move(rows));
  out.set("work", bytes_json(bytes_));
  return ok(std::move(out));
}

}  // namespace wasmquant::bindings

EMSCRIPTEN_BINDINGS(work) {
  using namespace emscripten;
  using namespace wasmquant::bindings;
  class_<BoundWork>("Work")
      .constructor<Address, double>()
      .function("error", &BoundWork::error)
      .function("identity", &BoundWork::identity)
      .function("copies", &BoundWork::copies);
}
