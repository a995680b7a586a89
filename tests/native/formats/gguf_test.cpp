// GGUF headers: read in pieces, written, and refused with the place of the mistake.
#include "formats/gguf/gguf.h"

#include <doctest/doctest.h>

#include "formats/gguf_bytes.h"
#include "formats/read_file.h"

using namespace wasmquant;
using test_files::bytes_of;
using test_files::GgufBytes;

namespace {

Result<gguf::Index> gguf_read(const std::string& file) { return gguf::read_index(bytes_of(file), file.size()); }

// Refused with that code; message and where contain the texts; the same when fed in pieces.
void gguf_check_refused(const std::string& file, ErrorCode code, const char* message, const char* where) {
  CAPTURE(message);
  std::mt19937 random(1);
  const auto index = gguf_read(file), pieces = test_files::read_gguf_in_pieces(file, random);
  REQUIRE_FALSE(index);
  REQUIRE_FALSE(pieces);
  CHECK_MESSAGE(name_of(index.error().code) == name_of(code), index.error().message);
  CHECK_MESSAGE(index.error().message.find(message) != std::string::npos, index.error().message);
  CHECK_MESSAGE(index.error().where.find(where) != std::string::npos, index.error().where);
  CHECK(pieces.error().code == index.error().code);
  CHECK(pieces.error().message == index.error().message);
  CHECK(pieces.error().where == index.error().where);
}

constexpr auto kInvalid = ErrorCode::file_invalid;
constexpr auto kTruncated = ErrorCode::file_truncated;
constexpr auto kTooLarge = ErrorCode::file_too_large;

// One key called "k" whose value is what `value` appends after the type.
template <class Value>
std::string one_key(uint32_t type, const Value& value) {
  GgufBytes file;
  file.begin(0, 1).text("k").number(type);
  value(file);
  return file.out;
}
std::string one_tensor(std::string_view name, std::vector<int64_t> dimensions, int32_t type, size_t data_bytes = 64,
                       uint64_t offset = 0) {
  return GgufBytes().begin(1, 0).tensor(name, std::move(dimensions), type, offset).data(data_bytes).out;
}

}  // namespace

TEST_CASE("gguf: a header is read, in one piece and in many") {
  GgufBytes file;
  file.begin(2, 3).key_u32("general.alignment", 64).text("name").number<uint32_t>(8).text("tiny");
  file.text("list").number<uint32_t>(9).number<uint32_t>(8).number<uint64_t>(2).text("a").text("");
  file.tensor("w", {32, 3}, 2, 0).tensor("b", {5}, 0, 64).data(64 + 20, 64);
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    const auto index = test_files::read_gguf_in_pieces(file.out, random);
    REQUIRE(index);
    CHECK(index->version == 3);
    CHECK(index->alignment == 64);
    CHECK(index->metadata.find_text("name") == "tiny");
    gguf::ArrayView list(index->metadata.find("list"));
    REQUIRE(list.count() == 2);
    CHECK(list.next_text() == "a");
    CHECK(list.next_text().empty());
    REQUIRE(index->tensors.size() == 2);
    const gguf::Tensor &w = index->tensors[0], &b = index->tensors[1];
    CHECK(w.name == "w");
    CHECK(w.type == GgmlType::q4_0);
    CHECK(w.shape == std::vector<uint64_t>{3, 32});
    CHECK(w.end - w.begin == 3 * 18);
    CHECK(w.begin % 64 == 0);
    CHECK(b.begin == w.begin + 64);
    CHECK(b.end == file.out.size());
  }
}

TEST_CASE("gguf: what llama.cpp accepts is accepted") {
  CHECK(gguf_read(GgufBytes().begin(0, 0).out));
  CHECK(gguf_read(GgufBytes().begin(0, 0, 2).out));                               // version 2
  CHECK(gguf_read(one_tensor("w", {4}, 0, 64)));                                  // bytes after the last tensor
  CHECK(gguf_read(GgufBytes().begin(1, 0).tensor("w", {4}, 0, 0).data(16).out));  // no padding after it
  CHECK(gguf_read(one_tensor("scalar", {}, 0)));                                  // no dimensions
  CHECK(gguf_read(one_tensor("none", {0, 7}, 2, 0)));                             // no elements
  CHECK(gguf_read(one_key(9, [](GgufBytes& f) { f.number<uint32_t>(8).number<uint64_t>(0); })));
  CHECK(gguf_read(one_key(8, [](GgufBytes& f) { f.text("\xFF\xFE"); })));  // values need not be UTF-8
}

