#include "handles/work.h"

namespace wasmquant::bindings {

Made<BoundWork> BoundWork::make(Address bytes, double count) {
  const std::span<const char> packed = values_at<char>(bytes, count);
  TRY(tasks, PackedTasks::open(std::string(packed.begin(), packed.end())));
  return std::unique_ptr<BoundWork>(new BoundWork(std::move(tasks)));
}

Result<Region> BoundWork::identity() {
  bytes_.clear();
  for (size_t i = 0; i < tasks_.size(); ++i) {
    TRY(task, tasks_.at(i));
    bytes_ += identity_of(std::move(task));
  }
  return region_of(bytes_);
}

Result<Parts> BoundWork::copies(const BoundWork& former, const std::string& pairs_text,
                                const std::string& options_text) {
  TRY(pairs, json::parse(pairs_text));
  TRY(options, json::parse(options_text));
  const auto first_file = static_cast<uint32_t>(options["firstFile"].as_integer());
  TaskPacker packer;
  json::Array rows;
  for (const json::Value& pair : pairs.items()) {
    TRY(now, task(static_cast<uint32_t>(pair.items()[0].as_integer())));
    TRY(then, former.task(static_cast<uint32_t>(pair.items()[1].as_integer())));
    json::Array tiles;
    const auto copies = copies_of(now, then, first_file, tile_bytes_of(options));
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
  Parts out;
  out.facts = std::move(rows);
  out.add("work", region_of(bytes_));
  return out;
}

}  // namespace wasmquant::bindings
