// Every case of tests/files/hostile_numpy/expected.json (written by tests/files/hostile_numpy.mjs).
#include <doctest/doctest.h>

#include "core/json.h"
#include "formats/numpy/npy.h"
#include "formats/numpy/npz.h"
#include "formats/read_file.h"

using namespace wasmquant;

namespace {

/// A piece of a file with nothing behind it: a read beyond is then seen by the sanitizer.
std::vector<uint8_t> piece(const std::vector<uint8_t>& file, uint64_t begin, uint64_t bytes) {
  REQUIRE(begin <= file.size());
  REQUIRE(bytes <= file.size() - begin);
  const auto from = file.begin() + static_cast<std::ptrdiff_t>(begin);
  return {from, from + static_cast<std::ptrdiff_t>(bytes)};
}

Status read_npy(const std::vector<uint8_t>& file, std::mt19937& random) {
  std::vector<uint8_t> prefix = piece(file, 0, std::min<uint64_t>(file.size(), 6));
  for (;;) {
    TRY(need, npy::need(prefix, file.size()));
    if (need == 0) break;
    prefix = piece(file, 0, prefix.size() + 1 + random() % (need - prefix.size()));
  }
  TRY(tensor, npy::read_tensor(prefix, file.size()));
  CHECK(tensor.begin <= tensor.end);
  CHECK(tensor.end == file.size());
  return {};
}

/// `names`: of stored and deflated arrays.
Status read_npz(const std::vector<uint8_t>& file, std::mt19937& random, List<std::string>& names) {
  npz::Reader reader(file.size());
  while (reader.need().bytes != 0) {
    const Need need = reader.need();
    const uint64_t left = file.size() - need.offset;
    const uint64_t more = need.bytes + random() % (left - need.bytes + 1);
    TRY_VOID(reader.feed(piece(file, need.offset, more)));
  }
  for (const StoredTensor& tensor : reader.tensors()) {
    CHECK(tensor.begin <= tensor.end);
    CHECK(tensor.end <= file.size());
    names.push_back(tensor.name);
  }
  for (const DeflatedFile& entry : reader.deflated()) {
    CHECK(entry.begin <= entry.end);
    CHECK(entry.end <= file.size());
    CHECK(entry.bytes <= npz::kMaxInflatedBytes);
    names.push_back(entry.name.substr(0, entry.name.size() - 4));
  }
  return {};
}

void hostile_numpy_check_case(const json::Value& expected, std::mt19937& random) {
  const std::string name = expected["file"].as_string();
  CAPTURE(name);
  const auto file = test_files::file_bytes("files/hostile_numpy/" + name);
  const bool is_archive = name.ends_with(".npz");
  List<std::string> names;
  const Status read = is_archive ? read_npz(file, random, names) : read_npy(file, random);
  if (expected["ok"].as_bool() || expected["inflated"].as_bool()) {
    if (!read) FAIL_CHECK(read.error().where, ": ", read.error().message);
    if (!is_archive || !expected["ok"].as_bool()) return;
    REQUIRE(names.size() == expected["tensors"].items().size());
    for (size_t i = 0; i < names.size(); ++i) CHECK(names[i] == expected["tensors"].items()[i].as_string());
    return;
  }
  REQUIRE_FALSE(bool(read));
  const Error& error = read.error();
  CHECK(name_of(error.code) == expected["code"].as_string());
  CHECK_MESSAGE(error.message.find(expected["message_contains"].as_string()) != std::string::npos, error.message);
  CHECK_MESSAGE(error.where.find(expected["where_contains"].as_string()) != std::string::npos, error.where);
  CHECK(error.where.size() < 256);
  CHECK(error.message.size() < 1024);
}

}  // namespace

TEST_CASE("hostile NumPy files: every case gets the answer that expected.json states") {
  const auto cases = json::parse(test_files::file_text("files/hostile_numpy/expected.json"));
  REQUIRE(cases);
  REQUIRE(cases->items().size() >= 100);
  std::mt19937 random(1);
  for (const json::Value& expected : cases->items())
    for (int round = 0; round < 3; ++round) hostile_numpy_check_case(expected, random);
}
