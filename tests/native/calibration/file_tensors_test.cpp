// Weights that a file has in another order, multiplied or in several tensors. Expected values are read off the conversion's words:
// each row of a weight holds its number times a hundred and its columns.
#include "pipeline/session/file_tensors.h"

#include <doctest/doctest.h>

#include <cstring>

#include "checkpoint/checkpoint_format.h"

using namespace wasmquant;

namespace {

constexpr uint64_t kRows = 6, kColumns = 4, kBegin = 1000;
const FileTensors::Weight kWeight{{0, kBegin}, StorageDtype::F32, kRows, kColumns};

std::vector<float> counted(uint64_t rows = kRows, uint64_t columns = kColumns) {
  std::vector<float> out;
  for (uint64_t i = 0; i < rows * columns; ++i) out.push_back(static_cast<float>(100 * (i / columns) + i % columns));
  return out;
}

/// Rows of the weight as they are stored.
std::shared_ptr<const StoredWeight> rows(uint64_t first, uint64_t count, uint64_t columns = kColumns) {
  auto stored = std::make_shared<StoredWeight>();
  stored->format = kPlainFormat;
  stored->weight.shape = {count, columns};
  stored->task.layout = *checkpoint_format_named(kPlainFormat)->layout(stored->weight, {QuantizationSpec{}});
  stored->task.components.push_back({0, kBegin + first * columns * sizeof(float)});
  return stored;
}

/// A tensor of the file that is made so.
TensorTask made_by(Assembly assembly, std::vector<uint64_t> shape, GgmlType type = GgmlType::f32, uint64_t at = 0) {
  TensorTask task;
  task.name = "file";
  task.layout = ggml_layout(shape, StorageDtype::F32, type, "file");
  task.components.push_back({1, at});
  auto stored = std::make_shared<StoredWeight>();
  stored->task.assembly = std::move(assembly);
  task.quantized = std::move(stored);
  return task;
}

Assembly in_turns(List<std::shared_ptr<const StoredWeight>> parts) {
  Assembly out;
  out.rounds = parts.size();
  out.takes_turns = true;
  out.columns = kColumns;
  out.parts = std::move(parts);
  return out;
}

std::vector<float> floats_of(const StoredPiece& piece) {
  std::vector<float> out(piece.bytes.size() / sizeof(float));
  std::memcpy(out.data(), piece.bytes.data(), piece.bytes.size());
  return out;
}

/// What is written of the counted weight by each tensor; what is read back is the weight.
List<std::vector<float>> written(List<TensorTask> tasks, const FileTensors::Weight& as = kWeight) {
  const auto task = FileTensors::task_of(std::move(tasks), as);
  REQUIRE(task);
  const std::vector<float> weight = counted(as.rows, as.columns);
  const auto stored = store_modified(*task, weight, nullptr, weight);
  REQUIRE(stored);
  CHECK(stored->values == weight);
  List<std::vector<float>> out;
  for (const StoredPiece& piece : stored->pieces) out.push_back(floats_of(piece));
  return out;
}

List<TensorTask> list_of(TensorTask task) {
  List<TensorTask> out;
  out.push_back(std::move(task));
  return out;
}

std::string refusal(TensorTask task, const FileTensors::Weight& as = kWeight) {
  const auto found = FileTensors::task_of(list_of(std::move(task)), as);
  return found ? "" : std::string(name_of(found.error().code));
}

}  // namespace

TEST_CASE("FileTensors: rows in the order of the parts") {
  List<std::shared_ptr<const StoredWeight>> parts;
  for (const uint64_t first : {4, 0, 2}) parts.push_back(rows(first, 2));
  const auto found = written(list_of(made_by(in_turns(parts), {kRows, kColumns})));
  REQUIRE(found.size() == 1);
  CHECK(found[0][0] == 400);
  CHECK(found[0][4] == 500);
  CHECK(found[0][8] == 0);
  CHECK(found[0][23] == 303);
}

TEST_CASE("FileTensors: two tensors, one of rows in the source's order, the other of matrices that are turned") {
  List<std::shared_ptr<const StoredWeight>> parts;
  for (const uint64_t first : {0, 2}) parts.push_back(rows(first, 2));
  Assembly turned = in_turns(parts);
  turned.is_transposed = true;
  List<TensorTask> tasks = list_of(made_by(turned, {2, kColumns, 2}));
  TensorTask& behind = tasks.emplace_back(made_by({}, {2, kColumns}, GgmlType::f32, 64));
  behind.quantized = nullptr;
  behind.source = {0, kBegin + 4 * kColumns * sizeof(float)};
  const auto found = written(std::move(tasks));
  REQUIRE(found.size() == 2);
  CHECK(found[0] == std::vector<float>{0, 100, 1, 101, 2, 102, 3, 103, 200, 300, 201, 301, 202, 302, 203, 303});
  CHECK(found[1] == std::vector<float>{400, 401, 402, 403, 500, 501, 502, 503});
}

