// BoundModelIndex: a model's files, header by header.
#include "handles/model_index.h"

#include "bindings/bound_model.h"
#include "formats/gguf_bytes.h"

namespace wasmquant::testing {
namespace {

std::vector<uint8_t> file_of_text(const std::string& text) { return {text.begin(), text.end()}; }

Status feeds(BoundModelIndex& index, uint32_t number, const std::string& bytes) {
  const auto fed = index.feed(number, address_of(bytes), static_cast<uint32_t>(bytes.size()));
  return fed ? Status() : Status(fed.error());
}

TEST_CASE("BoundModelIndex: asks for a header in pieces, then tells what it found") {
  const BoundModel model = small_model();
  const std::vector<uint8_t>& file = model.memory.files[0];
  BoundModelIndex index;
  const uint32_t number = index.add_file("model.safetensors", static_cast<double>(file.size()));
  CHECK(number == 0);
  CHECK(refusal(index.finish()) == "state-invalid model.safetensors: its header was not read");
  const json::Value next = taken(index.feed(number, address_of(file), 8));
  CHECK(next["offset"].as_integer() == 0);
  CHECK(next["bytes"].as_integer() > 8);
  const json::Value done = fed(index, number, file);
  CHECK(json::write(done["dataFiles"]) == "[]");
  CHECK(json::write(done["deflated"]) == "[]");
  CHECK(json::write(index.missing_parts()) == "[]");
  const json::Value finished = taken(index.finish());
  CHECK(finished["format"].as_string() == "safetensors");
  CHECK(finished["tensors"].as_integer() == 3);
  CHECK(json::write(finished["files"]) == "[0]");
  const json::Value rows = taken(json::parse(index.tensors(0, 2).text));
  REQUIRE(rows.items().size() == 2);
  CHECK(rows.items()[0]["name"].as_string() == "a.up_proj.weight");
  CHECK(json::write(rows.items()[0]["shape"]) == "[64,32]");
  CHECK(taken(json::parse(index.tensors(2, 9).text)).items().size() == 1);
  CHECK(taken(json::parse(index.tensors(3, 9).text)).items().empty());
}

TEST_CASE("BoundModelIndex: refuses files that are none, names twice and a wrong shard map") {
  BoundModelIndex none;
  none.add_file("model.safetensors", 64);
  CHECK(refusal(feeds(none, 0, std::string(64, '\xFF'))).substr(0, 15) == "file-too-large ");

  const BoundModel model = small_model();
  MemoryModel twice = model.memory;
  twice.names.push_back("other.safetensors");
  twice.files.push_back(twice.files[0]);
  BoundModelIndex index;
  for (uint32_t f = 0; f < 2; ++f)
    fed(index, index.add_file(twice.names[f], static_cast<double>(twice.files[f].size())), twice.files[f]);
  CHECK(
      refusal(index.finish()) ==
      "tensor-duplicate a.down_proj.weight: is in both model.safetensors and other.safetensors; open the files of one "
      "model");

  BoundModelIndex sharded;
  CHECK(refusal(sharded.read_shard_map("{")).substr(0, 12) == "json-invalid");
  CHECK(refusal(sharded.read_shard_map("{}")) != "");
  const json::Value map = taken(sharded.read_shard_map(
      R"({"weight_map": {"a.up_proj.weight": "one.safetensors", "b.weight": "two.safetensors"}})"));
  CHECK(json::write(map["files"]) == R"(["one.safetensors","two.safetensors"])");
  fed(sharded, sharded.add_file("one.safetensors", static_cast<double>(twice.files[0].size())), twice.files[0]);
  CHECK(refusal(sharded.finish()) != "");
}

TEST_CASE("BoundModelIndex: names lose the prefix of wrappers only if that was asked for") {
  MemoryModel wrapped;
  wrapped.add_file("model.safetensors",
                   {{"_orig_mod.model.layers.0.mlp.up_proj.weight", StorageDtype::F32, {2, 2}, {1, 2, 3, 4}}});
  const auto name = [&](bool strips) {
    BoundModelIndex index;
    if (strips) index.strip_prefixes();
    fed(index, index.add_file(wrapped.names[0], static_cast<double>(wrapped.files[0].size())), wrapped.files[0]);
    taken(index.finish());
    return taken(json::parse(index.tensors(0, 1).text)).items()[0]["name"].as_string();
  };
  CHECK(name(false) == "_orig_mod.model.layers.0.mlp.up_proj.weight");
  CHECK(name(true) == "model.layers.0.mlp.up_proj.weight");
}

TEST_CASE("BoundModelIndex: bytes of the tensors that say how others are stored, and files next to the weights") {
  const std::string folder = "files/quantized/bitsandbytes";
  BoundModel model(folder);
  const std::string& config = model.config;
  model.index->set_sibling_file("config.json", address_of(config), static_cast<uint32_t>(config.size()));
  const auto inline_tensors = model.index->index().inline_tensors();
  REQUIRE(inline_tensors.size() > 0);
  for (const uint32_t tensor : inline_tensors) {
    const StoredTensor& stored = model.index->index().tensors()[tensor].stored;
    const Address at = address_of(model.memory.files[0]) + stored.begin;
    const auto bytes = static_cast<uint32_t>(stored.end - stored.begin);
    CHECK(refusal(model.index->set_inline_bytes(tensor, at, bytes - 1)) ==
          "argument-invalid " + stored.name + ": " + std::to_string(bytes - 1) + " bytes were given; it has " +
              std::to_string(bytes));
    CHECK(refusal(model.index->set_inline_bytes(tensor, at, bytes)) == "");
  }
  // Without config.json it is only tensors.
  const auto tensors = [](const BoundModelIndex& index) {
    const auto plan = taken(plan_made(index, int8_config(), R"({"format": "fake-quantized"})"));
    return plan->to_json()["totals"]["tensors"].as_integer();
  };
  CHECK(tensors(*model.index) < tensors(*BoundModel(folder).index));
}

TEST_CASE("BoundModelIndex: arrays of GGUF metadata") {
  test_files::GgufBytes bytes;
  bytes.begin(1, 3).key_u32("general.alignment", 32);
  bytes.text("tokenizer.ggml.tokens").number<uint32_t>(9).number<uint32_t>(8).number<uint64_t>(2).text("a").text("\"b");
  bytes.text("tokenizer.ggml.scores").number<uint32_t>(9).number<uint32_t>(6).number<uint64_t>(2);
  bytes.number(0.5f).number(-1.0f);
  bytes.tensor("output.weight", {4, 2}, 0, 0).data(32);
  const std::vector<uint8_t> file = file_of_text(bytes.out);
  BoundModelIndex index;
  fed(index, index.add_file("model.gguf", static_cast<double>(file.size())), file);
  CHECK(taken(index.finish())["format"].as_string() == "gguf");
  CHECK(index.metadata_array("tokenizer.ggml.tokens").text == R"(["a","\"b"])");
  CHECK(index.metadata_array("tokenizer.ggml.scores").text == "[0.5,-1.0]");
  CHECK(index.metadata_array("none").text == "[]");
  CHECK(small_model().index->metadata_array("none").text == "[]");
  CHECK(taken(json::parse(index.pretokenizer("llama-bpe").text)).is_object());
  CHECK(index.pretokenizer("unknown").text == "null");
}

TEST_CASE("BoundModelIndex: the values of an ONNX model's layers, and outputs added to it") {
  CHECK(refusal(small_model().index->layer_values()) == "format-unsupported model: is not ONNX");
  const auto index = onnx_index();
  const json::Value values = taken(index->layer_values());
  CHECK(json::write(values) ==
        R"({"layers":[{"layer":"w","input":"x","output":"hidden","nested":false}],)"
        R"("inputs":[{"name":"x","type":0,"optional":false}],"outputs":["hidden"],"locations":[]})");
  const std::string added = text_at(taken(index->added_outputs(R"(["hidden"])")));
  CHECK(added.find("hidden") != std::string::npos);
  CHECK(text_at(taken(index->added_outputs("[]"))).find("hidden") == std::string::npos);
  CHECK(refusal(index->added_outputs("[")).substr(0, 12) == "json-invalid");
}

TEST_CASE("BoundModelIndex: config.json is parsed once, and kept where the format has such a file") {
  const BoundModel model = small_model();
  const std::string text = R"({"model_type": "llama", "rope": {"limits": [1, Infinity]}})";
  const json::Value read = taken(model.index->read_config(text));
  CHECK(read["config"]["model_type"].as_string() == "llama");
  CHECK(json::write(read["constants"]) == R"([{"path":["rope","limits",1],"value":"Infinity"}])");
  CHECK(model.index->index().sibling_file("config.json") == text);
  const Result<json::Value>& kept = model.index->index().config();
  CHECK((*kept)["model_type"].as_string() == "llama");
  CHECK(&model.index->index().config() == &kept);
  const auto onnx = onnx_index();
  CHECK(taken(onnx->read_config(text))["config"]["model_type"].as_string() == "llama");
  CHECK(onnx->index().sibling_file("config.json").empty());
  for (const char* wrong : {"", "{", "[]"})
    CHECK(refusal(BoundModel(small_model()).index->read_config(wrong)).substr(0, 25) == "json-invalid config.json:");
}

}  // namespace
}  // namespace wasmquant::testing
