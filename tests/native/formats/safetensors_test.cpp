// safetensors headers: pinned bytes, random entries, truncations and flipped bytes.
#include "formats/safetensors/safetensors.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "formats/read_file.h"

using namespace wasmquant;
using safetensors::TensorHeader;

namespace {

std::vector<uint8_t> file_of(const safetensors::Header& header) {
  std::vector<uint8_t> file(header.bytes.begin(), header.bytes.end());
  file.resize(static_cast<size_t>(header.file_bytes));
  return file;
}

std::vector<uint8_t> file_of(const std::string& header, size_t data_bytes) {
  std::vector<uint8_t> file(8 + header.size() + data_bytes);
  for (size_t i = 0; i < 8; ++i) file[i] = static_cast<uint8_t>(uint64_t{header.size()} >> (8 * i));
  std::copy(header.begin(), header.end(), file.begin() + 8);
  return file;
}

std::string random_name(std::mt19937& random) {
  static const std::string pieces[] = {"a", "model.",           "\"", "\\", "/", "\n", std::string(1, '\0'),
                                       "é", "\xF0\x9F\x98\x80", "_",  "~",  " "};
  std::string name;
  for (size_t n = random() % 6; n > 0; --n) name += pieces[random() % std::size(pieces)];
  return name;
}

List<TensorHeader> random_entries(std::mt19937& random) {
  List<TensorHeader> entries;
  for (size_t n = random() % 8; n > 0; --n) {
    TensorHeader entry{
        random_name(random), kStorageDtypes[random() % static_cast<size_t>(StorageDtype::ggml_f32)].dtype, {}};
    for (size_t rank = random() % 4; rank > 0; --rank) entry.shape.push_back(random() % 7);
    if (info_of(entry.dtype).bits < 8) entry.shape.push_back(4);  // whole bytes
    const auto same = [&](const TensorHeader& other) { return other.name == entry.name; };
    if (std::none_of(entries.begin(), entries.end(), same)) entries.push_back(entry);
  }
  return entries;
}

void check_error(const Result<safetensors::Header>& result, ErrorCode code, std::string_view where,
                 std::string_view message) {
  REQUIRE_FALSE(result);
  CHECK(result.error().code == code);
  CHECK(result.error().where == where);
  CHECK_MESSAGE(result.error().message.find(message) != std::string::npos, result.error().message);
}

}  // namespace

TEST_CASE("safetensors: header bytes are pinned") {
  const auto header =
      safetensors::write_header({{"b", StorageDtype::F32, {2, 3}}, {"a\"", StorageDtype::I8, {}}}, {{"k", "v"}});
  REQUIRE(header);
  const std::string json =
      R"({"__metadata__":{"k":"v","format":"pt"},"b":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("a\"":{"dtype":"I8","shape":[],"data_offsets":[24,25]}})";
  const size_t padded = (json.size() + 7) / 8 * 8;
  CHECK(header->bytes ==
        std::string{static_cast<char>(padded)} + std::string(7, '\0') + json + std::string(padded - json.size(), ' '));
  CHECK(header->offsets == std::vector<uint64_t>{8 + padded, 8 + padded + 24});
  CHECK(header->file_bytes == 8 + padded + 25);
}

TEST_CASE("safetensors: random entries survive write and read") {
  std::mt19937 random(4);
  for (int round = 0; round < 2'000; ++round) {
    const auto entries = random_entries(random);
    const List<std::pair<std::string, std::string>> metadata = {{"", random_name(random)}, {"format", "np"}};
    const auto header = safetensors::write_header(entries, metadata);
    REQUIRE(header);
    REQUIRE(header->bytes.size() % 8 == 0);
    const auto index = test_files::read_in_pieces(file_of(*header), random);
    if (!index) FAIL(index.error().where, ": ", index.error().message);
    REQUIRE(index->metadata == metadata);
    REQUIRE(index->tensors.size() == entries.size());
    for (size_t i = 0; i < entries.size(); ++i) {
      const auto found = std::find_if(index->tensors.begin(), index->tensors.end(),
                                      [&](const StoredTensor& tensor) { return tensor.name == entries[i].name; });
      REQUIRE(found != index->tensors.end());
      REQUIRE(found->dtype == entries[i].dtype);
      REQUIRE(found->shape == entries[i].shape);
      REQUIRE(found->begin == header->offsets[i]);
      REQUIRE(found->end - found->begin == *safetensors::tensor_bytes(entries[i].dtype, entries[i].shape, ""));
    }
    REQUIRE(std::is_sorted(index->tensors.begin(), index->tensors.end(),
                           [](const StoredTensor& a, const StoredTensor& b) { return a.begin < b.begin; }));
  }
}

