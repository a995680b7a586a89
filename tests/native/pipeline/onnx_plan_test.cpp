// ONNX models from index to files: the bytes do not depend on tiles, what is not quantized goes over as it was.
#include "pipeline/plan/plan.h"

#include <doctest/doctest.h>

#include "formats/onnx_bytes.h"
#include "pipeline/memory_model.h"

using namespace wasmquant;
using namespace wasmquant::testing;
using namespace test_files;

namespace {

std::vector<uint8_t> as_bytes(const std::string& text) { return {text.begin(), text.end()}; }

// MatMul [96, 40], Gemm with transB [24, 40], Conv [6, 4, 3, 3], and a table that Gather reads, each as `tensor` makes
// it.
template <class MakeTensor>
std::string onnx_plan_network(MakeTensor tensor) {
  const std::string gemm = node_of("Gemm", {"h", "down.weight", "bias"}, {"g"}, "/down/Gemm").out;
  Message graph;
  graph.message(1, node_of("MatMul", {"x", "up"}, {"h"}, "/up/MatMul"))
      .text(1, Message().bytes(gemm).message(5, attribute_of("transB", 1)).out)
      .message(1, node_of("Conv", {"i", "conv.weight"}, {"c"}, "/conv/Conv"))
      .message(1, node_of("Gather", {"table", "ids"}, {"t"}, "/table/Gather"))
      .message(5, tensor("up", std::vector<uint64_t>{96, 40}))
      .message(5, raw_tensor("bias", {24}))
      .message(5, tensor("down.weight", std::vector<uint64_t>{24, 40}))
      .message(5, tensor("conv.weight", std::vector<uint64_t>{6, 4, 3, 3}))
      .message(5, tensor("table", std::vector<uint64_t>{10, 32}));
  for (const char* name : {"x", "i", "ids"}) graph.message(11, value_of(name));
  for (const char* name : {"g", "c", "t"}) graph.message(12, value_of(name));
  return model_of(graph, 21);
}
std::string plain_network() {
  return onnx_plan_network(
      [](const char* name, std::vector<uint64_t> shape) { return raw_tensor(name, std::move(shape)); });
}

struct OnnxFiles : MemoryModel {
  void add(const std::string& name, const std::string& bytes) {
    names.push_back(name);
    files.push_back(as_bytes(bytes));
  }
  // Pieces of `most` bytes; fewer than a field's head may not come.
  Result<ModelIndex> read(size_t most = 1 << 20) const {
    ModelIndex index;
    const uint32_t file = index.add_file(names[0], files[0].size());
    for (Need need{0, 1}; need.bytes > 0;) {
      const size_t count = std::min(most, files[0].size() - static_cast<size_t>(need.offset));
      auto next = index.feed(file, std::span(files[0]).subspan(static_cast<size_t>(need.offset), count));
      if (!next) return std::move(next.error());
      need = *next;
    }
    for (size_t f = 1; f < files.size(); ++f) index.add_file(names[f], files[f].size());
    TRY_VOID(index.finish());
    return index;
  }
};

std::string onnx_plan_config_of(const std::string& spec, const char* more = "") {
  return R"({"global_quant_config": {"weight": )" + spec + more +
         R"(}, "layer_type_quant_config": {"Embedding": {"weight": )" + spec +
         R"(}}, "indivisible_groups": "fallback"})";
}

}  // namespace

// Of all weights, and what comparing decodes of both models.
void check_comparison(const OnnxFiles& source, const std::string& written, uint64_t tile_bytes, double noise) {
  OnnxFiles other;
  other.add("q.onnx", written);
  const auto reference = source.read(), quantized = other.read();
  REQUIRE(bool(quantized));
  const auto compared = compare_models(*reference, {}, *quantized, {}, {tile_bytes, tile_bytes});
  REQUIRE(bool(compared));
  CHECK(compared->diagnostics.empty());
  double sum = 0;
  for (const ComparedPair& pair : compared->pairs) {
    TensorDecoder left(in_worker(pair.left)), right(in_worker(pair.right));
    for (uint64_t tile = 0; tile < pair.right.tiles; ++tile) {
      source.fill(left.reads(tile));
      other.fill(right.reads(tile));
      const std::span<const float> x = left.decode(tile), y = right.decode(tile);
      REQUIRE(x.size() == y.size());
      sum += kernels::error_between(x, y.data()).noise;
    }
  }
  CHECK(sum == doctest::Approx(noise).epsilon(1e-6));
}

