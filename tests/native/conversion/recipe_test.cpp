// Types that llama.cpp's recipes give to tensors.
#include "gguf_conversion/recipe.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>

#include "core/json.h"
#include "formats/read_file.h"
#include "gguf_conversion/tensor_category.h"

using namespace wasmquant;
using namespace wasmquant::conversion;

namespace {

// "a*2 b" to a, a, b.
std::vector<std::string> words_of(const std::string& runs) {
  std::vector<std::string> words;
  for (size_t at = 0; at < runs.size();) {
    const size_t end = std::min(runs.find(' ', at), runs.size());
    const std::string run = runs.substr(at, end - at);
    const size_t star = run.find('*');
    const int count = star == run.npos ? 1 : std::stoi(run.substr(star + 1));
    words.insert(words.end(), static_cast<size_t>(count), run.substr(0, star));
    at = end + 1;
  }
  return words;
}

struct RecipeTensors {
  std::vector<std::string> names;
  std::vector<std::vector<uint64_t>> shapes;
  std::vector<std::string> expected;

  void add(std::string name, const std::vector<uint64_t>& shape, std::string type) {
    names.push_back(std::move(name));
    shapes.push_back(shape);
    expected.push_back(std::move(type));
  }
  std::vector<RecipeTensor> view() const {
    std::vector<RecipeTensor> tensors;
    for (size_t i = 0; i < names.size(); ++i) tensors.push_back({names[i], shapes[i], {}});
    return tensors;
  }
};

void check_model(const json::Value& model, const std::string& recipe_text, const json::Value& types) {
  const size_t space = recipe_text.find(' ');
  const auto recipe = recipe_named(recipe_text.substr(0, space));
  REQUIRE(recipe);
  RecipeOptions options;
  options.has_importance = space != recipe_text.npos;
  const auto number = [&](const char* key) { return static_cast<uint32_t>(model[key].as_integer()); };
  const ModelFacts facts{model["architecture"].as_string(), number("layers"), number("heads"),
                         number("key_value_heads"), number("experts")};
  RecipeTensors tensors;
  for (const auto& [kind, dimensions] : model["tensors"].members()) {
    std::vector<uint64_t> shape;
    for (const json::Value& dimension : dimensions.items())
      shape.push_back(static_cast<uint64_t>(dimension.as_integer()));
    const auto words = words_of(types.find(kind)->as_string());
    const size_t hash = kind.find('#');
    for (size_t layer = 0; layer < words.size(); ++layer)
      tensors.add(hash == kind.npos ? kind : kind.substr(0, hash) + std::to_string(layer) + kind.substr(hash + 1),
                  shape, words[layer]);
  }
  const auto choices = choose_types(*recipe, facts, options, tensors.view());
  REQUIRE(choices.size() == tensors.names.size());
  for (size_t i = 0; i < choices.size(); ++i) {
    const bool kept = choices[i].reason == TypeReason::kept;
    const std::string type(kept ? "f32" : info_of(choices[i].type).name);
    CHECK_MESSAGE(type == tensors.expected[i], model["name"].as_string(), " ", recipe_text, " ", tensors.names[i]);
  }
}

}  // namespace

TEST_CASE("recipe: types are llama-quantize's, tensor by tensor") {
  const auto models = json::parse(test_files::file_text("files/gguf_types.json"));
  REQUIRE(models);
  REQUIRE(models->items().size() >= 6);
  for (const json::Value& model : models->items()) {
    REQUIRE(model["types"].members().size() >= 20);
    for (const auto& [recipe, types] : model["types"].members()) check_model(model, recipe, types);
  }
}

TEST_CASE("recipe: the order of tensors does not matter") {
  RecipeTensors tensors;
  for (int layer = 0; layer < 24; ++layer)
    for (const char* kind : {"attn_v", "ffn_down", "attn_q"})
      tensors.add("blk." + std::to_string(layer) + "." + kind + ".weight", {256, 512}, "");
  tensors.add("token_embd.weight", {256, 512}, "");
  const ModelFacts facts{"llama", 24, 8, 8, 0};
  const auto inOrder = choose_types(Recipe::q4_k_m, facts, {}, tensors.view());
  std::vector<size_t> order(tensors.names.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), std::mt19937(3));
  RecipeTensors shuffled;
  for (const size_t i : order) shuffled.add(tensors.names[i], tensors.shapes[i], "");
  const auto choices = choose_types(Recipe::q4_k_m, facts, {}, shuffled.view());
  for (size_t i = 0; i < order.size(); ++i) CHECK(choices[i].type == inOrder[order[i]].type);
  const auto view = shuffled.view();
  const auto written = quantize_order(view);
  CHECK(view[written[0]].name == "token_embd.weight");
  CHECK(view[written[1]].name == "blk.0.attn_q.weight");
  CHECK(view[written[7]].name == "blk.2.attn_q.weight");  // by number, not by letters
  CHECK(view[written.back()].name == "blk.23.ffn_down.weight");
}

