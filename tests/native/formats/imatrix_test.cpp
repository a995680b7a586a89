// Importance matrices: both formats, back and forth, and what is wrong with a file.
#include "formats/gguf/imatrix.h"

#include <doctest/doctest.h>

#include "formats/gguf_bytes.h"

using namespace wasmquant;
using test_files::bytes_of;
using test_files::GgufBytes;

namespace {

struct Dat : GgufBytes {
  Dat& i32(int32_t value) { return number(value), *this; }
  Dat& f32(float value) { return number(value), *this; }
  Dat& name(std::string_view value) {
    i32(static_cast<int32_t>(value.size()));
    out += value;
    return *this;
  }
};

// Sums and counts of one weight, after the keys of an importance matrix.
std::string gguf_file(const std::vector<float>& sums, const std::vector<float>& counts, int32_t type = 0,
                      std::string_view kind = "imatrix") {
  GgufBytes file;
  file.begin(2, 2).text("general.type").number<uint32_t>(8).text(kind).key_u32("imatrix.chunk_count", 3);
  const auto rows = static_cast<int64_t>(counts.size()), values = static_cast<int64_t>(sums.size());
  file.tensor("blk.0.a.weight.in_sum2", {values}, 0, 0);
  const uint64_t second = (sums.size() * 4 + 31) / 32 * 32;
  file.tensor("blk.0.a.weight.counts", {rows}, type, second).data(0);
  for (const float sum : sums) file.number(sum);
  file.data(0);
  for (const float count : counts) file.number(count);
  return file.data(0).out;
}

void imatrix_check_refused(const std::string& file, ErrorCode code, const char* message, const char* where) {
  CAPTURE(message);
  const auto matrix = imatrix::read(bytes_of(file));
  REQUIRE_FALSE(matrix);
  CHECK_MESSAGE(name_of(matrix.error().code) == name_of(code), matrix.error().message);
  CHECK_MESSAGE(matrix.error().message.find(message) != std::string::npos, matrix.error().message);
  CHECK_MESSAGE(matrix.error().where.find(where) != std::string::npos, matrix.error().where);
}

}  // namespace

TEST_CASE("imatrix: sums over counts; an expert that saw nothing weighs 1") {
  const auto matrix = imatrix::read(bytes_of(gguf_file({6, 3, 7, 7}, {3, 0})));
  REQUIRE(matrix);
  CHECK(matrix->chunks == 3);
  REQUIRE(matrix->find("blk.0.a.weight") != nullptr);
  CHECK(matrix->find("blk.0.a.weight")->means() == std::vector<float>{2, 1, 1, 1});
  CHECK(matrix->find("blk.0.b.weight") == nullptr);
}

TEST_CASE("imatrix: .dat files of every version") {
  Dat file;
  file.i32(2).name("a").i32(4).i32(2).f32(2).f32(1).name("b").i32(0).i32(1).f32(5);
  for (const int age : {0, 1, 2}) {
    CAPTURE(age);
    if (age == 1) file.i32(9);
    if (age == 2) file.name("text.txt");
    const auto matrix = imatrix::read(bytes_of(file.out));
    REQUIRE(matrix);
    CHECK(matrix->find("a")->means() == std::vector<float>{0.5f, 0.25f});
    CHECK(matrix->find("b")->means() == std::vector<float>{5});
    CHECK(matrix->chunks == (age > 0 ? 9 : 0));
    CHECK(matrix->dataset == (age > 1 ? "text.txt" : ""));
  }
}

