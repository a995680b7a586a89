// ONNX graphs of folders: every value that a node reads is there before it, inputs and outputs have the names that transformers.js looks for,
// and the file that a plan writes is read again with the weights of the folder.
#include "pipeline/onnx_plan/built_graph.h"

#include <algorithm>
#include <set>
#include <string>

#include "formats/onnx/onnx.h"
#include "model/config/architecture.h"
#include "onnx_conversion/transformer_graph.h"
#include "pipeline/onnx_index.h"
#include "pipeline/quantized_model.h"

using namespace wasmquant;
using namespace wasmquant::testing;

namespace {

constexpr const char* kFamilies[] = {"llama",  "llama_linear", "mistral", "qwen2",   "qwen3",     "gemma",
                                     "gemma2", "gemma3_text",  "bert",    "roberta", "camembert", "distilbert"};

class FolderTensors final : public conversion::StoredTensors {
 public:
  explicit FolderTensors(const ModelIndex& model) : model_(model) {}
  bool has(std::string_view name) const noexcept override { return model_.find(name) != nullptr; }
  Result<conversion::StoredValues> find(std::string_view name) const override {
    const ModelTensor* const tensor = model_.find(name);
    if (tensor == nullptr) return error_at(ErrorCode::tensor_missing, std::string(name), "is not in the model");
    return conversion::StoredValues{tensor->stored.name, 1, tensor->stored.shape, "0", tensor->stored.begin,
                                    tensor->stored.end};
  }

 private:
  const ModelIndex& model_;
};

model::Architecture architecture_of(const ModelIndex& model) {
  const auto& config = model.config();
  REQUIRE(bool(config));
  auto read = model::read_architecture(*config);
  REQUIRE_MESSAGE(bool(read), read.error().message);
  return std::move(*read);
}

onnx::Model graph_of(const model::Architecture& architecture, const ModelIndex& model) {
  const auto text = conversion::transformer_graph(architecture, true, FolderTensors(model));
  REQUIRE_MESSAGE(bool(text), text.error().message);
  auto skeleton = std::make_unique<onnx::Skeleton>();
  skeleton->append(*text);
  auto read = onnx::read_model(std::move(skeleton));
  REQUIRE_MESSAGE(bool(read), read.error().message);
  return std::move(*read);
}

/// The values of the graph that something reads and nothing gives before it, or that two give.
std::string first_wrong_value(const onnx::Model& graph) {
  std::set<std::string, std::less<>> known;
  const auto add = [&](std::string_view name) { return name.empty() || known.emplace(name).second; };
  for (const onnx::Input& input : graph.graphs[0].inputs) add(input.name);
  for (const onnx::Tensor& tensor : graph.tensors)
    if (!add(tensor.name)) return "twice: " + std::string(tensor.name);
  for (const uint32_t number : graph.graphs[0].nodes) {
    const onnx::Node& node = graph.nodes[number];
    for (const std::string_view name : node.inputs)
      if (!name.empty() && known.find(name) == known.end()) return "not there: " + std::string(name);
    for (const std::string_view name : node.outputs)
      if (node.op_type != "Constant" && !add(name)) return "twice: " + std::string(name);
  }
  for (const std::string_view name : graph.graphs[0].outputs)
    if (known.find(name) == known.end()) return "no output: " + std::string(name);
  return {};
}

std::string names_of(const onnx::Graph& graph) {
  std::string out;
  for (const onnx::Input& input : graph.inputs) out += std::string(input.name) + " ";
  for (const std::string_view name : graph.outputs) out += ">" + std::string(name) + " ";
  return out;
}

}  // namespace

TEST_CASE("built graphs: each value is given once, before it is read") {
  for (const char* family : kFamilies) {
    CAPTURE(std::string(family));
    const QuantizedModel folder = open_folder(std::string("forward/") + family);
    const model::Architecture a = architecture_of(folder.index);
    const onnx::Model graph = graph_of(a, folder.index);
    CHECK(first_wrong_value(graph) == "");
    const std::string names = names_of(graph.graphs[0]);
    CHECK(names.starts_with("input_ids attention_mask "));
    CHECK((names.find(">last_hidden_state ") != names.npos) == a.is_encoder);
    CHECK((names.find(">logits ") != names.npos) != a.is_encoder);
    CHECK((names.find("past_key_values.0.key ") != names.npos) != a.is_encoder);
    CHECK((names.find(">present." + std::to_string(a.layers - 1) + ".value ") != names.npos) != a.is_encoder);
    // Weights are the folder's, in its bytes.
    size_t stored = 0;
    for (const onnx::Tensor& tensor : graph.tensors) {
      if (!tensor.is_external()) continue;
      ++stored;
      const ModelTensor* const source = folder.index.find(tensor.name);
      REQUIRE(source != nullptr);
      CHECK(tensor.begin == source->stored.begin);
      CHECK(tensor.end == source->stored.end);
    }
    CHECK(stored > 8);
  }
}

