#include "formats/format.h"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

using namespace wasmquant;

namespace {

std::string_view format_named_by(std::string_view name, const std::vector<uint8_t>& prefix) {
  return format_of(name, prefix).name;
}

}  // namespace

TEST_CASE("formats: each name and extension belongs to one format") {
  std::set<std::string_view> names, extensions;
  for (const Format* const format : formats()) {
    CHECK(names.insert(format->name).second);
    REQUIRE_FALSE(format->extensions.empty());
    for (const std::string_view extension : format->extensions) {
      CHECK(extension.starts_with('.'));
      CHECK(extensions.insert(extension).second);
    }
    CHECK_FALSE(format->looks_like({}));
  }
}

TEST_CASE("formats: first bytes say more than a name, and a name more than nothing") {
  const std::vector<uint8_t> header = {9, 0, 0, 0, 0, 0, 0, 0, '{'}, gguf = {'G', 'G', 'U', 'F', 3},
                             zip = {'P', 'K', 3, 4}, array = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0},
                             graph = {8, 8, 18, 3, 'a', 'b', 'c', 58, '{'};
  CHECK(format_named_by("a.gguf", header) == "safetensors");
  CHECK(format_named_by("a.onnx", gguf) == "gguf");
  CHECK(format_named_by("a.gguf", zip) == "npy");
  CHECK(format_named_by("a", array) == "npy");
  CHECK(format_named_by("a.safetensors", graph) == "onnx");
  CHECK(format_named_by("A.GGUF", {}) == "gguf");
  CHECK(format_named_by("a.npz", {0}) == "npy");
  CHECK(format_named_by(".onnx", {}) == "onnx");
  CHECK(format_named_by("onnx", {}) == "safetensors");
  CHECK(format_named_by("a.bin", {1, 2, 3}) == "safetensors");
}

TEST_CASE("formats: a reader asks for what it lacks, and never for bytes beyond the end of the file") {
  const std::vector<uint8_t> file = {2, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
  const Format& format = format_of("a", file);
  const auto reader = format.open({"a", file.size(), std::span(file).first(3)});
  REQUIRE(bool(reader->feed(std::span(file).first(3))));
  for (Need need = reader->need(); need.bytes != 0; need = reader->need()) {
    CHECK(need.offset == 0);
    REQUIRE(need.bytes > 3);
    REQUIRE(need.bytes <= file.size());
    REQUIRE(bool(reader->feed(std::span(file).first(need.bytes))));
  }
  const auto index = reader->finish();
  REQUIRE(bool(index));
  CHECK(index->tensors.empty());
  const auto cut = format.open({"a", 9, file});
  CHECK(cut->feed(std::span(file).first(9)).error().code == ErrorCode::file_truncated);
}