TEST_CASE("recipe: the user's choice overrides rules, shapes override both") {
  const std::vector<uint64_t> wide{8, 256}, narrow{8, 96}, odd{8, 33}, row{1, 256}, vector{256};
  const auto choose = [&](std::string_view name, const std::vector<uint64_t>& shape, const RecipeOptions& options,
                          std::optional<GgmlType> chosen = {}, Recipe recipe = Recipe::q4_k_m) {
    const RecipeTensor tensors[] = {{name, shape, chosen}, {"output.weight", wide, {}}};
    return choose_types(recipe, {"llama", 1, 1, 1, 0}, options, tensors)[0];
  };
  RecipeOptions plain, pure, special;
  pure.pure = true;
  special.output_type = GgmlType::q8_0;
  special.embedding_type = GgmlType::q5_1;
  CHECK(choose("blk.0.attn_v.weight", wide, plain).type == GgmlType::q6_k);
  CHECK(choose("blk.0.attn_v.weight", wide, plain).reason == TypeReason::rule);
  CHECK(choose("blk.0.attn_q.weight", wide, plain).reason == TypeReason::recipe);
  CHECK(choose("blk.0.attn_v.weight", wide, pure).type == GgmlType::q4_k);
  CHECK(choose("blk.0.attn_v.weight", wide, plain, GgmlType::q3_k).type == GgmlType::q3_k);
  CHECK(choose("blk.0.attn_v.weight", wide, plain, GgmlType::q3_k).reason == TypeReason::chosen);
  CHECK(choose("token_embd.weight", wide, special).type == GgmlType::q5_1);
  CHECK(choose("output.weight", wide, special).type == GgmlType::q8_0);
  special.keeps_output = true;
  CHECK(choose("output.weight", wide, special).reason == TypeReason::kept);

  const TypeChoice fallback = choose("blk.0.attn_v.weight", narrow, plain);
  CHECK(fallback.type == GgmlType::q8_0);
  CHECK(fallback.reason == TypeReason::fallback);
  CHECK(fallback.wanted == GgmlType::q6_k);
  CHECK(choose("blk.0.attn_v.weight", narrow, plain, GgmlType::q2_k).type == GgmlType::q4_0);
  CHECK(choose("blk.0.attn_v.weight", narrow, plain, GgmlType::iq4_xs).type == GgmlType::iq4_nl);
  CHECK(choose("blk.0.attn_v.weight", odd, plain).type == GgmlType::f16);
  CHECK(choose("blk.0.attn_v.weight", odd, plain, GgmlType::q8_0).type == GgmlType::f16);
  CHECK(choose("blk.0.attn_v.weight", odd, plain, {}, Recipe::bf16).type == GgmlType::bf16);
  for (const char* name : {"blk.0.attn_norm.weight", "blk.0.ffn_gate_inp.weight", "position_embd.weight",
                           "token_types.weight", "blk.0.attn_q.bias", "blk.0.ssm_conv1d.weight"})
    CHECK_MESSAGE(choose(name, wide, plain, GgmlType::q8_0).reason == TypeReason::kept, name);
  CHECK(choose("blk.0.attn_q.weight", row, plain).reason == TypeReason::kept);  // ggml counts it as a vector
  CHECK(choose("blk.0.attn_q.weight", vector, plain).reason == TypeReason::kept);
}

TEST_CASE("recipe: mxfp4 is one type throughout") {
  const std::vector<uint64_t> shape{8, 64};
  const RecipeTensor tensors[] = {{"output.weight", shape, {}}, {"blk.0.attn_v.weight", shape, {}}};
  for (const TypeChoice& choice : choose_types(Recipe::mxfp4, {"llama", 1, 1, 1, 0}, {}, tensors))
    CHECK(choice.type == GgmlType::mxfp4);
  for (const TypeChoice& choice : choose_types(Recipe::mxfp4_moe, {"llama", 1, 1, 1, 0}, {}, tensors))
    CHECK(choice.type == GgmlType::q8_0);
}

TEST_CASE("recipe: names, file types and facts") {
  CHECK(recipe_named("q4_k") == Recipe::q4_k_m);
  CHECK(recipe_named("q3_k") == Recipe::q3_k_m);
  CHECK(recipe_named("q5_k") == Recipe::q5_k_m);
  CHECK_FALSE(recipe_named("Q4_0"));
  CHECK_FALSE(recipe_named("q8_k"));
  CHECK(needs_importance(Recipe::q2_k_s));
  CHECK_FALSE(needs_importance(Recipe::q2_k));
  gguf::Metadata metadata;
  metadata.set_text("general.architecture", "gemma");
  metadata.set_u32("gemma.block_count", 18);
  metadata.set_u32("gemma.attention.head_count", 8);
  ModelFacts facts = facts_of(metadata);
  CHECK(facts.architecture == "gemma");
  CHECK(facts.layers == 18);
  CHECK(facts.key_value_heads == 8);
  CHECK(facts.experts == 0);
  gguf::ArrayBuilder heads(gguf::ValueType::i32);  // one number a layer
  heads.add_i32(2);
  heads.add_i32(4);
  metadata.set(std::move(heads).finish("gemma.attention.head_count_kv"));
  metadata.set_u32("gemma.expert_count", 8);
  facts = facts_of(metadata);
  CHECK(facts.key_value_heads == 2);
  CHECK(facts.experts == 8);
  describe_recipe(Recipe::q4_k_m, metadata);
  CHECK(metadata.find_count("general.file_type") == 15);
  CHECK(metadata.find_count("general.quantization_version") == 2);
  CHECK(facts_of({}).layers == 0);
}