TEST_CASE("every form: the same bytes and errors for any tiles") {
  OnnxFiles source;
  source.add("model.onnx", plain_network());
  const std::string dynamic = R"(, "input_tensors": {"dtype": "uint8", "is_dynamic": true, "symmetric": false})";
  for (const std::string& config :
       {onnx_plan_config_of(R"({"dtype": "int4", "qscheme": "per_group", "group_size": 16})"),
        onnx_plan_config_of(R"({"dtype": "uint4", "qscheme": "per_group", "group_size": 64, "symmetric": false})"),
        onnx_plan_config_of(R"({"dtype": "int8", "qscheme": "per_group", "group_size": 32})"),
        onnx_plan_config_of(R"({"dtype": "int8", "qscheme": "per_channel", "ch_axis": 0})"),
        onnx_plan_config_of(R"({"dtype": "uint8", "qscheme": "per_tensor", "symmetric": false})"),
        onnx_plan_config_of(R"({"dtype": "int4", "qscheme": "per_channel", "ch_axis": 0, "symmetric": false})"),
        onnx_plan_config_of(R"({"dtype": "int8", "qscheme": "per_channel", "ch_axis": 0})", dynamic.c_str())}) {
    for (const bool qdq : {false, true}) {
      std::vector<std::vector<uint8_t>> first;
      std::vector<kernels::ErrorSums> first_sums;
      for (const uint64_t tile_bytes : {uint64_t{1}, uint64_t{700}, uint64_t{1} << 20}) {
        const auto index = source.read(static_cast<size_t>(tile_bytes) + 40);
        REQUIRE(bool(index));
        PlanOptions options;
        options.onnx.qdq = qdq;
        options.tile_bytes = {tile_bytes, tile_bytes};
        List<Diagnostic> diagnostics;
        const auto plan = make_plan(*index, config, options, diagnostics);
        REQUIRE_MESSAGE(plan, plan.error().message);
        CHECK(plan->format == "onnx");
        CHECK(plan->quantized_count >= 2);
        for (const bool reverse : {false, true}) {
          const auto run = run_plan(source, *plan, reverse);
          REQUIRE_MESSAGE(run, run.error().message);
          if (first.empty()) {
            first = run->model.files;
            first_sums = run->sums;
            continue;
          }
          CHECK(run->model.files == first);
          for (size_t i = 0, k = 0; i < run->sums.size(); ++i) {  // copies may be cut otherwise
            if (run->sums[i].count == 0) continue;
            while (first_sums[k].count == 0) ++k;
            CHECK(run->sums[i].noise == first_sums[k++].noise);
          }
        }
      }
      const std::string out(first[0].begin(), first[0].end());
      const auto again = read_onnx(out);
      REQUIRE_MESSAGE(again, again.error().message);
      CHECK(out.find(floats(ramp(24))) != out.npos);  // the bias
      double noise = 0;
      for (const kernels::ErrorSums& sums : first_sums) noise += sums.noise;
      for (const uint64_t tile_bytes : {uint64_t{1}, uint64_t{1} << 20})
        check_comparison(source, out, tile_bytes, noise);
    }
  }
}

TEST_CASE("external data in, and out, in files of their own") {
  OnnxFiles source;
  std::string data;
  source.add("model.onnx", onnx_plan_network([&](const char* name, std::vector<uint64_t> shape) {
               size_t count = 1;
               for (const uint64_t dimension : shape) count *= dimension;
               const std::string offset = std::to_string(data.size());
               data += floats(ramp(count));
               return external_tensor(name, std::move(shape), "w.bin", offset)
                   .message(13, Message().text(1, "length").text(2, std::to_string(4 * count)));
             }));
  CHECK(source.read().error().code == ErrorCode::state_invalid);
  source.add("w.bin", data.substr(0, 100));
  CHECK(source.read().error().code == ErrorCode::file_truncated);
  source.files.back() = as_bytes(data);
  const auto index = source.read();
  REQUIRE(bool(index));
  CHECK(index->find("up")->file == 1);
  CHECK(index->find("bias")->file == 0);

  OnnxFiles inside;
  inside.add("model.onnx", plain_network());
  const auto inside_index = inside.read();
  const std::string config = onnx_plan_config_of(R"({"dtype": "int8", "qscheme": "per_channel", "ch_axis": 0})");
  List<Diagnostic> diagnostics;
  PlanOptions options;
  const auto expected = make_plan(*inside_index, config, options, diagnostics);
  REQUIRE(bool(expected));
  const auto merged = make_plan(*index, config, options, diagnostics);
  REQUIRE_MESSAGE(merged, merged.error().message);
  CHECK(merged->files.size() == 1);
  CHECK(merged->files[0].name == "model_int8.onnx");
  const auto one = run_plan(inside, *expected), other = run_plan(source, *merged);
  REQUIRE(bool(one));
  REQUIRE(bool(other));
  CHECK(one->model.files[0].size() == other->model.files[0].size());

  options.onnx.external_data = true;
  options.onnx.file = "out.onnx";
  const auto split = make_plan(*index, config, options, diagnostics);
  REQUIRE(bool(split));
  CHECK(split->files.size() == 2);
  CHECK(split->files[0].name == "out.onnx_data");
  CHECK(split->files[1].name == "out.onnx");
  const auto run = run_plan(source, *split);
  REQUIRE(bool(run));
  OnnxFiles written;
  written.add("out.onnx", std::string(run->model.files[1].begin(), run->model.files[1].end()));
  written.add("out.onnx_data", std::string(run->model.files[0].begin(), run->model.files[0].end()));
  CHECK_MESSAGE(written.read(), written.read().error().message);
}