TEST_CASE("safetensors: every truncation and every extra byte is refused") {
  std::mt19937 random(5);
  for (int round = 0; round < 40; ++round) {
    auto file = file_of(*safetensors::write_header(random_entries(random), {}));
    for (size_t size = 0; size < file.size(); ++size) {
      const std::vector<uint8_t> cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
      REQUIRE_FALSE(test_files::read_in_pieces(cut, random));
    }
    file.push_back(0);
    REQUIRE_FALSE(test_files::read_in_pieces(file, random));
  }
}

TEST_CASE("safetensors: flipped bytes never give an index that leaves the file") {
  std::mt19937 random(6);
  size_t accepted = 0, refused = 0;
  for (int round = 0; round < 200; ++round) {
    const auto header = safetensors::write_header(random_entries(random), {});
    const auto original = file_of(*header);
    for (int flip = 0; flip < 100; ++flip) {
      auto file = original;
      file[random() % header->bytes.size()] ^= static_cast<uint8_t>(1 + random() % 255);
      const auto index = test_files::read_in_pieces(file, random);
      ++(index ? accepted : refused);
      if (!index) continue;
      uint64_t covered = 0;
      for (const auto& tensor : index->tensors) {
        REQUIRE(tensor.begin <= tensor.end);
        REQUIRE(tensor.end <= file.size());
        REQUIRE(*safetensors::tensor_bytes(tensor.dtype, tensor.shape, "") == tensor.end - tensor.begin);
        covered += tensor.end - tensor.begin;
      }
      REQUIRE(covered == header->file_bytes - header->bytes.size());
    }
  }
  CHECK(accepted > 100);  // a changed letter of a name is no error
  CHECK(refused > 1'000);
}

TEST_CASE("safetensors: the reader requests first the length, then the header") {
  const auto header = safetensors::write_header({{"w", StorageDtype::U8, {100}}}, {});
  const auto file = file_of(*header);
  const std::span<const uint8_t> all(file);
  CHECK(safetensors::need({}, file.size())->bytes == 8);
  CHECK(safetensors::need(all.first(7), file.size())->bytes == 8);
  CHECK(safetensors::need(all.first(8), file.size())->bytes == header->bytes.size());
  CHECK(safetensors::need(all.first(header->bytes.size() - 1), file.size())->bytes == header->bytes.size());
  CHECK(safetensors::need(all.first(header->bytes.size()), file.size())->bytes == 0);
  CHECK(safetensors::need(all, file.size())->bytes == 0);
  const auto early = safetensors::read_index(all.first(20), file.size());
  REQUIRE_FALSE(early);
  CHECK(early.error().code == ErrorCode::file_truncated);
  CHECK(early.error().where == "byte 20");
}

TEST_CASE("safetensors: a file above 2^32 bytes keeps exact offsets") {
  const auto header =
      safetensors::write_header({{"a", StorageDtype::F32, {1u << 20, 3000}}, {"b", StorageDtype::U8, {3}}}, {});
  REQUIRE(header);
  const std::vector<uint8_t> prefix(header->bytes.begin(), header->bytes.end());
  const auto index = safetensors::read_index(prefix, header->file_bytes);
  REQUIRE(index);
  CHECK(index->tensors[1].begin == prefix.size() + 12'582'912'000u);
  CHECK(index->tensors[1].end == header->file_bytes);
}

TEST_CASE("safetensors: bytes of a tensor") {
  const auto bytes = [](StorageDtype dtype, std::vector<uint64_t> shape) {
    return safetensors::tensor_bytes(dtype, shape, "w");
  };
  CHECK(*bytes(StorageDtype::F32, {}) == 4);
  CHECK(*bytes(StorageDtype::F4, {5, 2}) == 5);
  CHECK(*bytes(StorageDtype::F6_E2M3, {4}) == 3);
  CHECK(*bytes(StorageDtype::C64, {2, 3}) == 48);
  CHECK(*bytes(StorageDtype::U8, {0, ~uint64_t{0}}) == 0);
  CHECK(*bytes(StorageDtype::U8, {(uint64_t{1} << 61) - 1}) == (uint64_t{1} << 61) - 1);
  CHECK_FALSE(bytes(StorageDtype::U8, {uint64_t{1} << 61}));
  CHECK_FALSE(bytes(StorageDtype::U8, {~uint64_t{0}, 2, 0}));
  const auto odd = bytes(StorageDtype::F4, {3});
  REQUIRE_FALSE(odd);
  CHECK(odd.error().where == "w");
  CHECK(odd.error().message == "12 bits of F4 do not fill whole bytes");
}

TEST_CASE("safetensors: all dtype names and the two aliases are read") {
  for (const auto& info : kStorageDtypes) {
    if (info.is_ggml()) continue;
    const std::string end = std::to_string(info.bits);
    const auto file =
        file_of("{\"w\":{\"dtype\":\"" + std::string(info.name) + "\",\"shape\":[8],\"data_offsets\":[0," + end + "]}}",
                info.bits);
    const auto index = safetensors::read_index(file, file.size());
    REQUIRE(index);
    CHECK(index->tensors[0].dtype == info.dtype);
  }
  const auto file = file_of(R"({"a":["FP4",[2],[0,1]],"b":["E8M0",[1],[1,2]]})", 2);
  const auto index = safetensors::read_index(file, file.size());
  REQUIRE(index);
  CHECK(index->tensors[0].dtype == StorageDtype::F4);
  CHECK(index->tensors[1].dtype == StorageDtype::F8_E8M0);
}

TEST_CASE("safetensors: entries that the writer refuses") {
  const TensorHeader w{"w", StorageDtype::F32, {2}};
  using safetensors::write_header;
  check_error(write_header({w, w}, {}), ErrorCode::tensor_duplicate, "w", "two tensors");
  check_error(write_header({{"__metadata__", StorageDtype::U8, {1}}}, {}), ErrorCode::file_invalid, "__metadata__",
              "metadata");
  check_error(write_header({{"a\xff", StorageDtype::U8, {1}}}, {}), ErrorCode::file_invalid, "a\xff", "UTF-8");
  check_error(write_header({w}, {{"a", "\xff"}}), ErrorCode::file_invalid, "__metadata__", "UTF-8");
  check_error(write_header({w}, {{"a", "1"}, {"a", "2"}}), ErrorCode::file_invalid, "__metadata__",
              "'a' is given twice");
  check_error(write_header({{"w", StorageDtype::F4, {3}}}, {}), ErrorCode::file_invalid, "w", "12 bits");
  check_error(write_header({{"w", StorageDtype::U8, {1ull << 40, 1ull << 40}}}, {}), ErrorCode::file_invalid, "w",
              "2^64");
  check_error(write_header({{"v", StorageDtype::U8, {1ull << 52}}, {"w", StorageDtype::U8, {1ull << 52}}}, {}),
              ErrorCode::file_invalid, "w", "would exceed");
  check_error(write_header({w}, {{"a", std::string(100'000'000, 'x')}}), ErrorCode::file_invalid, "",
              "the limit is 100000000");
}

TEST_CASE("safetensors: half a million tensors are read without a tree, a duplicate among them is found") {
  List<TensorHeader> entries;
  for (int i = 0; i < 500'000; ++i)
    entries.push_back({"model.layers." + std::to_string(i) + ".weight", StorageDtype::U8, {1, 2}});
  const auto header = safetensors::write_header(entries, {});
  REQUIRE(header);
  std::vector<uint8_t> prefix(header->bytes.begin(), header->bytes.end());
  const auto index = safetensors::read_index(prefix, header->file_bytes);
  REQUIRE(index);
  CHECK(index->tensors.size() == 500'000);
  CHECK(index->tensors.back().end == header->file_bytes);
  std::string text = header->bytes;
  text.replace(text.find("layers.123456.weight"), 20, "layers.123457.weight");
  prefix.assign(text.begin(), text.end());
  const auto twice = safetensors::read_index(prefix, header->file_bytes);
  REQUIRE_FALSE(twice);
  CHECK(twice.error().code == ErrorCode::tensor_duplicate);
  CHECK(twice.error().where == "model.layers.123457.weight");
}