TEST_CASE("built graphs: variants of an architecture") {
  const QuantizedModel folder = open_folder("forward/llama");
  const model::Architecture llama = architecture_of(folder.index);
  const auto check = [&](const char* what, auto&& change) {
    CAPTURE(std::string(what));
    model::Architecture a = llama;
    change(a);
    CHECK(first_wrong_value(graph_of(a, folder.index)) == "");
  };
  check("parallel", [](model::Architecture& a) { a.is_parallel = true; });
  check("windows", [](model::Architecture& a) {
    a.window = 4;
    a.is_sliding[0] = true;
  });
  check("slopes", [](model::Architecture& a) {
    a.has_slopes = true;
    std::fill(a.is_rotated.begin(), a.is_rotated.end(), false);
  });
  check("caps and scales", [](model::Architecture& a) {
    a.scales.attention_cap = 2;
    a.scales.logit_cap = 3;
    a.scales.logits = 0.5f;
    a.scales.residual = 0.5f;
    a.scales.embedding = 4;
    a.scales.qkv_clip = 1;
  });
  for (const kernels::Activation activation : {kernels::Activation::gelu, kernels::Activation::gelu_tanh,
                                               kernels::Activation::relu, kernels::Activation::squared_relu})
    check("activation", [&](model::Architecture& a) { a.activation = activation; });
  check("scaled rotations", [](model::Architecture& a) {
    a.rope.scaling = a.sliding_rope.scaling = model::Rope::Scaling::yarn;
    a.rope.factor = a.sliding_rope.factor = 4;
    a.query_growth.rate = 0.1;
  });
  check("both sides", [](model::Architecture& a) {
    a.is_encoder = true;
    a.window = 4;
    a.is_sliding[0] = true;
  });
  check("norms of whole rows", [](model::Architecture& a) { a.norms.subtract_mean = true; });
  check("norms of 1 + weight", [](model::Architecture& a) { a.norms.plus_one = true; });
}

TEST_CASE("built graphs: the file of a plan is read again, with weights that are near") {
  for (const char* family : {"llama", "gemma3_text", "bert", "gemma"}) {
    for (const char* preset : {"int8", "int4_wo_32", "uint4_wo_32"}) {
      CAPTURE(std::string(family));
      CAPTURE(std::string(preset));
      const QuantizedModel folder = open_folder(std::string("forward/") + family);
      PlanOptions options;
      options.format = "onnx";
      List<Diagnostic> diagnostics;
      const auto plan = make_plan(folder.index, preset, options, diagnostics);
      REQUIRE_MESSAGE(bool(plan), plan.error().message);
      CHECK(std::none_of(diagnostics.begin(), diagnostics.end(),
                         [](const Diagnostic& each) { return each.severity == Severity::error; }));
      const auto result = run_plan(folder.memory, *plan);
      REQUIRE_MESSAGE(bool(result), result.error().message);
      const auto file = std::find_if(result->model.names.begin(), result->model.names.end(),
                                     [](const std::string& name) { return name.ends_with(".onnx"); });
      REQUIRE(file != result->model.names.end());
      const auto& bytes = result->model.files[static_cast<size_t>(file - result->model.names.begin())];
      const ModelIndex written = onnx_index_of(std::string(bytes.begin(), bytes.end()));
      CHECK(written.format().name == "onnx");
      CHECK(written.tensors().size() > 8);
      size_t quantized = 0;
      for (const PlannedTensor& planned : plan->tensors) quantized += planned.onnx_form.has_value();
      CHECK(quantized > 4);
      for (const kernels::ErrorSums& sums : result->sums)
        if (sums.signal > 0) CHECK(sums.noise < 0.05 * sums.signal);
    }
  }
}

TEST_CASE("built graphs: what has none is refused by its name, with what else can be done") {
  const auto refused = [](const QuantizedModel& folder) {
    List<Diagnostic> diagnostics;
    const auto built = built_graph(folder.index, diagnostics);
    return built ? std::string("built") : built.error().where + ": " + built.error().message;
  };
  for (const auto& [family, said] : {std::pair{"gpt_oss", "mixtures of experts"},
                                     {"deepseek_v2", "mixtures of experts"},
                                     {"lfm2_moe", "no attention"},
                                     {"granitemoehybrid", "no attention"},
                                     {"qwen3_next", "no attention"}}) {
    const std::string text = refused(open_folder(std::string("forward/") + family));
    CHECK_MESSAGE(text.find(said) != text.npos, text);
    CHECK_MESSAGE(text.find(std::string("of type \"") + family + "\"") != text.npos, text);
    CHECK_MESSAGE(text.find("Export the model to ONNX elsewhere") != text.npos, text);
  }
  const std::vector<RawTensor> one = {{"a.weight", StorageDtype::F32, {2, 2}}};
  CHECK(refused(model_of(one, "")).starts_with("config.json: is not in the folder"));
  CHECK(refused(model_of(one, R"({"model_type":"unheard_of"})")).find("\"unheard_of\"") != std::string::npos);
  CHECK(
      refused(model_of(one, R"({"model_type":"llava","text_config":{"model_type":"llama"}})")).find("several parts") !=
      std::string::npos);
  const std::string sizes =
      R"("vocab_size":8,"hidden_size":4,"intermediate_size":4,"num_hidden_layers":1,"num_attention_heads":2)";
  const std::string missing = refused(model_of(one, R"({"model_type":"llama",)" + sizes + "}"));
  CHECK_MESSAGE(missing.find("embed_tokens.weight: is not in the model") != missing.npos, missing);
}
