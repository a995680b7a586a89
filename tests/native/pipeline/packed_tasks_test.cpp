// Tasks of plans as bytes: the same task comes back, and nothing that is not one breaks the reader.
#include "pipeline/task/packed_tasks.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>

#include "pipeline/memory_model.h"

namespace wasmquant::testing {
namespace {

TensorTask packed_example() {
  TensorTask task;
  task.name = "model.layers.0.größe.weight";
  task.source = {3, uint64_t{1} << 52};
  task.source_bytes = 64;
  task.source_pitch = 9;
  task.components = {{1, 100}, {2, std::numeric_limits<uint64_t>::max()}};
  QuantizationSpec first;
  first.dtype = Dtype::int4;
  first.qscheme = QScheme::per_group;
  first.ch_axis = -1;
  first.group_size = 4;
  first.observer_options.percentile = 99.9;
  QuantizationSpec second = first;
  second.dtype = Dtype::fp8_e4m3;
  second.is_scale_quant = true;
  WeightLayout layout;
  layout.shape = {4, 8};
  layout.rows = 4;
  layout.columns = 8;
  layout.source = StorageDtype::BF16;
  layout.spec = first;
  layout.stages = {first, second};
  layout.granularity.outer = 4;
  layout.granularity.axis = 8;
  layout.granularity.block = 4;
  layout.granularity.scale_shape = {4, 2};
  layout.codes = CodeStorage::rows_bit_stream;
  layout.bits = 4;
  layout.code_offset = -8;
  layout.factor = 0.5f;
  layout.components = {{Role::codes, "", StorageDtype::U8, {4, 4}, 16},
                       {Role::scale, "", StorageDtype::F16, {4, 2}, 16}};
  task.layout = std::move(layout);
  task.change.adds_one = true;
  task.non_finite = NonFinite::saturate;
  task.importance.assign(8, 0.25f);
  task.tile_lines = 2;
  task.tiles = 2;
  auto stored = std::make_shared<StoredWeight>();
  stored->task = task;
  task.quantized = std::move(stored);
  return task;
}

std::string pack_twice(const TensorTask& task) {
  TaskPacker packer;
  packer.add(task);
  TensorTask copy;
  copy.name = "copy";
  copy.is_copy = true;
  copy.components = {{0, 7}};
  copy.layout.edit([](WeightLayout& own) { own.components = {{Role::codes, "", StorageDtype::F32, {4}, 16}}; });
  copy.source_bytes = copy.tile_lines = 16;
  copy.tiles = 1;
  copy.factors = ChannelFactors{1, 4, 4, {1, 2, 3, 4}};
  packer.add(copy);
  return packer.bytes();
}

// Reads all that can be read, and answers whether that was everything.
bool reads_all(const std::string& bytes) {
  const auto tasks = PackedTasks::open(bytes);
  if (!tasks) {
    CHECK(tasks.error().code == ErrorCode::argument_invalid);
    CHECK_FALSE(tasks.error().message.empty());
    return false;
  }
  bool is_whole = tasks->size() == 2;
  for (size_t i = 0; i < tasks->size(); ++i) {
    const auto task = tasks->at(i);
    is_whole &= bool(task);
    if (!task) CHECK(task.error().code == ErrorCode::argument_invalid);
  }
  return is_whole;
}

}  // namespace

TEST_CASE("packed tasks: a packed task reads back") {
  const TensorTask task = packed_example();
  const auto tasks = PackedTasks::open(pack_twice(task));
  REQUIRE(bool(tasks));
  REQUIRE(tasks->size() == 2);
  const auto read = tasks->at(0);
  REQUIRE(bool(read));
  CHECK(read->name == task.name);
  CHECK(read->components[1].offset == task.components[1].offset);
  CHECK(read->layout->stages == task.layout->stages);
  CHECK(read->layout->code_offset == -8);
  CHECK(read->importance == task.importance);
  REQUIRE(read->quantized != nullptr);
  CHECK(identity_of(read->quantized->task) == identity_of(task.quantized->task));
  // Every field of the task is in its identity, but for the tiles.
  CHECK(identity_of(*read) == identity_of(task));
  CHECK(read->tile_lines == 2);
  CHECK(read->tiles == 2);
  CHECK(tasks->at(1)->factors->values == std::vector<float>{1, 2, 3, 4});
  const auto missing = tasks->at(2);
  REQUIRE_FALSE(bool(missing));
  CHECK(missing.error().where == "task 2");
}

TEST_CASE("packed tasks: specs and layouts are packed once") {
  const auto bytes_of = [](int count) {
    TaskPacker packer;
    for (int i = 0; i < count; ++i) packer.add(packed_example());
    return packer.bytes();
  };
  const size_t first = bytes_of(1).size(), each = bytes_of(2).size() - first;
  CHECK(2 * each < first);  // most of a task is its spec and layout
  CHECK(bytes_of(100).size() < first + 99 * each + 200);
  const auto tasks = PackedTasks::open(bytes_of(3));
  REQUIRE(bool(tasks));
  for (size_t i = 0; i < 3; ++i) CHECK(identity_of(*tasks->at(i)) == identity_of(packed_example()));
}

TEST_CASE(
    "packed tasks: bytes that are cut off, changed or of another version are refused, or read as something else") {
  const std::string bytes = pack_twice(packed_example());
  REQUIRE(reads_all(bytes));
  for (size_t size = 0; size < bytes.size(); ++size) CHECK_FALSE(reads_all(bytes.substr(0, size)));
  CHECK_FALSE(reads_all(bytes + '\0'));
  size_t refused = 0;
  for (size_t i = 0; i < bytes.size(); ++i)
    for (uint32_t bit = 0; bit < 8; ++bit) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(static_cast<unsigned char>(changed[i]) ^ 1u << bit);
      refused += reads_all(changed) ? 0u : 1u;
    }
  CHECK(refused > bytes.size());
  std::string later = bytes;
  later[4] = 4;
  CHECK(PackedTasks::open(later).error().message.find("version") != std::string::npos);
}