TEST_CASE("gguf: the fixed part") {
  gguf_check_refused("", kTruncated, "the file has 0", "byte 0");
  gguf_check_refused("GGUF\3\0\0", kTruncated, "at least 24 bytes", "byte 0");
  gguf_check_refused(std::string(40, 'x'), ErrorCode::format_unknown, "letters GGUF", "byte 0");
  gguf_check_refused(GgufBytes().begin(0, 0, 1).out, kInvalid, "version 1", "byte 4");
  gguf_check_refused(GgufBytes().begin(0, 0, 4).out, kInvalid, "version 4", "byte 4");
  gguf_check_refused(GgufBytes().begin(0, 0, 0).out, kInvalid, "version 0", "byte 4");
  gguf_check_refused(GgufBytes().begin(0, 0, 0x03000000).out, kInvalid, "big-endian", "byte 4");
  gguf_check_refused(GgufBytes().begin(-1, 0).out, kInvalid, "is negative", "byte 8");
  gguf_check_refused(GgufBytes().begin(0, -1).out, kInvalid, "is negative", "byte 16");
  gguf_check_refused(GgufBytes().begin(int64_t{1} << 40, 0).out, kTooLarge, "the limit is 10000000", "byte 8");
  gguf_check_refused(GgufBytes().begin(0, 100'001).out, kTooLarge, "the limit is 100000", "byte 16");
  gguf_check_refused(GgufBytes().begin(1000, 0).out, kTruncated, "a count of 1000 does not fit", "byte 8");
  gguf_check_refused(GgufBytes().begin(0, 1000).out, kTruncated, "a count of 1000 does not fit", "byte 16");
}

TEST_CASE("gguf: keys") {
  const auto padded = [](GgufBytes file) { return file.data(64).out; };
  gguf_check_refused(padded(GgufBytes().begin(0, 1).text("").number<uint32_t>(4).number<uint32_t>(1)), kInvalid,
                     "is empty", "byte 24");
  gguf_check_refused(padded(GgufBytes().begin(0, 1).text("\xC3(").number<uint32_t>(4)), kInvalid, "not valid UTF-8",
                     "byte 24");
  gguf_check_refused(padded(GgufBytes().begin(0, 1).number<uint64_t>(70'000)), kTooLarge, "the limit is 65535",
                     "byte 24");
  gguf_check_refused(padded(GgufBytes().begin(0, 1).number<uint64_t>(60'000)), kTruncated, "a text of 60000 bytes",
                     "byte 24");
  gguf_check_refused(GgufBytes().begin(0, 2).key_u32("twice", 1).key_u32("twice", 2).out, kInvalid, "appears twice",
                     "twice");
}

TEST_CASE("gguf: values") {
  gguf_check_refused(one_key(13, [](GgufBytes& f) { f.data(64); }), kInvalid, "value type 13", "k");
  gguf_check_refused(one_key(4, [](GgufBytes& f) { f.number<uint16_t>(0); }), kTruncated,
                     "needs 4 more bytes, but the file has 2 (byte 37)", "k");
  gguf_check_refused(one_key(8, [](GgufBytes& f) { f.number<uint64_t>(1 << 20); }), kTruncated,
                     "a text of 1048576 bytes", "k");
  gguf_check_refused(one_key(8, [](GgufBytes& f) { f.number<uint64_t>(~uint64_t{0}); }), kTooLarge,
                     "the limit is 10485760 (byte 37)", "k");
  const auto array = [](uint32_t type, uint64_t count) {
    return one_key(9, [=](GgufBytes& f) { f.number(type).number(count).data(64); });
  };
  gguf_check_refused(array(9, 1), kInvalid, "an array of arrays", "k");
  gguf_check_refused(array(99, 1), kInvalid, "value type 99", "k");
  gguf_check_refused(array(4, (1 << 20) + 1), kTooLarge, "1048577 items", "k");
  gguf_check_refused(array(4, uint64_t{1} << 62), kTooLarge, "items; the limit is 1048576", "k");
  gguf_check_refused(array(4, 1000), kTruncated, "1000 items does not fit", "k");
  gguf_check_refused(array(8, 1000), kTruncated, "1000 items does not fit", "k");
  gguf_check_refused(array(10, 1 << 20), kTruncated, "1048576 items does not fit", "k");
}

TEST_CASE("gguf: the alignment") {
  const auto with = [](uint32_t value) { return GgufBytes().begin(0, 1).key_u32("general.alignment", value).out; };
  gguf_check_refused(with(0), kInvalid, "a power of two, found 0", "general.alignment");
  gguf_check_refused(with(48), kInvalid, "a power of two, found 48", "general.alignment");
  gguf_check_refused(GgufBytes().begin(0, 1).text("general.alignment").number<uint32_t>(8).text("32").out, kInvalid,
                     "must be a u32, found text", "general.alignment");
  CHECK(gguf_read(with(1)));
  CHECK(gguf_read(with(1u << 31)));
}

TEST_CASE("gguf: names and shapes of tensors") {
  gguf_check_refused(one_tensor("", {4}, 0), kInvalid, "not empty", "byte 24");
  gguf_check_refused(one_tensor(std::string("a\0b", 3), {4}, 0), kInvalid, "without NUL", "byte 24");
  gguf_check_refused(one_tensor("\xFF", {4}, 0), kInvalid, "valid UTF-8", "byte 24");
  gguf_check_refused(one_tensor(std::string(64, 'n'), {4}, 0), kTooLarge,
                     "has 64 bytes; GGUF readers accept at most 63 (byte 24)", "nnnn");
  CHECK(gguf_read(one_tensor(std::string(63, 'n'), {4}, 0)));
  gguf_check_refused(GgufBytes().begin(2, 0).tensor("w", {4}, 0, 0).tensor("w", {4}, 0, 32).data(64).out,
                     ErrorCode::tensor_duplicate, "appears twice", "w");
  gguf_check_refused(one_tensor("w", {1, 1, 1, 1, 1}, 0), kInvalid, "5 dimensions; the limit is 4", "w");
  gguf_check_refused(GgufBytes().begin(1, 0).text("w").number<uint32_t>(0xFFFFFFFF).data(64).out, kInvalid,
                     "4294967295 dimensions", "w");
  gguf_check_refused(one_tensor("w", {-1}, 0), kInvalid, "dimension 0 is not in 0 to 4294967296", "w");
  gguf_check_refused(one_tensor("w", {4, (int64_t{1} << 32) + 1}, 0), kInvalid, "dimension 1 is not in 0", "w");
  // Products that wrap to something small: 2^32 * 2^32, and 2^62 elements of 4 bytes.
  gguf_check_refused(one_tensor("w", {int64_t{1} << 32, int64_t{1} << 32}, 0), kTooLarge, "2^63 elements or more", "w");
  gguf_check_refused(one_tensor("w", {int64_t{1} << 31, int64_t{1} << 31}, 0), kTooLarge, "2^63 bytes or more", "w");
}

TEST_CASE("gguf: types and offsets of tensors") {
  for (const int32_t removed : {4, 5, 31, 32, 33, 36, 37, 38, 43, 1000, -1})
    gguf_check_refused(one_tensor("w", {256}, removed), ErrorCode::dtype_unsupported, "unknown or was removed", "w");
  gguf_check_refused(one_tensor("w", {33}, 2), ErrorCode::format_unsupported, "rows of 33 elements", "w");
  gguf_check_refused(one_tensor("w", {32, 256}, 12), ErrorCode::format_unsupported, "q4_k blocks of 256", "w");
  gguf_check_refused(one_tensor("w", {4}, 0, 64, 32), kInvalid,
                     "its data offset is 32, but the tensor before it ends at 0", "w");
  gguf_check_refused(GgufBytes().begin(2, 0).tensor("a", {4}, 0, 0).tensor("b", {4}, 0, 16).data(64).out, kInvalid,
                     "its data offset is 16, but the tensor before it ends at 32", "b");
  gguf_check_refused(one_tensor("w", {5}, 0, 19), kTruncated, "its 20 bytes from byte 64 on are not all in the file",
                     "w");
  gguf_check_refused(one_tensor("w", {1 << 30, 1 << 30}, 0, 19), kTruncated, "not all in the file", "w");
}

TEST_CASE("gguf: the reader requests little at first and grows fast") {
  GgufBytes file;
  file.begin(0, 1).text("tokens").number<uint32_t>(9).number<uint32_t>(8).number<uint64_t>(200'000);
  for (int i = 0; i < 200'000; ++i) file.text("token " + std::to_string(i));
  int rounds = 0;
  uint64_t have = 0, fed = 0;
  for (;; ++rounds) {
    const auto need = gguf::need(bytes_of(file.out).first(have), file.out.size());
    REQUIRE(need);
    if (need->bytes == 0) break;
    have = need->bytes;
    fed += have;
  }
  CHECK(rounds <= 5);
  CHECK(fed < 2 * file.out.size());
  CHECK(gguf::need({}, 1 << 30)->bytes == 65536);
  CHECK(gguf::need({}, 100)->bytes == 100);
}

TEST_CASE("gguf: what is written is read again, metadata to the byte") {
  gguf::Metadata metadata;
  metadata.set_text("general.architecture", "llama");
  metadata.set_u32("general.alignment", 128);
  metadata.set_f32("eps", 1e-5f);
  metadata.set_bool("flag", true);
  gguf::ArrayBuilder scores(gguf::ValueType::f32);
  for (int i = 0; i < 100; ++i) scores.add_f32(static_cast<float>(i) / 3);
  metadata.set(std::move(scores).finish("scores"));
  const std::vector<gguf::NewTensor> tensors = {{"a", GgmlType::q6_k, {3, 512}},
                                                {"b", GgmlType::f32, {}},
                                                {"c", GgmlType::iq4_nl, {2, 3, 64}},
                                                {"d", GgmlType::f16, {0}}};
  const auto header = gguf::write_header(metadata, tensors);
  REQUIRE(header);
  CHECK(header->bytes.size() % 128 == 0);
  CHECK(header->file_bytes == header->bytes.size() + 1280 + 128 + 256);
  std::string file = header->bytes;
  file.resize(header->file_bytes);
  const auto index = gguf_read(file);
  REQUIRE(index);
  REQUIRE(index->tensors.size() == tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    CHECK(index->tensors[i].name == tensors[i].name);
    CHECK(index->tensors[i].type == tensors[i].type);
    CHECK(index->tensors[i].shape == tensors[i].shape);
    CHECK(index->tensors[i].begin == header->offsets[i]);
  }
  const auto again = gguf::write_header(index->metadata, tensors);
  REQUIRE(again);
  CHECK(again->bytes == header->bytes);
}

TEST_CASE("gguf: metadata is found and changed by key") {
  gguf::Metadata metadata;
  metadata.set_u16("number", 7);
  metadata.set_i32("negative", -7);
  metadata.set_f32("real", 0.5f);
  metadata.set_text("text", "words");
  gguf::ArrayBuilder heads(gguf::ValueType::i32);
  heads.add_i32(8);
  heads.add_i32(4);
  metadata.set(std::move(heads).finish("heads"));
  CHECK(metadata.find_count("number") == 7);
  CHECK_FALSE(metadata.find_count("negative"));
  CHECK_FALSE(metadata.find_count("real"));
  CHECK_FALSE(metadata.find_count("text"));
  CHECK_FALSE(metadata.find_count("absent"));
  CHECK(metadata.find_count("heads") == 8);
  CHECK(metadata.find_number("negative") == -7);
  CHECK(metadata.find_number("real") == 0.5);
  CHECK_FALSE(metadata.find_number("text"));
  CHECK_FALSE(metadata.find_text("number"));
  gguf::ArrayView view(metadata.find("heads"));
  CHECK(view.next_number() == 8);
  CHECK(view.next_number() == 4);
  CHECK(gguf::ArrayView(metadata.find("text")).count() == 0);
  metadata.set_u32("number", 9);
  CHECK(metadata.entries().size() == 5);
  CHECK(metadata.entries()[0].key == "number");
  metadata.erase("negative");
  metadata.erase("absent");
  CHECK(metadata.entries().size() == 4);
  CHECK(metadata.entries()[1].key == "real");
}

TEST_CASE("gguf: what cannot be written is refused") {
  const auto refused = [](std::vector<gguf::NewTensor> tensors, ErrorCode code, const char* message) {
    const auto header = gguf::write_header({}, tensors);
    REQUIRE_FALSE(header);
    CHECK(name_of(header.error().code) == name_of(code));
    CHECK_MESSAGE(header.error().message.find(message) != std::string::npos, header.error().message);
  };
  refused({{"", GgmlType::f32, {1}}}, kInvalid, "1 to 63 bytes");
  refused({{std::string(64, 'n'), GgmlType::f32, {1}}}, kInvalid, "this one has 64");
  refused({{"w", GgmlType::f32, {1, 1, 1, 1, 1}}}, kInvalid, "at most 4 dimensions");
  refused({{"w", GgmlType::f32, {1}}, {"w", GgmlType::f32, {1}}}, ErrorCode::tensor_duplicate, "have this name");
  refused({{"w", GgmlType::q4_k, {2, 128}}}, ErrorCode::format_unsupported, "rows of 128 elements");
  refused({{"w", GgmlType::f32, {uint64_t{1} << 32, uint64_t{1} << 31}}}, kTooLarge, "2^63 elements or more");
  refused({{"a", GgmlType::f32, {uint64_t{1} << 50}}, {"b", GgmlType::f32, {uint64_t{1} << 51}}}, kTooLarge,
          "the file would exceed");
  gguf::Metadata metadata;
  metadata.set_u32("general.alignment", 1u << 31);  // a header of 2 GiB
  CHECK_FALSE(gguf::write_header(metadata, {}));
  metadata.set_u32("general.alignment", 3);
  CHECK_FALSE(gguf::write_header(metadata, {}));
}