TEST_CASE("imatrix: written files read back, .dat as exactly as its chunk counts allow") {
  imatrix::Matrix matrix;
  matrix.dataset = "t";
  matrix.chunks = 2;
  matrix.chunk_size = 64;
  for (const char* name : {"blk.0.a.weight", "blk.1.a.weight"}) {
    imatrix::WeightImportance& entry = matrix.entries.emplace_back();
    entry.name = name;
    entry.counts = {100};
    for (int i = 0; i < 33; ++i) entry.sums.push_back(0.37f * static_cast<float>(i));
  }
  for (const imatrix::FileFormat format : {imatrix::FileFormat::gguf, imatrix::FileFormat::dat}) {
    const auto file = imatrix::write(matrix, format);
    REQUIRE(file);
    const auto again = imatrix::read(bytes_of(*file));
    REQUIRE(again);
    CHECK(again->dataset == "t");
    CHECK(again->chunks == 2);
    REQUIRE(again->entries.size() == 2);
    for (size_t e = 0; e < 2; ++e) CHECK(again->entries[e].means() == matrix.entries[e].means());  // 2 chunks: a power
  }
}

TEST_CASE("imatrix: wrong files are refused with their place") {
  imatrix_check_refused(gguf_file({1}, {1}, 0, "model"), ErrorCode::file_invalid, "not an importance matrix",
                        "general.type");
  imatrix_check_refused(gguf_file({1}, {1, 1}), ErrorCode::file_invalid, "1 sums do not match 2 counts",
                        "blk.0.a.weight");
  imatrix_check_refused(gguf_file({1}, {1}, 26), ErrorCode::dtype_unsupported, "F32", "blk.0.a.weight");
  imatrix_check_refused(gguf_file({1, -1}, {1}), ErrorCode::value_not_finite, "column 1", "blk.0.a.weight");
  imatrix_check_refused(gguf_file({1, INFINITY}, {1}), ErrorCode::value_not_finite, "column 1", "blk.0.a.weight");
  imatrix_check_refused(gguf_file({1}, {NAN}), ErrorCode::value_not_finite, "column 0", "counts");
  GgufBytes alone;
  alone.begin(1, 1).text("general.type").number<uint32_t>(8).text("imatrix").tensor("a.in_sum2", {8}, 0, 0).data(32);
  imatrix_check_refused(alone.out, ErrorCode::tensor_missing, "a.in_sum2", "a.counts");
  GgufBytes none;
  none.begin(0, 1).text("general.type").number<uint32_t>(8).text("imatrix").data(0);
  imatrix_check_refused(none.out, ErrorCode::file_invalid, "no weight", "");

  imatrix_check_refused("", ErrorCode::file_truncated, "number of weights", "byte 0");
  imatrix_check_refused(Dat().i32(0).out, ErrorCode::file_invalid, "no weight", "");
  imatrix_check_refused(Dat().i32(-1).out, ErrorCode::file_invalid, "neither a GGUF file", "byte 0");
  imatrix_check_refused(Dat().i32(1 << 30).name("a").i32(1).i32(1).f32(1).out, ErrorCode::file_invalid, "1073741824",
                        "byte 0");
  const auto one = [] { return Dat().i32(1); };
  imatrix_check_refused(Dat(one()).i32(100).out + std::string(50, 'a'), ErrorCode::file_invalid, "length of a name",
                        "byte 4");
  imatrix_check_refused(Dat(one()).i32(64).out + std::string(90, 'a'), ErrorCode::file_invalid, "64 bytes", "byte 8");
  imatrix_check_refused(Dat(one()).name("a").i32(1).i32(INT32_MAX).f32(1).out, ErrorCode::file_invalid, "columns",
                        "byte 13");
  imatrix_check_refused(Dat(one()).name("abcde").i32(1).i32(0).out, ErrorCode::file_invalid, "no columns", "abcde");
  imatrix_check_refused(Dat(one()).name("a").i32(1).i32(1).f32(NAN).out, ErrorCode::value_not_finite, "column 0", "a");
  Dat twice;
  twice.i32(2).name("a").i32(1).i32(1).f32(1).name("a").i32(1).i32(1).f32(1);
  imatrix_check_refused(twice.out, ErrorCode::tensor_duplicate, "twice", "a");
  imatrix_check_refused(Dat(one()).name("a").i32(1).i32(1).f32(1).i32(1).i32(7).out, ErrorCode::file_invalid, "path",
                        "byte 25");
}
