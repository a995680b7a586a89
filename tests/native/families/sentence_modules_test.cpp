// modules.json and the config.json of each module, as releases of sentence-transformers write them, and broken ones.
#include "families/sentence/sentence_modules.h"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <string_view>

using namespace wasmquant;

namespace {

class Folder final : public families::SiblingFiles {
 public:
  Folder(std::initializer_list<std::pair<const std::string, std::string>> files) : files_(files) {}
  std::string_view sibling_file(std::string_view name) const noexcept override {
    const auto found = files_.find(std::string(name));
    return found == files_.end() ? std::string_view() : std::string_view(found->second);
  }

 private:
  std::map<std::string, std::string> files_;
};

std::string read(const Folder& folder) {
  const auto modules = families::sentence_modules(folder);
  if (!modules) return modules.error().where + ": " + modules.error().message;
  return json::write(families::to_json(*modules));
}

const std::string kModules = R"([{"idx":0,"path":"","type":"sentence_transformers.models.Transformer"},)"
                             R"({"path":"1_Pooling","type":"sentence_transformers.models.Pooling"},)"
                             R"({"path":"2_Dropout","type":"sentence_transformers.models.Dropout"},)"
                             R"({"path":"3_Dense","type":"sentence_transformers.models.Dense"},)"
                             R"({"path":"4_Normalize","type":"sentence_transformers.models.Normalize"}])";

std::string with_dense(const std::string& more) {
  return read(
      {{"modules.json", kModules}, {"3_Dense/config.json", R"({"in_features":8,"out_features":4)" + more + "}"}});
}

}  // namespace

TEST_CASE("sentence modules: poolings of both spellings") {
  CHECK(read({}) == R"({"pooling":[],"poolingFile":"1_Pooling/config.json","modules":[]})");
  const struct {
    const char *config, *pooling;
  } kCases[] = {
      {R"({"pooling_mode_cls_token":true,"pooling_mode_mean_tokens":false})", R"(["cls"])"},
      {R"({"pooling_mode_mean_tokens":true,"pooling_mode_max_tokens":true})", R"(["max","mean"])"},
      {R"({"pooling_mode_mean_sqrt_len_tokens":true})", R"(["mean_sqrt_len_tokens"])"},
      {R"({"pooling_mode_weightedmean_tokens":true,"pooling_mode_lasttoken":true})", R"(["weightedmean","lasttoken"])"},
      {R"({"pooling_mode":"lasttoken"})", R"(["lasttoken"])"},
      {R"({"pooling_mode":["cls","mean"]})", R"(["cls","mean"])"},
  };
  for (const auto& [config, pooling] : kCases)
    CHECK(read({{"1_Pooling/config.json", config}}) ==
          std::string(R"({"pooling":)") + pooling + R"(,"poolingFile":"1_Pooling/config.json","modules":[]})");
}

TEST_CASE("sentence modules: the encoder and Dropout are left out, a dense layer has what its class assumes") {
  const std::string
      rest = R"("unusual":""},{"path":"4_Normalize","type":"Normalize"}]})",
      first = R"({"pooling":[],"poolingFile":"1_Pooling/config.json","modules":[{"path":"1_Pooling","type":"Pooling"},)"
              R"({"path":"3_Dense","type":"Dense","inputs":8,"outputs":4,)";
  CHECK(with_dense("") == first + R"("hasBias":true,"activation":"Tanh",)" + rest);
  CHECK(with_dense(R"(,"bias":false,"activation_function":"torch.nn.modules.linear.Identity")") ==
        first + R"("hasBias":false,"activation":"Identity",)" + rest);
  CHECK(with_dense(R"(,"use_residual":true)").find(R"("unusual":"use_residual")") != std::string::npos);
  CHECK(with_dense(R"(,"module_input_name":"token_embeddings")").find(R"("unusual":"module_input_name")") !=
        std::string::npos);
  CHECK(with_dense(R"(,"module_output_name":"sentence_embedding")").find(R"("unusual":"")") != std::string::npos);
}

TEST_CASE("sentence modules: files of other shapes are errors that name file and place") {
  const auto begins = [](const std::string& text, const std::string& start) {
    CHECK_MESSAGE(text.starts_with(start), text);
  };
  begins(read({{"modules.json", "[{]"}}), "modules.json: byte ");
  begins(read({{"modules.json", "{}"}}), "modules.json: /: expected a list of modules, found an object");
  begins(read({{"modules.json", "[3]"}}), "modules.json: /0: expected an object");
  begins(read({{"modules.json", R"([{"type":"A","path":1}])"}}), "modules.json: /0/path: expected a string");
  begins(read({{"modules.json", kModules}}), "3_Dense/config.json: is missing; modules.json names");
  begins(with_dense(R"(,"bias":"yes")"), "3_Dense/config.json: /bias: expected true or false, found a string");
  begins(with_dense(R"(,"activation_function":1)"), "3_Dense/config.json: /activation_function: expected the name");
  begins(read({{"modules.json", kModules}, {"3_Dense/config.json", R"({"in_features":0,"out_features":4})"}}),
         "3_Dense/config.json: /in_features: expected a number of features");
  begins(read({{"1_Pooling/config.json", "[]"}}), "1_Pooling/config.json: /: expected an object");
  begins(read({{"1_Pooling/config.json", R"({"pooling_mode":1})"}}), "1_Pooling/config.json: /pooling_mode: expected");
  begins(read({{"1_Pooling/config.json", R"({"pooling_mode":"median"})"}}),
         "1_Pooling/config.json: /pooling_mode: \"median\" is no pooling");
  begins(read({{"1_Pooling/config.json", R"({"pooling_mode_cls_token":1})"}}),
         "1_Pooling/config.json: /pooling_mode_cls_token: expected true or false");
}