TEST_CASE("float16 in varints: read whole, the same as in bytes") {
  const auto model_with = [](bool varints) {
    Message tensor = tensor_of("up", {32, 16}, 10);
    std::string raw, packed;
    for (uint32_t i = 0; i < 512; ++i) {
      const auto bits = static_cast<uint16_t>(0x2c00 + i * 37 % 4096);
      raw += {static_cast<char>(bits & 255), static_cast<char>(bits >> 8)};
      protobuf::append_varint(packed, bits);
    }
    tensor.text(varints ? 5 : 9, varints ? packed : raw);
    Message graph;
    graph.message(1, node_of("MatMul", {"x", "up"}, {"y"}, "/up/MatMul")).message(5, tensor);
    graph.message(11, value_of("x")).message(12, value_of("y"));
    OnnxFiles files;
    files.add("model.onnx", model_of(graph, 21));
    return files;
  };
  for (const char* spec : {R"({"dtype": "int4", "qscheme": "per_group", "group_size": 16})",
                           R"({"dtype": "int8", "qscheme": "per_channel", "ch_axis": 0})"}) {
    std::vector<std::vector<uint8_t>> files;
    for (const bool varints : {false, true}) {
      const OnnxFiles source = model_with(varints);
      const auto index = source.read();
      REQUIRE(bool(index));
      List<Diagnostic> diagnostics;
      const auto plan = make_plan(*index, onnx_plan_config_of(spec), {}, diagnostics);
      REQUIRE_MESSAGE(plan, plan.error().message);
      const auto run = run_plan(source, *plan);
      REQUIRE_MESSAGE(run, run.error().message);
      files.push_back(run->model.files[0]);
    }
    CHECK(files[0] == files[1]);
  }
}

TEST_CASE("ONNX files are recognised by their first bytes or their name") {
  ModelIndex index;
  const uint32_t file = index.add_file("weights", 100), named = index.add_file("M.ONNX", 100);
  const auto fed = [&](uint32_t number, std::vector<uint8_t> prefix) {
    return format_of(index.files()[number].name, prefix).has_graph;
  };
  CHECK(fed(file, {8, 8, 18, 3, 'a', 'b', 'c', 58}));
  CHECK_FALSE(fed(file, {8, 8, 18, 0, 0, 0, 0, 0, '{'}));  // safetensors with a header of 1.2 MB
  CHECK_FALSE(fed(file, {8, 8}));
  CHECK_FALSE(fed(file, {'G', 'G', 'U', 'F', 3, 0, 0, 0}));
  CHECK(fed(named, {}));
  CHECK_FALSE(fed(named, {'G', 'G', 'U', 'F', 3, 0, 0, 0}));
  CHECK(index.feed(named, {}).error().code == ErrorCode::format_unknown);  // not the first file
}

TEST_CASE("a weight that ONNX cannot hold is named, or becomes int8 with a preset") {
  OnnxFiles source;
  source.add("model.onnx", plain_network());
  const auto index = source.read();
  List<Diagnostic> diagnostics;
  const char* groups =
      R"({"global_quant_config": {"weight": {"dtype": "int4", "qscheme": "per_group", "group_size": 32}}})";
  const auto refused = make_plan(*index, groups, {}, diagnostics);
  CHECK(refused.error().code == ErrorCode::format_unsupported);
  CHECK(refused.error().where == "conv.weight");
  const auto widened = make_plan(*index, "int4_wo_32", {}, diagnostics);
  REQUIRE(bool(widened));
  CHECK(widened->quantized_count == 4);
  const auto conv = std::find_if(widened->tensors.begin(), widened->tensors.end(),
                                 [](const PlannedTensor& t) { return t.task.name == "conv.weight"; });
  CHECK(conv->reason->rule == Rule::global);
  CHECK(conv->task.layout->spec.dtype == Dtype::int8);
  CHECK(conv->task.layout->spec.qscheme == QScheme::per_channel);
  CHECK(conv->reason->text.find("only for matrices") != std::string::npos);
  for (const char* config : {"q4_0", "fp8", "int4_fp8"})
    CHECK(make_plan(*index, config, {}, diagnostics).error().code == ErrorCode::format_unsupported);
  PlanOptions quark;
  quark.format = "quark";
  CHECK(make_plan(*index, "int8", quark, diagnostics).error().code == ErrorCode::format_unsupported);
}