TEST_CASE("packed tasks: sizes that do not agree are refused, with the name of the tensor") {
  const auto problem_with = [](void (*change)(TensorTask&)) {
    TensorTask task = packed_example();
    change(task);
    const auto read = PackedTasks::open(pack_twice(task))->at(0);
    if (read) return std::string();
    CHECK(read.error().where == task.name);
    return read.error().message;
  };
  CHECK(problem_with([](TensorTask&) {}).empty());
  CHECK_FALSE(problem_with([](TensorTask& task) { task.components.pop_back(); }).empty());
  CHECK_FALSE(problem_with([](TensorTask& task) {
                task.layout.edit([](WeightLayout& own) { own.shape = {4, 9}; });
              }).empty());
  CHECK_FALSE(problem_with([](TensorTask& task) {
                task.layout.edit([](WeightLayout& own) { own.rows = uint64_t{1} << 63; });
              }).empty());
  CHECK_FALSE(problem_with([](TensorTask& task) {
                task.layout.edit([](WeightLayout& own) { own.components[0].bytes = 17; });
              }).empty());
  CHECK_FALSE(problem_with([](TensorTask& task) {
                task.layout.edit([](WeightLayout& own) { own.granularity.block = 0; });
              }).empty());
  CHECK_FALSE(problem_with([](TensorTask& task) {
                task.layout.edit([](WeightLayout& own) { own.codes = CodeStorage::ggml_rows; });
              }).empty());
  CHECK_FALSE(problem_with([](TensorTask& task) { task.source_pitch = 7; }).empty());
  CHECK_FALSE(problem_with([](TensorTask& task) { task.importance.pop_back(); }).empty());
  CHECK_FALSE(problem_with([](TensorTask& task) { task.factors = ChannelFactors{1, 3, 1, {1, 2, 3}}; }).empty());
  CHECK_FALSE(problem_with([](TensorTask& task) { task.padding = 1u << 30; }).empty());
  CHECK_FALSE(problem_with([](TensorTask& task) {
                auto stored = std::make_shared<StoredWeight>(*task.quantized);
                stored->task.layout.edit([](WeightLayout& own) { own.shape = {2, 8}; });
                stored->task.layout.edit([](WeightLayout& own) { own.rows = 2; });
                task.quantized = std::move(stored);
              }).empty());
}

TEST_CASE("packed tasks: outputs of an earlier run are copied if both tasks agree except in tiles and offsets") {
  TensorTask now = packed_example();
  now.padding = 5;
  TensorTask then = now;
  then.components = {{0, 1000}, {0, 2000}};
  then.tile_lines = 4;
  then.tiles = 1;
  const auto copies = copies_of(now, then, 10, {7, 7});
  REQUIRE(copies.has_value());
  REQUIRE(copies->size() == 2);
  const TensorTask& scales = (*copies)[1];
  CHECK(scales.source.file == 10);
  CHECK(scales.source.offset == 2000);
  CHECK(scales.components[0].file == 2);
  CHECK(scales.source_bytes == 16);
  CHECK(scales.padding == 5);
  CHECK(scales.tiles == 3);
  then.non_finite = NonFinite::error;
  CHECK_FALSE(copies_of(now, then, 10, {7, 7}).has_value());
  then = now;
  then.components.pop_back();
  CHECK_FALSE(copies_of(now, then, 10, {7, 7}).has_value());
}

}  // namespace wasmquant::testing
