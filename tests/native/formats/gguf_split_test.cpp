#include "formats/gguf/gguf_split.h"

#include <doctest/doctest.h>

using namespace wasmquant;

namespace {

FileIndex file_of(std::vector<const char*> names, gguf::Metadata metadata) {
  FileIndex index;
  for (const char* name : names) index.tensors.emplace_back().name = name;
  auto details = std::make_shared<gguf::FileMetadata>();
  details->metadata = std::move(metadata);
  index.details = std::move(details);
  return index;
}

FileIndex part(uint16_t number, uint16_t count, std::vector<const char*> names, int32_t tensors = 3) {
  gguf::Metadata metadata;
  metadata.set_u16("split.no", number);
  metadata.set_u16("split.count", count);
  metadata.set_i32("split.tensors.count", tensors);
  FileIndex index = file_of(std::move(names), std::move(metadata));
  index.part = {number + 1u, count, {}};
  return index;
}

void gguf_split_check_refused(std::vector<FileIndex> parts, ErrorCode code, const char* message) {
  const auto status = gguf::check_parts(parts);
  REQUIRE_FALSE(status);
  CHECK(name_of(status.error().code) == name_of(code));
  CHECK_MESSAGE(status.error().message.find(message) != std::string::npos, status.error().message);
}

}  // namespace

TEST_CASE("gguf parts: what the split keys say") {
  const auto keys = [](std::optional<uint16_t> number, std::optional<uint16_t> count) {
    gguf::Metadata metadata;
    if (number) metadata.set_u16("split.no", *number);
    if (count) metadata.set_u16("split.count", *count);
    return gguf::part_of(metadata);
  };
  CHECK(keys(2, 3)->number == 3);
  CHECK(keys(2, 3)->count == 3);
  CHECK(keys({}, {})->count == 1);
  CHECK(keys(0, 1)->count == 1);
  CHECK(keys(4, 0)->count == 1);
  CHECK_FALSE(keys(3, 3));
  CHECK_FALSE(keys({}, 3));
}

TEST_CASE("gguf parts: several files are one model") {
  CHECK(gguf::check_parts(std::vector{part(0, 2, {"a", "b"}), part(1, 2, {"c"})}));
  gguf_split_check_refused({part(0, 3, {"a", "b"}), part(1, 3, {"c"})}, ErrorCode::file_invalid,
                           "split.count 3, but 2 files");
  gguf_split_check_refused({part(0, 2, {"a"}), part(1, 2, {"c"})}, ErrorCode::tensor_missing,
                           "should have 3 tensors, but its parts have 2");
  gguf_split_check_refused({part(0, 2, {"a", "b"}), part(1, 2, {"a"})}, ErrorCode::tensor_duplicate, "in two parts");
  gguf_split_check_refused({file_of({}, {}), part(0, 2, {"a"})}, ErrorCode::file_invalid, "split.count 1");
}

TEST_CASE("gguf parts: tensors are split by size") {
  std::vector<gguf::NewTensor> tensors;
  for (const uint64_t elements : {8, 8, 100, 8, 8, 8}) tensors.push_back({"t", GgmlType::f32, {elements}});
  CHECK(*gguf::split_by_size(tensors, 32, 64) == List<uint32_t>{0, 2, 3, 5});
  CHECK(*gguf::split_by_size(tensors, 32, 1000) == List<uint32_t>{0});
  CHECK(*gguf::split_by_size(tensors, 32, 0) == List<uint32_t>{0, 1, 2, 3, 4, 5});
  CHECK(gguf::split_by_size({}, 32, 64)->empty());
}

TEST_CASE("gguf parts: the largest of a number of parts is as small as it can be") {
  std::vector<gguf::NewTensor> tensors;
  for (const uint64_t elements : {8, 8, 100, 8, 8, 8}) tensors.push_back({"t", GgmlType::f32, {elements}});
  CHECK(*gguf::split_in_parts(tensors, 32, 1) == List<uint32_t>{0});
  CHECK(*gguf::split_in_parts(tensors, 32, 2) == List<uint32_t>{0, 3});
  CHECK(*gguf::split_in_parts(tensors, 32, 3) == List<uint32_t>{0, 2, 3});
  CHECK(*gguf::split_in_parts(tensors, 32, 9) == List<uint32_t>{0, 2, 3});
  CHECK(gguf::split_in_parts({}, 32, 3)->empty());
}

TEST_CASE("gguf parts: the first carries the metadata") {
  gguf::Metadata model;
  model.set_text("general.architecture", "llama");
  model.set_u32("general.alignment", 64);
  const gguf::Metadata first = gguf::part_metadata(model, 0, 2, 5), second = gguf::part_metadata(model, 1, 2, 5);
  CHECK(first.entries().size() == 5);
  CHECK(second.entries().size() == 4);
  CHECK(second.find_count("split.no") == 1);
  CHECK(second.find_count("split.tensors.count") == 5);
  CHECK(second.find_count("general.alignment") == 64);
  gguf::Metadata again = first;
  gguf::erase_split_keys(again);
  CHECK(again.entries().size() == 2);
}