TEST_CASE("FileTensors: columns in another order, rows multiplied, zeros behind them") {
  Assembly columns;
  columns.rounds = kRows;
  columns.columns = 1;
  columns.views.push_back({2, {1, 1, 2}, {0, 0, 1}});
  columns.views.push_back({0, {1, 1, 2}, {0, 0, 1}});
  columns.parts.push_back(rows(0, kRows));
  const auto task = FileTensors::task_of(list_of(made_by(columns, {kRows, kColumns})), kWeight);
  REQUIRE(task);
  CHECK(task->file->columns() == std::vector<uint32_t>{2, 3, 0, 1});
  const auto sorted = written(list_of(made_by(columns, {kRows, kColumns})));
  CHECK(std::vector<float>(sorted[0].begin() + 4, sorted[0].begin() + 8) == std::vector<float>{102, 103, 100, 101});

  Assembly multiplied;
  multiplied.rounds = kRows;
  multiplied.columns = kColumns;
  multiplied.scales.push_back({false, {2, 0.5f}});
  multiplied.parts.push_back(rows(0, kRows));
  const auto doubled = written(list_of(made_by(multiplied, {kRows, kColumns})));
  CHECK(doubled[0][1] == 2);
  CHECK(doubled[0][4] == 50);
  CHECK(doubled[0][8] == 400);

  Assembly filled = in_turns({});
  filled.rounds = 4;
  for (const uint64_t first : {0, 2, 4}) filled.parts.push_back(rows(first, 2));
  const auto zeros = written(list_of(made_by(filled, {8, kColumns})));
  CHECK(zeros[0].size() == 32);
  CHECK(zeros[0][23] == 503);
  CHECK(zeros[0][24] == 0);
}

TEST_CASE("FileTensors: elements of a vector") {
  Assembly vector;
  vector.columns = 1;
  vector.views.push_back({3, {1, 3, 1}, {0, 1, 1}});
  vector.views.push_back({0, {1, 3, 1}, {0, 1, 1}});
  vector.parts.push_back(rows(0, 1, 6));
  const auto found = written(list_of(made_by(vector, {6})), {{0, kBegin}, StorageDtype::F32, 1, 6});
  CHECK(found[0] == std::vector<float>{3, 4, 5, 0, 1, 2});
}

TEST_CASE("FileTensors: blocks that were chosen for rows of the weight") {
  constexpr uint64_t kWide = 32;
  List<std::shared_ptr<const StoredWeight>> parts;
  for (const uint64_t first : {1, 0}) parts.push_back(rows(first, 1, kWide));
  const FileTensors::Weight as{{0, kBegin}, StorageDtype::F32, 2, kWide};
  const auto task = FileTensors::task_of(list_of(made_by(in_turns(parts), {2, kWide}, GgmlType::q8_0)), as);
  REQUIRE(task);
  const FileTensors& file = *task->file;
  CHECK(file.row_bytes() == 34);
  CHECK(file.place_of(0).row == 1);
  std::vector<uint8_t> blocks(2 * 34);
  blocks[1] = blocks[34 + 1] = 0x3c;  // a scale of 1
  for (size_t i = 0; i < kWide; ++i) blocks[2 + i] = static_cast<uint8_t>(i);
  const auto stored = store_blocks(*task, blocks, std::vector<float>(2 * kWide, 1.0f));
  REQUIRE(stored);
  CHECK(std::memcmp(stored->pieces[0].bytes.data() + 34, blocks.data(), 34) == 0);
  CHECK(stored->values[5] == 5);
  CHECK(stored->values[kWide + 5] == 0);
}

TEST_CASE("FileTensors: rows of a gate and of an up") {
  const auto task = FileTensors::alternating(made_by({}, {3, kColumns}), made_by({}, {3, kColumns}, GgmlType::f32, 48));
  REQUIRE(task);
  const std::vector<float> weight = counted();
  const auto stored = store_modified(*task, weight, nullptr, weight);
  REQUIRE(stored);
  CHECK(floats_of(stored->pieces[0])[4] == 200);
  CHECK(floats_of(stored->pieces[1])[0] == 100);
  CHECK(stored->pieces[1].at.offset == 48);
  CHECK(stored->values == weight);
  CHECK(!FileTensors::alternating(made_by({}, {3, kColumns}), made_by({}, {2, kColumns})));
}

TEST_CASE("FileTensors: refuses what does not have each element once, or not as it is") {
  List<std::shared_ptr<const StoredWeight>> some, twice;
  some.push_back(rows(0, 2));
  for (const uint64_t first : {0, 0, 2}) twice.push_back(rows(first, 2));
  CHECK(refusal(made_by(in_turns(some), {2, kColumns})) == "not-implemented");
  CHECK(refusal(made_by(in_turns(twice), {kRows, kColumns})) == "not-implemented");
  List<std::shared_ptr<const StoredWeight>> all;
  all.push_back(rows(0, kRows));
  Assembly logarithm = in_turns(all), added = in_turns(all), zero = in_turns(all);
  CHECK(refusal(made_by(logarithm, {kRows, kColumns})).empty());
  logarithm.is_logarithm = true;
  added.addend = 1;
  zero.scales.push_back({false, {0}});
  for (const Assembly& other : {logarithm, added, zero})
    CHECK(refusal(made_by(other, {kRows, kColumns})) == "not-implemented");
  CHECK(refusal(made_by(in_turns(all), {kRows, kColumns}), {{3, kBegin}, StorageDtype::F32, kRows, kColumns}) ==
        "not-implemented");
}
