// BoundWork: packed tasks, what identifies them, and copies of a former output.
#include "handles/work.h"

#include "bindings/bound_model.h"

namespace wasmquant::testing {
namespace {

const std::string kTiles = R"({"firstFile": 1, "tileBytes": 512, "columnTileBytes": 512})";

TEST_CASE("BoundWork: opens what a plan packed, and nothing else") {
  const BoundModel model = small_model();
  const auto work = work_for(model, int8_config());
  const auto first = work->task(0);
  REQUIRE_MESSAGE(first, refusal(first));
  CHECK(refusal(work->task(3)) == "argument-invalid task 3: does not exist; there are 3");
  const std::string other(64, 'x');
  CHECK(refusal(BoundWork::make(address_of(other), 64)) ==
        "argument-invalid byte 0: is not the beginning of tasks that this version packs; use module and worker of one "
        "version");
}

TEST_CASE("BoundWork: a task whose bytes were changed is refused by identity and copies, too") {
  const BoundModel model = small_model();
  const auto plan = taken(plan_made(*model.index, int8_config(), R"({"format": "compressed-tensors"})"));
  const std::string packed = text_at(plan->pack(0, ~0u));
  const auto whole = work_of(region_of(packed));
  size_t refused = 0;
  for (size_t i = packed.size() / 2; i < packed.size(); ++i) {
    std::string changed = packed;
    changed[i] = static_cast<char>(0xFF);
    auto work = BoundWork::make(address_of(changed), static_cast<double>(changed.size()));
    if (!work) continue;
    const std::string identity = refusal((*work)->identity());
    bool is_refused = false;
    for (uint32_t task = 0; task < 3; ++task) is_refused |= !bool((*work)->task(task));
    CHECK(identity.empty() != is_refused);
    if (!is_refused) continue;
    ++refused;
    CHECK(refusal(whole->copies(**work, "[[0, 0], [1, 1], [2, 2]]", kTiles)) == identity);
  }
  CHECK(refused > 0);
}

TEST_CASE("BoundWork: the identity of a plan's output does not depend on tiles, but on its specs") {
  const BoundModel model = small_model();
  const auto identity = [&](const std::string& config, const std::string& options) {
    return text_at(taken(work_for(model, config, options)->identity()));
  };
  const std::string whole = identity(int8_config(), R"({"format": "compressed-tensors"})");
  CHECK(whole.size() > 0);
  CHECK(identity(int8_config(), R"({"format": "compressed-tensors", "tileBytes": 512})") == whole);
  CHECK(identity(int8_config(R"(, "algo_config": [])"), R"({"format": "compressed-tensors"})") == whole);
  CHECK(identity(R"({"global_quant_config": {"weight": {"dtype": "int8", "qscheme": "per_tensor"}}})",
                 R"({"format": "compressed-tensors"})") != whole);
}

TEST_CASE("BoundWork: copies of equal tasks read the former output and write the same bytes") {
  const BoundModel model = small_model();
  List<Diagnostic> diagnostics;
  PlanOptions options;
  options.format = "compressed-tensors";
  const auto plan = make_plan(model.index->index(), int8_config(), options, diagnostics);
  REQUIRE(bool(plan));
  const auto run = run_plan(model.memory, *plan);
  REQUIRE(bool(run));
  const std::vector<uint8_t>& output = run->model.files[0];

  const auto now = work_for(model, int8_config()), then = work_for(model, int8_config());
  const auto other =
      work_for(model, R"({"global_quant_config": {"weight": {"dtype": "int8", "qscheme": "per_tensor"}}})");
  const Parts copies = taken(now->copies(*then, "[[0, 0], [1, 1]]", kTiles));
  REQUIRE(copies.facts.items().size() == 2);
  const auto copied = work_of(part_of(copies, "work"));
  uint32_t number = 0;
  size_t bytes = 0;
  for (const json::Value& row : copies.facts.items())
    for (const json::Value& piece : row.items()) {
      TensorSession session(taken(copied->task(number++)));
      CHECK(piece["tiles"].as_integer() == static_cast<int64_t>(session.task().tiles));
      CHECK(piece["bytes"].as_integer() == static_cast<int64_t>(session.task().source_bytes));
      for (uint64_t tile = 0; tile < session.task().tiles; ++tile) {
        for (const TileRead& read : session.reads(tile)) {
          CHECK(read.file == 1);
          std::memcpy(read.pointer, output.data() + read.begin, read.row_bytes * read.rows);
        }
        const TileResult written = taken(session.run(tile));
        for (const TileWrite& write : written.writes) {
          CHECK(std::memcmp(write.pointer, output.data() + write.offset, write.bytes) == 0);
          bytes += write.bytes;
        }
      }
    }
  CHECK(bytes == 64 * 32 + 32 * 64 + 2 * (64 + 32));  // int8 codes and bfloat16 scales

  const Parts none = taken(now->copies(*other, "[[0, 0]]", kTiles));
  CHECK(json::write(none.facts) == "[null]");
  CHECK(refusal(now->copies(*then, "[[9, 0]]", kTiles)) == "argument-invalid task 9: does not exist; there are 3");
  CHECK(refusal(now->copies(*then, "[[0, 9]]", kTiles)) == "argument-invalid task 9: does not exist; there are 3");
  CHECK(refusal(now->copies(*then, "[", kTiles)).substr(0, 12) == "json-invalid");
  CHECK(refusal(now->copies(*then, "[]", "{")).substr(0, 12) == "json-invalid");
}

}  // namespace
}  // namespace wasmquant::testing
