// Every case of tests/files/hostile/expected.json (written by tests/files/make_hostile.mjs).
#include <doctest/doctest.h>

#include "core/json.h"
#include "formats/gguf_bytes.h"
#include "formats/onnx_bytes.h"
#include "formats/read_file.h"
#include "formats/safetensors/safetensors_index.h"

using namespace wasmquant;

namespace {

List<std::string> strings_of(const json::Value* list) {
  List<std::string> strings;
  if (list != nullptr)
    for (const json::Value& item : list->items()) strings.push_back(item.as_string());
  return strings;
}

struct Answer {
  std::optional<Error> error;
  List<std::string> tensors, unmapped, missing_files;
};

Answer read_gguf(const std::vector<uint8_t>& bytes, std::mt19937& random) {
  Answer answer;
  const auto index = test_files::read_gguf_in_pieces({bytes.begin(), bytes.end()}, random);
  if (!index) return {index.error(), {}, {}, {}};
  for (const auto& tensor : index->tensors) answer.tensors.push_back(tensor.name);
  return answer;
}

Answer read_onnx_model(const std::string& folder, const std::vector<uint8_t>& bytes, std::mt19937& random) {
  Answer answer;
  const auto model = test_files::read_onnx({bytes.begin(), bytes.end()}, static_cast<uint32_t>(random()));
  if (!model) return {model.error(), {}, {}, {}};
  for (const auto& tensor : model->tensors) answer.tensors.push_back(std::string(tensor.name));
  for (const std::string_view location : model->locations) {
    const auto data = test_files::read_bytes(folder + std::string(location));
    if (!data) {
      answer.missing_files.push_back(std::string(location));
      continue;
    }
    const Status fits = onnx::check_external(*model, location, data->size());
    if (!fits) return {fits.error(), {}, {}, {}};
  }
  return answer;
}

Answer read_model(const std::string& name, std::mt19937& random) {
  Answer answer;
  const std::vector<uint8_t> bytes = test_files::file_bytes(name);
  const std::string path = test_files::path_of(name), folder = path.substr(0, path.rfind('/') + 1);
  if (path.ends_with(".gguf")) return read_gguf(bytes, random);
  if (path.ends_with(".onnx")) return read_onnx_model(folder, bytes, random);
  if (!path.ends_with(".index.json")) {
    const auto index = test_files::read_in_pieces(bytes, random);
    if (!index) return {index.error(), {}, {}, {}};
    for (const auto& tensor : index->tensors) answer.tensors.push_back(tensor.name);
    return answer;
  }
  const auto map = safetensors::read_shard_map({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!map) return {map.error(), {}, {}, {}};
  List<FileIndex> files;
  for (const std::string& shard_name : map->files) {
    const auto shard = test_files::read_bytes(folder + shard_name);
    if (!shard) {
      answer.missing_files.push_back(shard_name);
      continue;
    }
    const auto index = test_files::read_in_pieces(*shard, random);
    if (!index) return {index.error(), {}, {}, {}};
    files.push_back(*index);
  }
  if (!answer.missing_files.empty()) return answer;
  const auto status = safetensors::check_shards(*map, files, answer.unmapped);
  if (!status) return {status.error(), {}, {}, {}};
  for (const auto& entry : map->tensors) answer.tensors.push_back(entry.first);
  return answer;
}

void hostile_check_case(const json::Value& expected, std::mt19937& random) {
  const std::string file = expected.find("file")->as_string();
  CAPTURE(file);
  const Answer answer = read_model("files/hostile/" + file, random);
  if (expected.find("missing_file") != nullptr) {
    CHECK_FALSE(answer.error);
    CHECK(answer.missing_files == List<std::string>{expected.find("missing_file")->as_string()});
  } else if (expected.find("ok")->as_bool()) {
    if (answer.error) FAIL_CHECK(answer.error->where, ": ", answer.error->message);
    CHECK(answer.tensors == strings_of(expected.find("tensors")));
    CHECK(answer.unmapped == strings_of(expected.find("unmapped")));
  } else {
    REQUIRE(answer.error);
    CHECK(name_of(answer.error->code) == expected.find("code")->as_string());
    CHECK_MESSAGE(answer.error->message.find(expected.find("message_contains")->as_string()) != std::string::npos,
                  answer.error->message);
    CHECK_MESSAGE(answer.error->where.find(expected.find("where_contains")->as_string()) != std::string::npos,
                  answer.error->where);
    CHECK(answer.error->where.size() < 256);
    CHECK(answer.error->message.size() < 1024);
  }
}

}  // namespace

TEST_CASE("hostile files: every case gets the answer that expected.json states") {
  const auto cases = json::parse(test_files::file_text("files/hostile/expected.json"));
  REQUIRE(cases);
  REQUIRE(cases->items().size() >= 250);
  std::mt19937 random(1);
  for (const json::Value& expected : cases->items())
    for (int round = 0; round < 3; ++round) hostile_check_case(expected, random);
}
