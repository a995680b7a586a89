#include "formats/safetensors/safetensors_index.h"

#include <doctest/doctest.h>

#include "core/json.h"

using namespace wasmquant;

TEST_CASE("shard map: files in order of their names, tensors in order of the text") {
  const auto map = safetensors::read_shard_map(
      R"({"metadata":{"total_size":5},"weight_map":{"z":"b.safetensors","a":"a.safetensors","y":"b.safetensors"}})");
  REQUIRE(map);
  CHECK(map->files == List<std::string>{"a.safetensors", "b.safetensors"});
  CHECK(map->tensors == List<std::pair<std::string, uint32_t>>{{"z", 1}, {"a", 0}, {"y", 1}});
}

TEST_CASE("shard map: text is pinned and reads back") {
  const std::string text =
      safetensors::write_shard_map({{"b", "2.safetensors"}, {"a\"", "1.safetensors"}}, ~uint64_t{0});
  CHECK(text ==
        "{\n  \"metadata\": {\n    \"total_size\": 18446744073709551615\n  },\n  \"weight_map\": {\n"
        "    \"b\": \"2.safetensors\",\n    \"a\\\"\": \"1.safetensors\"\n  }\n}\n");
  const auto map = safetensors::read_shard_map(text);
  REQUIRE(map);
  CHECK(map->tensors == List<std::pair<std::string, uint32_t>>{{"b", 1}, {"a\"", 0}});
  const std::string empty = safetensors::write_shard_map({}, 0);
  CHECK(json::write(*json::parse(empty)) == R"({"metadata":{"total_size":0},"weight_map":{}})");
  CHECK(safetensors::read_shard_map(empty)->tensors.empty());
}

TEST_CASE("shard map: other members of a model's index stay byte for byte") {
  const auto written = [](std::string_view text) {
    const auto map = safetensors::read_shard_map(text);
    REQUIRE(map);
    return safetensors::write_shard_map({{"a.q", "2"}, {"a.scale", "2"}}, 7, map->text);
  };
  CHECK(written("{\n\t\"metadata\": {\n\t\t\"total_parameters\": 1e09,\n\t\t\"total_size\": 32.0\n\t},\n"
                "\t\"weight_map\": {\n\t\t\"a\": \"1\"\n\t},\n\t\"by\": [12345678901234567890]\n}") ==
        "{\n\t\"metadata\": {\n\t\t\"total_parameters\": 1e09,\n\t\t\"total_size\": 7\n\t},\n"
        "\t\"weight_map\": {\n\t\t\"a.q\": \"2\",\n\t\t\"a.scale\": \"2\"\n\t},\n\t\"by\": [12345678901234567890]\n}");
  CHECK(written(R"({"weight_map": {"a": "1"}, "metadata": {}})") ==
        R"({"weight_map": {"a.q": "2", "a.scale": "2"}, "metadata": {"total_size": 7}})");
  CHECK(written(R"({"weight_map":{"a":"1"}})") ==
        R"({"weight_map":{"a.q":"2","a.scale":"2"},"metadata":{"total_size":7}})");
  CHECK(written(R"({"metadata":"none","weight_map":{}})") ==
        R"({"metadata":{"total_size":7},"weight_map":{"a.q":"2","a.scale":"2"}})");
}

TEST_CASE("shard map: 10,000 files are read, one more is refused") {
  List<std::pair<std::string, std::string>> entries;
  for (int i = 0; i < 10'000; ++i) entries.emplace_back("t" + std::to_string(i), std::to_string(i * 7919 % 10'000));
  entries.emplace_back("again", "42");
  const auto map = safetensors::read_shard_map(safetensors::write_shard_map(entries, 0));
  REQUIRE(map);
  CHECK(map->files.size() == 10'000);
  CHECK(map->files[map->tensors.back().second] == "42");
  entries.emplace_back("one more", "10000");
  const auto refused = safetensors::read_shard_map(safetensors::write_shard_map(entries, 0));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::file_invalid);
  CHECK(refused.error().where == "one more");
  CHECK(refused.error().message == "the index names more than 10000 files");
}

TEST_CASE("shard map: half a million names are read, a duplicate among them is found") {
  std::string text = R"({"weight_map":{)";
  for (int i = 0; i < 500'000; ++i)
    text += "\"model.layers." + std::to_string(i) + ".weight\":\"model-" + std::to_string(i % 50) + ".safetensors\",";
  const auto map = safetensors::read_shard_map(text + R"("last":"x"}})");
  REQUIRE(map);
  CHECK(map->tensors.size() == 500'001);
  const auto twice = safetensors::read_shard_map(text + R"("model.layers.7.weight":"x"}})");
  REQUIRE_FALSE(twice);
  CHECK(twice.error().code == ErrorCode::tensor_duplicate);
  CHECK(twice.error().where == "model.layers.7.weight");
}

TEST_CASE("shard map: the files must be those of the map") {
  const auto map = safetensors::read_shard_map(R"({"weight_map":{"a":"1"}})");
  List<std::string> unmapped;
  const auto status = safetensors::check_shards(*map, {}, unmapped);
  REQUIRE_FALSE(status);
  CHECK(status.error().code == ErrorCode::argument_invalid);
}
